//===- GeluTest.cpp - Exact GELU over its whole range ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In f32 against erfc in double. The other cases of this folder have arguments of about 1
// alone. Far below zero results are small, and their digits must be right, too.
//
//===----------------------------------------------------------------------===//

#include "test/gradients/Harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace boa::testing;

namespace {

TEST(Gelu, IsExactOverItsRange) {
  constexpr int64_t kCount = 40001;
  const std::string type = "tensor<" + std::to_string(kCount) + "xf32>";
  const std::string text = "func.func @f(%x: " + type + ") -> " + type +
                           " {\n  %y = boa.gelu %x exact : " + type + "\n  return %y : " + type +
                           "\n}\n";
  Values x(kCount);
  for (int64_t i = 0; i < kCount; ++i)
    x[i] = static_cast<float>(-12.5 + 25.0 * static_cast<double>(i) / (kCount - 1));
  const Values y = Compiled::get(text)->run({x}).front();
  const Values dx = Compiled::get(text, /*gradient=*/true)->run({x, Values(kCount, 1)}).front();
  double ofResult = 0, ofSlope = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const double normal = std::erfc(-x[i] / std::sqrt(2.0)) / 2;
    const double slope = normal + x[i] * std::exp(-x[i] * x[i] / 2) / std::sqrt(2 * M_PI);
    if (x[i] != 0)
      ofResult = std::max(ofResult, std::abs(y[i] / (x[i] * normal) - 1));
    // The slope has a zero, where digits cancel.
    ofSlope = std::max(ofSlope, std::abs(dx[i] - slope) / (normal + std::abs(slope)));
  }
  EXPECT_LT(ofResult, 1e-6);
  EXPECT_LT(ofSlope, 2e-6);
}

// Where the exponential is below all numbers, and where a square is above them.
TEST(Gelu, HasEndsThatAreExact) {
  const std::string type = "tensor<6xf32>";
  const std::string text = "func.func @f(%x: " + type + ") -> " + type +
                           " {\n  %y = boa.gelu %x exact : " + type + "\n  return %y : " + type +
                           "\n}\n";
  const Values x = {-3e38f, -1e20, -50, 50, 1e20, 3e38f};
  const Values y = Compiled::get(text)->run({x}).front();
  const Values dx = Compiled::get(text, /*gradient=*/true)->run({x, Values(6, 1)}).front();
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(y[i], x[i] < 0 ? 0 : static_cast<float>(x[i])) << x[i];
    EXPECT_EQ(dx[i], x[i] < 0 ? 0 : 1) << x[i];
  }
}

// NaN stays, and the numbers beside it are what they are without it.
TEST(Exp, KeepsNan) {
  const std::string type = "tensor<19xf32>";
  const std::string text = "func.func @f(%x: " + type + ") -> " + type +
                           " {\n  %y = boa.silu %x : " + type + "\n  return %y : " + type + "\n}\n";
  const double infinity = std::numeric_limits<double>::infinity();
  Values x(19);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(0.37 * double(i) - 3);
  const Values without = Compiled::get(text)->run({x}).front();
  x[2] = x[17] = std::numeric_limits<double>::quiet_NaN();
  x[5] = infinity;
  x[7] = -1e30;
  const Values y = Compiled::get(text)->run({x}).front();
  for (size_t i = 0; i < x.size(); ++i)
    if (i == 2 || i == 17)
      EXPECT_TRUE(std::isnan(y[i])) << i;
    else if (i == 5)
      EXPECT_EQ(y[i], infinity);
    else if (i == 7)
      EXPECT_LE(std::abs(y[i]), 1e-7);
    else
      EXPECT_EQ(y[i], without[i]) << i;
}

} // namespace
