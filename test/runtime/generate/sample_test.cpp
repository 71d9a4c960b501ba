//===- sample_test.cpp - Samples from trained weights ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/generate/sample.h"
#include "runtime/generate/stop_strings.h"

#include "test/runtime/trainer/trainer_fixture.h"

#include <fstream>
#include <iostream>
#include <sstream>

namespace boa {
namespace {

TEST_F(TrainerTest, SamplesWhatItLearned) {
  linear.steps = 100;
  ASSERT_TRUE(Run().ok());
  absl::StatusOr<Program> program = ParseProgram(linear::PredictDescriptor());
  ASSERT_TRUE(program.ok()) << program.status();
  const GenerationSource source{options.state + "/model.safetensors", "", false};
  SampleOptions sampling;
  sampling.prompt = "\x01";
  sampling.length = 40;
  sampling.temperature = 0;
  std::ostringstream out;
  absl::Status status =
      Sample(*program, linear::kKernels, {linear::Predict}, source, sampling, out, std::cerr);
  ASSERT_TRUE(status.ok()) << status;
  // Longer than the context: the window moves.
  const std::string text = out.str();
  ASSERT_EQ(text.size(), 41u);
  int right = 0;
  for (size_t i = 1; i < text.size(); ++i)
    right += text[i] == (text[i - 1] * 5 + 3) % 64;
  EXPECT_GE(right, 36);
}

// The model has 64 tokens, fewer than the tokenizer.
TEST_F(TrainerTest, RefusesAnotherTokenizer) {
  linear.steps = 1;
  ASSERT_TRUE(Run().ok());
  absl::StatusOr<Program> program = ParseProgram(linear::PredictDescriptor());
  ASSERT_TRUE(program.ok()) << program.status();
  const GenerationSource source{options.state + "/model.safetensors", "", false};
  SampleOptions sampling;
  sampling.tokenizer = BOA_GOLDEN "/gpt2.json";
  std::ostringstream out;
  absl::Status status =
      Sample(*program, linear::kKernels, {linear::Predict}, source, sampling, out, std::cerr);
  EXPECT_EQ(status.message(), "`" BOA_GOLDEN "/gpt2.json` has 420 tokens, but the model's "
                              "vocabulary is 64: the model was trained with another tokenizer");
  EXPECT_EQ(out.str(), "");

  // Text goes to tokens and back, until the end of the text.
  sampling.tokenizer = options.state + "/small.json";
  std::ofstream(sampling.tokenizer) << R"({"added_tokens":[{"id":8,"content":"<s>","special":true}],
  "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"},
  "model":{"type":"BPE","merges":["a b"],"vocab":{"a":0,"b":1,"c":2,"d":3,"ab":4,"e":5,"f":6,
  "g":7}}})";
  sampling.prompt = "abc";
  sampling.length = 20;
  status = Sample(*program, linear::kKernels, {linear::Predict}, source, sampling, out, std::cerr);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(out.str().substr(0, 3), "abc");
  EXPECT_EQ(out.str().find_first_not_of("abcdefg"), std::string::npos) << out.str();
}

SampleOptions Drawing(double temperature, int64_t top_k = 0, double top_p = 1) {
  SampleOptions options;
  options.temperature = temperature;
  options.top_k = top_k;
  options.top_p = top_p;
  return options;
}

TEST(PickToken, DrawsFromTheDistribution) {
  const float logits[] = {0, 1, 3, 2};
  EXPECT_EQ(PickToken(logits, 4, Drawing(0), 0.99), 2);
  EXPECT_EQ(PickToken(logits, 4, Drawing(1, 1), 0.99), 2);
  // e^0 + e^1 + e^2 + e^3 = 31.19; the first has 3.2% of it.
  EXPECT_EQ(PickToken(logits, 4, Drawing(1), 0.03), 0);
  EXPECT_EQ(PickToken(logits, 4, Drawing(1), 0.04), 1);
  EXPECT_EQ(PickToken(logits, 4, Drawing(1), 0.999999), 3);
  // Among the two likeliest.
  EXPECT_EQ(PickToken(logits, 4, Drawing(1, 2), 0.0), 2);
  EXPECT_EQ(PickToken(logits, 4, Drawing(1, 2), 0.999), 3);
  // The likeliest has 64.4%, the second 23.7%.
  EXPECT_EQ(PickToken(logits, 4, Drawing(1, 0, 0.64), 0.999), 2);
  EXPECT_EQ(PickToken(logits, 4, Drawing(1, 0, 0.65), 0.999), 3);
  EXPECT_EQ(PickToken(logits, 4, Drawing(1, 0, 0.88), 0.0), 2);
  EXPECT_EQ(PickToken(logits, 4, Drawing(1, 0, 0.89), 0.0), 1);
  // Of shares among those that top_k leaves.
  EXPECT_EQ(PickToken(logits, 4, Drawing(1, 2, 0.7), 0.999), 2);
}

TEST(StopStrings, EndATextBeforeTheFirst) {
  StopStrings stop({"END", "\n\n"});
  EXPECT_EQ(stop.Add("an E"), "an ");
  EXPECT_EQ(stop.Add("N"), "");
  EXPECT_EQ(stop.Add("EN"), "EN");
  EXPECT_FALSE(stop.Found());
  EXPECT_EQ(stop.Add("D more\n\n"), "");
  EXPECT_TRUE(stop.Found());
  EXPECT_EQ(stop.Finish(), "");
  // A text that ends by itself has all of it.
  StopStrings other({"stop"});
  EXPECT_EQ(other.Add("do st"), "do ");
  EXPECT_EQ(other.Finish(), "st");
}

} // namespace
} // namespace boa
