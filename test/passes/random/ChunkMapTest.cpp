//===- ChunkMapTest.cpp - Runs of chunks against an array -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ChunkMap.h"
#include "test/passes/random/Random.h"

#include "gtest/gtest.h"

#include <vector>

namespace boa::random {
namespace {

constexpr int64_t kFirst = 3, kCount = 12;

TEST(ChunkMap, HoldsWhatAnArrayHolds) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    ChunkMap<int> map(kFirst, kCount, 0), other(kFirst, kCount, 1);
    std::vector<int> array(kCount, 0), others(kCount, 1);
    for (int change = 0; change < 40; ++change) {
      int64_t at = random.between(0, kCount - 1), count = random.between(1, kCount - at);
      if (random.chance(0.3)) {
        map.copy(other, kFirst + at, count);
        std::copy_n(others.begin() + at, count, array.begin() + at);
      } else {
        bool first = random.chance(0.7);
        int value = int(random.between(0, 2));
        (first ? map : other).set(kFirst + at, count, value);
        std::fill_n((first ? array : others).begin() + at, count, value);
      }
      std::vector<int> seen;
      int runs = 0, last = -1;
      map.forEach(kFirst, kCount, [&](ChunkMap<int>::Run run) {
        EXPECT_EQ(run.first, kFirst + int64_t(seen.size()));
        EXPECT_NE(run.value, last) << "runs are maximal";
        seen.insert(seen.end(), run.count, last = run.value);
        ++runs;
      });
      ASSERT_EQ(seen, array);
      ASSERT_EQ(map == other, array == others);
      // A part of it, cut at both ends.
      seen.clear();
      map.forEach(kFirst + at, count,
                  [&](ChunkMap<int>::Run run) { seen.insert(seen.end(), run.count, run.value); });
      ASSERT_EQ(seen, std::vector<int>(array.begin() + at, array.begin() + at + count));
    }
  }
}

} // namespace
} // namespace boa::random
