//===- extent.h - Where a chunk is on SSD -----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_EXTENT_H
#define BOA_RUNTIME_STATE_EXTENT_H

#include "runtime/abi/abi.h"

#include "absl/status/status.h"

#include <cstddef>
#include <cstdint>

namespace boa {

/// The place of one version of a chunk. Its size is the chunk's.
struct Extent {
  int32_t file = -1; // index into StateStore::Files; -1: nowhere
  int64_t offset = 0;
};
inline bool operator==(const Extent &a, const Extent &b) {
  return a.file == b.file && a.offset == b.offset;
}

struct ExtentHash {
  size_t operator()(const Extent &extent) const {
    return size_t(extent.offset / BOA_BLOCK_BYTES) * 0x9e3779b97f4a7c15 + size_t(extent.file);
  }
};

/// The extents of all chunks on SSD: of a state, or of a simulated machine.
class ChunkExtents {
public:
  virtual ~ChunkExtents() = default;
  /// The extents of a chunk's newest contents and of its next. Nowhere (file < 0) if the chunk was
  /// never written, or if there is no space: Why has the error.
  virtual Extent Current(int32_t storage, int64_t entry, int32_t chunk) = 0;
  virtual Extent Next(int32_t storage, int64_t entry, int32_t chunk) = 0;
  virtual absl::Status Why() const { return absl::OkStatus(); }
};

} // namespace boa

#endif // BOA_RUNTIME_STATE_EXTENT_H
