//===- cuda_updates.h - What the optimizer's functions take -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the optimizer runs on the GPU, the image has two functions for each group.
// passes/target/cuda/EmitUpdates.cpp makes them, and runtime/device/cuda/updates.h launches them.
// They agree on this. The properties of a group (elements of a chunk, its tensors) are in the
// code.
//
//   update_GROUP(constants, flag, weights, low, states..., gradient)
//     Updates one chunk. Each argument but the first two points to the chunk. `low` is left out
//     where weights are f32. A state in 8 bits is two arguments: its codes, then its scales. `flag`
//     becomes 1 where a new weight or moment is not finite. Each thread takes kUpdateElements of
//     the chunk, in blocks of kUpdateThreads.
//
//   norm_GROUP(gradient, sums)
//     Sums a whole entry, in f64. Each parameter has a sum for each block of kSumBlock elements
//     (runtime/kernels/norm.h). The sums of the first parameter are first. Each sum has
//     kSumLanes threads, in blocks of kNormThreads.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_CUDA_UPDATES_H
#define BOA_RUNTIME_ABI_CUDA_UPDATES_H

#include "runtime/abi/sums.h"

#include <cstdint>
#include <string>

namespace boa::cuda {

/// Before the group's name.
inline constexpr char kUpdatePrefix[] = "update_", kNormPrefix[] = "norm_";

/// A name in the device's code, where none has a '.'. Nor has one of a user's a '$'.
inline std::string DeviceName(std::string name) {
  for (char &c : name)
    c = c == '.' ? '$' : c;
  return name;
}

/// The constants of an update: f32, but for the chunk's number and the seed, which are 32 bits. The
/// scalars of the optimizer follow (runtime/abi/optimizer.h).
enum UpdateConstant : int32_t { kRate, kGradientScale, kChunkNumber, kSeed, kUpdateScalars };

/// A chunk has a multiple of their product: blocks of 4 KiB in bf16.
constexpr int64_t kUpdateThreads = 256, kUpdateElements = 4;
constexpr int64_t kNormThreads = 128;

/// Blocks of a sum over so many elements.
constexpr int64_t SumBlocks(int64_t elements) { return (elements + kSumBlock - 1) / kSumBlock; }

} // namespace boa::cuda

#endif // BOA_RUNTIME_ABI_CUDA_UPDATES_H
