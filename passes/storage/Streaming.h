//===- Streaming.h - Storages that hold no buffer for long ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layer's weights leave memory after its forward pass and are read again for its backward pass:
// a loop over layers stands between. Of a stage that occurs once, nothing stands between but other
// stages. Where memory is short, passes treat these like layers. Such a storage is streamed.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_STORAGE_STREAMING_H
#define BOA_PASSES_STORAGE_STREAMING_H

#include "dialect/Boa.h"

#include "llvm/ADT/StringSet.h"

namespace boa {

/// Whether a kernel, an update or a norm uses a buffer of the storage, or is of its group.
bool worksOn(mlir::Operation *op, llvm::StringRef storage);

/// The storages that a pass is told to stream.
class StreamedStorages {
public:
  explicit StreamedStorages(llvm::ArrayRef<std::string> names) {
    for (const std::string &name : names)
      streamed.insert(name);
  }

  bool contains(llvm::StringRef storage) const { return streamed.contains(storage); }
  /// Whether the storage is streamed and its buffer may not be held while `op` runs: others compute
  /// there.
  bool mustYield(llvm::StringRef storage, mlir::Operation *op) const;

private:
  llvm::StringSet<> streamed;
};

} // namespace boa

#endif // BOA_PASSES_STORAGE_STREAMING_H
