//===- sizes.h - Sizes beyond which no program goes -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler refuses more at its place in the source, and the runtime in a file. So a few of
// these sizes may be added, or multiplied by small numbers.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_SIZES_H
#define BOA_RUNTIME_ABI_SIZES_H

#include <cstdint>

namespace boa {

inline constexpr int64_t kLongestAxis = int64_t{1} << 24;  // of a vocabulary, and of a context
inline constexpr int64_t kMostElements = int64_t{1} << 40; // of a tensor
inline constexpr int64_t kMostBytes = int64_t{1} << 56;    // of a storage
inline constexpr int64_t kMostSamples = int64_t{1} << 56;  // sequences of a source

} // namespace boa

#endif // BOA_RUNTIME_ABI_SIZES_H
