//===- sums.h - The order of sums -------------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime and code for a GPU compute the same sums, in the same order: squares of
// gradients (runtime/kernels/norm.h) and checksums (runtime/state/checksum.h).
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_SUMS_H
#define BOA_RUNTIME_ABI_SUMS_H

#include <cstdint>

namespace boa {

/// A sum of squares: elements of a block, and interleaved sums of one.
constexpr int64_t kSumBlock = 16384;
constexpr int kSumLanes = 16;

/// A checksum: 64-bit words of a stripe, stripes of a block, and bytes of a block.
constexpr int64_t kChecksumLanes = 8, kChecksumStripes = 16;
constexpr int64_t kChecksumBlock = kChecksumLanes * kChecksumStripes * int64_t(sizeof(uint64_t));
/// The prime that mixes a lane, and where a table of keys has those of each use.
constexpr uint64_t kChecksumPrime = 0x9e3779b1;
constexpr int64_t kMixKeys = 16, kLastKeys = 24, kFirstLanes = 32, kChecksumKeys = 40;

} // namespace boa

#endif // BOA_RUNTIME_ABI_SUMS_H
