//===- sample_test.cpp - Samples from trained weights --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/sample.h"

#include "test/runtime/trainer/trainer_fixture.h"

#include <sstream>

namespace boa {
namespace {

TEST_F(TrainerTest, SamplesWhatItLearned) {
  linear.steps = 100;
  ASSERT_TRUE(Run().ok());
  absl::StatusOr<Program> program = ParseProgram(linear::PredictDescriptor());
  ASSERT_TRUE(program.ok()) << program.status();
  SampleOptions sampling;
  sampling.prompt = "\x01";
  sampling.length = 40;
  sampling.temperature = 0;
  std::ostringstream out;
  absl::Status status = Sample(*program, linear::kKernels, linear::Predict,
                               options.state + "/model.safetensors", sampling, out);
  ASSERT_TRUE(status.ok()) << status;
  // Longer than the context: the window moves.
  const std::string text = out.str();
  ASSERT_EQ(text.size(), 41u);
  int right = 0;
  for (size_t i = 1; i < text.size(); ++i)
    right += text[i] == (text[i - 1] * 5 + 3) % 64;
  EXPECT_GE(right, 36);
}

TEST(PickToken, DrawsFromTheDistribution) {
  const float logits[] = {0, 1, 3, 2};
  EXPECT_EQ(PickToken(logits, 4, 0, 0, 0.99), 2);
  EXPECT_EQ(PickToken(logits, 4, 1, 1, 0.99), 2);
  // e^0 + e^1 + e^2 + e^3 = 31.19; the first has 3.2% of it.
  EXPECT_EQ(PickToken(logits, 4, 1, 0, 0.03), 0);
  EXPECT_EQ(PickToken(logits, 4, 1, 0, 0.04), 1);
  EXPECT_EQ(PickToken(logits, 4, 1, 0, 0.999999), 3);
  // Among the two likeliest.
  EXPECT_EQ(PickToken(logits, 4, 1, 2, 0.0), 2);
  EXPECT_EQ(PickToken(logits, 4, 1, 2, 0.999), 3);
}

} // namespace
} // namespace boa
