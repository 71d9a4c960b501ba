//===- ValueNumber.h - Hashes that stand for what was computed --*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_ANALYSIS_VALUENUMBER_H
#define BOA_PASSES_ANALYSIS_VALUENUMBER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/xxhash.h"

#include <cstdint>

namespace boa::value_number {

/// Makes one step of a hash. It is a bijection in both, so that one difference is always seen.
inline uint64_t mix(uint64_t hash, uint64_t value) {
  return llvm::rotl((hash ^ value) * 0x9e3779b97f4a7c15ull, 29);
}
/// The term of a value in a sum: two terms must not cancel.
inline uint64_t term(uint64_t value) { return mix(mix(value, 0x632be59bd9b4e019ull), value); }
inline uint64_t hashOf(llvm::StringRef name) { return llvm::xxh3_64bits(name); }
/// A result of a function of `inputs`.
inline uint64_t resultOf(uint64_t inputs, unsigned number) { return mix(inputs, number + 1); }

} // namespace boa::value_number

#endif // BOA_PASSES_ANALYSIS_VALUENUMBER_H
