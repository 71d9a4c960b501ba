//===- Random.h - Choices that a seed makes ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The same on every machine, which the distributions of <random> are not.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_PASSES_RANDOM_RANDOM_H
#define BOA_TEST_PASSES_RANDOM_RANDOM_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <initializer_list>

namespace boa::random {

class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  /// SplitMix64.
  uint64_t next() {
    uint64_t x = state += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  /// In [0, count).
  int64_t below(int64_t count) { return int64_t(next() % uint64_t(count)); }
  /// In [low, high].
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(double share) { return double(next() >> 11) * 0x1p-53 < share; }
  template <typename T> T pick(std::initializer_list<T> of) { return of.begin()[below(of.size())]; }
  template <typename Range> auto &pick(Range &of) { return of[below(of.size())]; }

private:
  uint64_t state;
};

} // namespace boa::random

#endif // BOA_TEST_PASSES_RANDOM_RANDOM_H
