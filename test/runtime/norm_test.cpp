//===- norm_test.cpp - Sums of squares, and halves of weights -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/norm.h"
#include "runtime/kernels/master.h"

#include "runtime/support/thread_pool.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace boa {
namespace {

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

std::vector<float> Gradient(int64_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(random) * 1e-2f;
  return values;
}

TEST(Master, HighAndLowGiveBackEveryBit) {
  auto check = [](uint32_t bits) {
    ASSERT_EQ(JoinMaster(MasterHigh(bits), MasterLow(bits)), bits) << std::hex << bits;
  };
  for (uint32_t high = 0; high < 0x10000; ++high)
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      check(high << 16 | low);
  std::mt19937 random(3);
  for (int i = 0; i < 1000000; ++i)
    check(random());
}

TEST(Master, HighIsTheNearestBf16) {
  EXPECT_EQ(MasterHigh(BitsOf(1.0f)), 0x3f80);
  EXPECT_EQ(MasterHigh(0x3f807fff), 0x3f80);
  EXPECT_EQ(MasterHigh(0x3f808000), 0x3f81); // ties away from zero
  EXPECT_EQ(MasterLow(0x3f808000), -0x8000);
  EXPECT_EQ(MasterHigh(0xbf808001), 0xbf81);
}

TEST(SumOfSquares, AgreesWithLongDouble) {
  for (int64_t count : {0, 1, 15, 16, 17, 1000, 16384, 16385, 300001}) {
    const std::vector<float> values = Gradient(count);
    long double expected = 0;
    for (float value : values)
      expected += (long double)(value)*value;
    EXPECT_NEAR(SumOfSquares(values.data(), count), double(expected), 1e-13 * double(expected))
        << count;
  }
}

TEST(SumOfSquares, ThreadsChangeNoBit) {
  const std::vector<float> values = Gradient(300001);
  SetThreads(1);
  double one = SumOfSquares(values.data(), 300001);
  for (int64_t threads : {2, 3, 8}) {
    SetThreads(threads);
    EXPECT_EQ(SumOfSquares(values.data(), 300001), one);
  }
  SetThreads(0);
}

TEST(SumOfSquares, PassesOnInfinityAndNan) {
  std::vector<float> values(100000, 1.0f);
  values[77777] = INFINITY;
  EXPECT_EQ(SumOfSquares(values.data(), 100000), INFINITY);
  values[5] = NAN;
  EXPECT_TRUE(std::isnan(SumOfSquares(values.data(), 100000)));
}

} // namespace
} // namespace boa
