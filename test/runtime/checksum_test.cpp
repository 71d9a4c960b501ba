//===- checksum_test.cpp - Tests of checksums -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/checksum.h"

#include "test/runtime/lanes.h"

#include "gtest/gtest.h"

#include <vector>

namespace boa {
namespace {

/// The bytes that xxHash's own tests sum.
std::vector<uint8_t> SanityBytes(int64_t count) {
  std::vector<uint8_t> bytes;
  for (uint64_t state = 2654435761; int64_t(bytes.size()) < count; state *= 11400714785074694797u)
    bytes.push_back(uint8_t(state >> 56));
  return bytes;
}

std::vector<uint64_t (*)(const void *, int64_t)> Ways() {
  std::vector<uint64_t (*)(const void *, int64_t)> ways = {Checksum, ChecksumBaseline};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2"))
    ways.push_back(ChecksumAvx2);
#endif
  return ways;
}

// A state is read on other processors than the one that wrote it, and by later
// versions: the values are those of XXH3, as xxHash publishes them.
TEST(Checksum, PublishedValues) {
  const std::pair<int64_t, uint64_t> published[] = {
      {0, 0x2d06800538d394c2},    {1, 0xc44bdff4074eecdb},    {6, 0x27b56a84cd2d7325},
      {12, 0xa713daf0dfbb77e7},   {24, 0xa3fe70bf9d3510eb},   {48, 0x397da259ecba1f11},
      {80, 0xbcdefbbb2c47c90a},   {195, 0xcd94217ee362ec3a},  {403, 0xcdeb804d65c6dea4},
      {512, 0x617e49599013cb6b},  {2048, 0xdd59e2c3a5f038e0}, {2240, 0x6e73a90539cf2948},
      {2367, 0xcb37aeb9e5d361ed},
  };
  const std::vector<uint8_t> bytes = SanityBytes(2367);
  for (auto way : Ways())
    for (auto [count, sum] : published)
      EXPECT_EQ(way(bytes.data(), count), sum) << count;
}

// Whole chunks, at any alignment; every byte counts.
TEST(Checksum, AllWaysAgree) {
  for (int64_t count : {4096, 65536 + 1, 3 << 20}) {
    std::vector<uint8_t> bytes = SanityBytes(count + 64);
    for (int64_t shift : {0, 1, 31}) {
      const uint64_t sum = ChecksumBaseline(bytes.data() + shift, count);
      for (auto way : Ways()) {
        EXPECT_EQ(way(bytes.data() + shift, count), sum);
        for (int64_t at : {int64_t(0), count / 2, count - 1}) {
          bytes[shift + at] ^= 1;
          EXPECT_NE(way(bytes.data() + shift, count), sum) << at;
          bytes[shift + at] ^= 1;
        }
      }
    }
  }
}

// A device makes the lanes, block by block; the number is the same.
TEST(Checksum, OfLanes) {
  for (int64_t count : {1024, 4096, 8192, 69632, 1 << 20}) {
    const std::vector<uint8_t> bytes = SanityBytes(count);
    uint64_t lanes[kChecksumLanes];
    PlainLanes(bytes.data(), count, ChecksumKeys(), lanes);
    EXPECT_EQ(FinishChecksum(lanes, count), Checksum(bytes.data(), count)) << count;
  }
}

} // namespace
} // namespace boa
