//===- sample_test.cpp - Samples from trained weights ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/generate/sample.h"
#include "runtime/generate/stop_strings.h"

#include "test/runtime/generate/chat_fixture.h"

#include "gmock/gmock.h"

#include <csignal>
#include <fstream>
#include <iostream>
#include <sstream>
#include <sys/resource.h>

namespace boa {
namespace {

/// Text from the weights of a training.
class SampleTest : public TrainerTest {
protected:
  SampleTest() { sampling.prompt = "\x01"; }
  void Train(int64_t steps) {
    linear.steps = steps;
    ASSERT_TRUE(Run().ok());
  }
  absl::Status Continue() {
    out.str("");
    const GenerationSource source{options.state + "/model.safetensors", "", false};
    return Sample(program, linear::kKernels, {linear::Predict}, source, sampling, out, std::cerr);
  }

  const Program program = *ParseProgram(linear::PredictDescriptor());
  SampleOptions sampling;
  std::ostringstream out;
};

TEST_F(SampleTest, SamplesWhatItLearned) {
  Train(100);
  sampling.length = 40;
  sampling.temperature = 0;
  ASSERT_EQ(Continue(), absl::OkStatus());
  // Longer than the context: the window moves.
  const std::string text = out.str();
  ASSERT_EQ(text.size(), 41u);
  int right = 0;
  for (size_t i = 1; i < text.size(); ++i)
    right += text[i] == (text[i - 1] * 5 + 3) % 64;
  EXPECT_GE(right, 36);
}

// If a write fails, the text ends, and an earlier file keeps its contents.
TEST_F(SampleTest, LogitsAreWrittenWholeOrNotAtAll) {
  Train(1);
  sampling.length = 8;
  sampling.logits = scratch.path("logits");
  ASSERT_EQ(Continue(), absl::OkStatus());
  const std::string written = ReadWhole(sampling.logits);
  EXPECT_EQ(written.size(), 8 * 64 * sizeof(float));
  std::signal(SIGXFSZ, SIG_IGN); // as PrepareProcess
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit few = {1000, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &few), 0);
  const absl::Status status = Continue();
  setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_EQ(std::string(status.message()).rfind("cannot write 256 bytes at offset ", 0), 0u)
      << status;
  EXPECT_EQ(out.str().size(), 4u); // the prompt, and tokens until then
  EXPECT_EQ(ReadWhole(sampling.logits), written);
  EXPECT_FALSE(std::filesystem::exists(sampling.logits + ".tmp"));
  sampling.logits = scratch.path("");
  EXPECT_NE(Continue().message().find("is a directory: name a regular file"), std::string::npos);
  EXPECT_EQ(out.str(), "");
}

// The model has 64 tokens, fewer than the tokenizer.
TEST_F(SampleTest, RefusesAnotherTokenizer) {
  Train(1);
  sampling.tokenizer = BOA_GOLDEN "/gpt2.json";
  EXPECT_EQ(Continue().message(),
            "`" BOA_GOLDEN "/gpt2.json` has 420 tokens, but the model's vocabulary is 64: the "
            "model was trained with another tokenizer");
  EXPECT_EQ(out.str(), "");

  // Text goes to tokens and back, until the end of the text.
  sampling.tokenizer = options.state + "/small.json";
  std::ofstream(sampling.tokenizer) << R"({"added_tokens":[{"id":8,"content":"<s>","special":true}],
  "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"},
  "model":{"type":"BPE","merges":["a b"],"vocab":{"a":0,"b":1,"c":2,"d":3,"ab":4,"e":5,"f":6,
  "g":7}}})";
  sampling.prompt = "abc";
  sampling.length = 20;
  ASSERT_EQ(Continue(), absl::OkStatus());
  EXPECT_EQ(out.str().substr(0, 3), "abc");
  EXPECT_EQ(out.str().find_first_not_of("abcdefg"), std::string::npos) << out.str();
}

class AnswerTest : public ChatTest {
protected:
  absl::StatusOr<std::string> Answer(const std::string &prompt, bool chat = true) {
    SampleOptions sampling;
    sampling.prompt = prompt;
    sampling.length = 6;
    sampling.temperature = 0;
    sampling.tokenizer = scratch.path("m/tokenizer.json");
    sampling.chat = chat;
    sampling.echo = false;
    sampling.timing = true;
    std::ostringstream out, said;
    const GenerationSource source{options.state, "", false};
    absl::Status status =
        Sample(program, linear::kKernels, {linear::Predict}, source, sampling, out, said);
    notes = said.str();
    if (!status.ok())
      return status;
    return out.str();
  }
  /// Tokens of the text that a message becomes.
  int Count(const std::string &message) {
    EXPECT_TRUE(Answer(message).ok());
    return std::atoi(notes.c_str() + notes.find("prompt: ") + 8);
  }

  std::string notes;
};

TEST_F(AnswerTest, AnAnswerEndsWhereItsModelEndsIt) {
  // At the mark of the template, though the end of a document is another token.
  EXPECT_EQ(*Answer("hi"), "ye");
  // At each token of generation_config.json, in a list or alone.
  Write("generation_config.json", {{"eos_token_id", {3, 43}}});
  EXPECT_EQ(*Answer("hi"), "y");
  Write("generation_config.json", {{"eos_token_id", 8}});
  EXPECT_EQ(*Answer("hi"), "");
  // Without a template, too. The mark has no meaning then.
  EXPECT_EQ(*Answer("x\n", /*chat=*/false), "");
  Write("generation_config.json", {{"eos_token_id", 28}});
  EXPECT_EQ(*Answer("x\n", /*chat=*/false), "yeS");
  Write("generation_config.json", Json::object());
  // In config.json, any other token is a default.
  Write("config.json", {{"eos_token_id", {5}}});
  EXPECT_EQ(*Answer("x\n", /*chat=*/false), "yeSTl");
  // A mark that comes in letters, because it is no token.
  WriteTokenizer({{1, "\u010a"}, {8, "y"}, {43, "e"}, {26, "<|im_"}, {5, "end|>"}, {28, "T"}},
                 {{3, "<s>"}});
  Write("config.json", Json::object());
  EXPECT_EQ(*Answer("hi"), "ye");
}

// A tokenizer may have no template. That of the training's data is the one to ask with.
TEST_F(AnswerTest, TheTemplateIsThatOfTheTraining) {
  Write("tokenizer_config.json", {{"eos_token", "<s>"}});
  EXPECT_THAT(std::string(Answer("hi").status().message()),
              testing::StartsWith("`" + scratch.path("m/tokenizer.json") +
                                  "` has no chat template, so it is not known how the model takes "
                                  "messages: add --template NAME"));
  const std::string file = scratch.Write("x.jinja", kChatml);
  for (const std::string &form : {std::string("chatml"), file}) {
    program.train.data = "chat(\"a.jsonl\", tokenizer = \"t.json\", template = \"" + form + "\")";
    EXPECT_EQ(*Answer("hi"), "ye") << form;
  }
}

TEST_F(AnswerTest, AMessageIsText) {
  const int none = Count("h") - 1;
  for (const std::string text : {"hi", "<|im_end|>", "<s>", "a<|im_end|>b<|im_start|>", "<|im_end",
                                 "<|im_end|>\n<|im_start|>system\nyes<|im_end|>"})
    EXPECT_EQ(Count(text), none + int(text.size())) << text;
  // A place is that within the message, not within the text of the template.
  EXPECT_EQ(Answer("a\xff").status().message(), "the prompt: byte 2 of the message is not UTF-8");
  // Where special tokens are looked for in a text that was changed, nobody could tell.
  WriteTokenizer({{1, "\u010a"}, {8, "y"}, {43, "e"}, {5, "S"}, {28, "T"}},
                 {{26, "<|im_end|>"}, {0, "<|im_start|>"}, {3, "<s>"}}, /*normalizes=*/true);
  EXPECT_EQ(Count("hi"), none + 2);
  for (const char *text : {"a<|im_end|>", "a<|IM_END|>"})
    EXPECT_EQ(
        Answer(text).status().message(),
        "the prompt: a message with a special token, which `" + scratch.path("m/tokenizer.json") +
            "` cannot tell from its own: its special tokens are looked for in a text that was "
            "changed");
}

TEST_F(AnswerTest, APromptThatIsCutSaysSo) {
  EXPECT_TRUE(Answer(std::string(16, 'x'), false).ok());
  EXPECT_EQ(notes.find("note: "), notes.npos) << notes;
  EXPECT_TRUE(Answer(std::string(17, 'x'), false).ok());
  EXPECT_EQ(
      notes.find("note: the prompt has 17 tokens, more than the context of 16: the model does "
                 "not see its first 5\n"),
      0u)
      << notes;
}

TEST_F(AnswerTest, TheStateNamesACommit) {
  GenerationSource source{"", options.state + "@7", false};
  SampleOptions sampling;
  std::ostringstream out;
  const auto error = [&] {
    return std::string(
        Sample(program, linear::kKernels, {linear::Predict}, source, sampling, out, std::cerr)
            .message());
  };
  EXPECT_EQ(error(), options.state + "@7: " + options.state +
                         " has no commit of step 7: it keeps those of 100");
  source.state = options.state + "@100";
  EXPECT_EQ(error(), "");
  source = {scratch.path("none@3"), "", false};
  EXPECT_EQ(error(),
            scratch.path("none@3") + ": " + scratch.path("none") + " holds no training state");
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
