//===- random.h - Counter-based random numbers ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random numbers without state. A number is a hash of its key, such as (seed, step,
// sequence) or (seed, parameter, element). So the order of calls and the number of threads
// change nothing. SplitMix64's finaliser mixes in each word of the key.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_SUPPORT_RANDOM_H
#define BOA_RUNTIME_SUPPORT_RANDOM_H

#include <cstdint>
#include <initializer_list>

namespace boa {

inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The hash of a key of several words; their order counts.
inline uint64_t Hash(std::initializer_list<uint64_t> key) {
  uint64_t hash = 0;
  for (uint64_t word : key)
    hash = Mix(hash ^ word);
  return hash;
}

/// Uniform in [0, count), count > 0. The bias is below count / 2^64.
inline uint64_t Below(uint64_t hash, uint64_t count) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * count) >> 64);
}

/// Uniform in [0, 1), 53 bits.
inline double Unit(uint64_t hash) { return static_cast<double>(hash >> 11) * 0x1p-53; }

} // namespace boa

#endif // BOA_RUNTIME_SUPPORT_RANDOM_H
