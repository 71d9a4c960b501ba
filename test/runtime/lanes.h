//===- lanes.h - The lanes of a checksum, as plainly as can be --*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_LANES_H
#define BOA_TEST_RUNTIME_LANES_H

#include "runtime/state/checksum.h"

#include <cstring>

namespace boa {

/// Word by word, as runtime/state/checksum.h says.
inline void PlainLanes(const void *data, int64_t bytes, const uint64_t *keys, uint64_t *lanes) {
  std::memcpy(lanes, keys + kFirstLanes, kChecksumLanes * sizeof(uint64_t));
  const auto *at = static_cast<const char *>(data);
  const int64_t stripes = bytes / int64_t(kChecksumLanes * sizeof(uint64_t));
  for (int64_t stripe = 0; stripe < stripes; ++stripe) {
    const int64_t s = stripe % kChecksumStripes;
    const bool last = stripe == stripes - 1;
    uint64_t words[kChecksumLanes];
    std::memcpy(words, at + stripe * int64_t(sizeof(words)), sizeof(words));
    for (int64_t i = 0; i < kChecksumLanes; ++i) {
      const uint64_t x = words[i] ^ keys[i + (last ? kLastKeys : s)];
      lanes[i] += (x & 0xffffffff) * (x >> 32) + words[i ^ 1];
    }
    for (int64_t i = 0; i < kChecksumLanes && s == kChecksumStripes - 1 && !last; ++i)
      lanes[i] = (lanes[i] ^ lanes[i] >> 47 ^ keys[i + kMixKeys]) * kChecksumPrime;
  }
}

} // namespace boa

#endif // BOA_TEST_RUNTIME_LANES_H
