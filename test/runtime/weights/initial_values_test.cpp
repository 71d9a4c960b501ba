//===- initial_values_test.cpp - Initial parameters -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/initial_values.h"

#include "test/runtime/trainer/linear.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace boa {
namespace {

class InitializeTest : public testing::Test {
protected:
  InitializeTest() {
    program = *ParseProgram(linear::Descriptor({}));
    parameter = &program.groups[0].parameters[0];
  }
  std::vector<float> Values(int64_t entry, int64_t first, int64_t count) {
    std::vector<float> values(count);
    InitialValues(program, 0, entry, 0, first, count, values.data());
    return values;
  }

  Program program;
  Parameter *parameter;
};

// Chunks and threads cut a parameter anywhere, in the middle of a pair too.
TEST_F(InitializeTest, DoesNotDependOnHowItIsCut) {
  for (const char *kind : {"normal", "uniform"}) {
    parameter->init = kind;
    const std::vector<float> whole = Values(3, 0, 1000);
    std::vector<float> pieces;
    for (int64_t count : {1, 2, 3, 7, 500, 487})
      for (float value : Values(3, pieces.size(), count))
        pieces.push_back(value);
    EXPECT_EQ(pieces, whole);
  }
}

TEST_F(InitializeTest, EntriesAndSeedsDiffer) {
  const std::vector<float> values = Values(0, 0, 100);
  EXPECT_EQ(values, Values(0, 0, 100));
  EXPECT_NE(values, Values(1, 0, 100));
  program.train.seed = 2;
  EXPECT_NE(values, Values(0, 0, 100));
}

TEST_F(InitializeTest, HasTheMomentsAskedFor) {
  constexpr int64_t kCount = 1000000;
  parameter->init_scale = 0.5;
  for (const char *kind : {"normal", "uniform"}) {
    parameter->init = kind;
    double sum = 0, squares = 0, largest = 0;
    for (float value : Values(0, 0, kCount)) {
      sum += value;
      squares += value * value;
      largest = std::max<double>(largest, std::abs(value));
    }
    const bool normal = parameter->init == "normal";
    EXPECT_NEAR(sum / kCount, 0, 0.002);
    EXPECT_NEAR(std::sqrt(squares / kCount), normal ? 0.5 : 0.5 / std::sqrt(3), 0.001);
    // The largest of a million normal values is near 4.9 deviations.
    EXPECT_NEAR(largest, normal ? 2.45 : 0.5, normal ? 0.3 : 1e-5);
  }
}

TEST_F(InitializeTest, FillsWithConstants) {
  parameter->init = "ones";
  EXPECT_EQ(Values(0, 5, 3), std::vector<float>(3, 1.0f));
  parameter->init = "zeros";
  EXPECT_EQ(Values(0, 5, 3), std::vector<float>(3, 0.0f));
}

} // namespace
} // namespace boa
