//===- loss_settings_test.cpp - What commits keep beside the state ------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/loss_settings.h"

#include "gtest/gtest.h"

namespace boa {
namespace {

// Texts and batches may change between commits; a state of version 2 did not count.
TEST(CountSamples, AddsWhatCameAfterTheCommit) {
  CommitRecord commit;
  std::map<std::string, int64_t> samples = CountSamples(commit, {{"a", 24}});
  EXPECT_EQ(samples, (std::map<std::string, int64_t>{{"a", 24}}));
  commit.step = 3;
  commit.samples = samples;
  samples = CountSamples(commit, {{"b", 4}});
  EXPECT_EQ(samples, (std::map<std::string, int64_t>{{"a", 24}, {"b", 4}}));
  commit.samples.clear();
  commit.extra = {{"data", "a"}, {"micro_batches", "5"}, {"micro_batch", "6"}};
  samples = CountSamples(commit, {{"a", 4}});
  EXPECT_EQ(samples, (std::map<std::string, int64_t>{{"a", 3 * 30 + 4}}));
}

// Tokens of another tokenizer mean other texts. Where they are the same ones, they do not.
TEST(DescribeOtherTokens, NamesAnotherTokenizer) {
  const Settings committed = {{"files of a.txt", "1 file with fingerprint 1"},
                              {"call of a.txt", "text(\"a.txt\", tokenizer = \"old.json\")"},
                              {"tokenizer of a.txt", "old"}};
  auto with = [&](const Settings &more) {
    Settings now = more;
    now.insert(committed.begin(), committed.end());
    return DescribeOtherTokens(committed, now);
  };
  EXPECT_EQ(with({}), "");
  EXPECT_EQ(with({{"tokenizer of a.txt", "new"}}), "");
  EXPECT_EQ(with({{"tokenizer of moved/a.txt", "new"},
                  {"files of moved/a.txt", "1 file with fingerprint 1"}}),
            "");
  EXPECT_EQ(with({{"tokenizer of b.txt", "old"}, {"files of b.txt", "1 file"}}), "");
  EXPECT_EQ(with({{"tokenizer of b.txt", "new"},
                  {"files of b.txt", "1 file"},
                  {"call of b.txt", "text(\"b.txt\", tokenizer = \"new.json\")"}}),
            "text(\"b.txt\", tokenizer = \"new.json\"): its tokenizer is not the one of the data "
            "that the state was trained on, so its tokens mean other texts");
  // An earlier commit, or one of bytes, does not say.
  EXPECT_EQ(DescribeOtherTokens({}, committed), "");
}

TEST(DescribeOtherTokens, NamesOtherSpecialTokens) {
  const Settings committed = {{"special tokens", "5 with fingerprint 1"}};
  EXPECT_EQ(DescribeOtherTokens(committed, committed), "");
  EXPECT_EQ(DescribeOtherTokens({}, committed), "");
  EXPECT_EQ(
      DescribeOtherTokens(committed, {{"special tokens", "4 with fingerprint 2"}}),
      "the special tokens of the data, which masked training leaves alone, have changed since "
      "the commit: they were 5 with fingerprint 1, and are 4 with fingerprint 2");
}

// The files are the same ones, so the call is named.
TEST(CheckFilesOfData, NamesAnotherCall) {
  auto settings = [](const std::string &print, const std::string &form) -> Settings {
    return {{"files of a.jsonl", "1 file with fingerprint " + print},
            {"file of a.jsonl: a.jsonl", print},
            {"call of a.jsonl", "chat(\"a.jsonl\", template = \"" + form + "\")"}};
  };
  const std::string error(
      CheckFilesOfData(settings("1", "chatml"), settings("2", "llama3")).message());
  EXPECT_NE(error.find(". They were read by chat(\"a.jsonl\", template = \"chatml\"), and are by "
                       "chat(\"a.jsonl\", template = \"llama3\"). Bring the former"),
            std::string::npos)
      << error;
}

TEST(DescribeWarmup, IsLongerThanTheRun) {
  TrainSettings train;
  train.optimizer.peak = 0.01;
  train.optimizer.warmup = train.steps = 100;
  EXPECT_EQ(DescribeWarmup(train), "");
  train.optimizer.warmup = 101;
  EXPECT_EQ(DescribeWarmup(train), "note: the learning rate rises for 101 steps (warmup), but the "
                                   "run ends after 100: it does not reach its peak of 0.01");
}

} // namespace
} // namespace boa
