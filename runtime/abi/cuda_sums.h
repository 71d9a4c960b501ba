//===- cuda_sums.h - What functions for checksums take ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where SSDs reach the GPU's memory, the GPU also sums the data that they move there. The image
// has a function for each size of chunk. passes/target/cuda/EmitChecksums.cpp makes it, and
// runtime/device/cuda/sums.h launches it. They agree on this:
//
//   sums_BYTES(data, keys, lanes)
//     Computes the lanes (runtime/state/checksum.h) of as many chunks as the launch has blocks,
//     at most kSumChunks. The chunks lie side by side from `data` on. Each chunk's lanes follow
//     those of the one before it. `keys` is ChecksumKeys(), on the device.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_CUDA_SUMS_H
#define BOA_RUNTIME_ABI_CUDA_SUMS_H

#include "runtime/abi/sums.h"

#include <algorithm>
#include <cstdint>

namespace boa::cuda {

/// Before the bytes of a chunk.
inline constexpr char kSumPrefix[] = "sums_";

constexpr int64_t kSumChunks = 32;

/// Threads of a block: for each lane of each block of a checksum, as far as they go.
constexpr int64_t SumThreads(int64_t chunk_bytes) {
  return std::min<int64_t>(512, chunk_bytes / kChecksumBlock * kChecksumLanes);
}

} // namespace boa::cuda

#endif // BOA_RUNTIME_ABI_CUDA_SUMS_H
