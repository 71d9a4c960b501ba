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

// Texts and batches may change between commits.
TEST(CountSamples, AddsWhatCameAfterTheCommit) {
  CommitRecord commit;
  std::map<std::string, int64_t> samples = CountSamples(commit, {{"a", 24}});
  EXPECT_EQ(samples, (std::map<std::string, int64_t>{{"a", 24}}));
  commit.step = 3;
  commit.samples = samples;
  samples = CountSamples(commit, {{"b", 4}});
  EXPECT_EQ(samples, (std::map<std::string, int64_t>{{"a", 24}, {"b", 4}}));
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
