//===- read_ahead_test.cpp - Batches of the next steps --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/read_ahead.h"

#include "runtime/support/interrupt.h"
#include "test/runtime/refuse_threads.h"
#include "test/runtime/scratch.h"
#include "test/runtime/trainer/linear.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include <csignal>
#include <optional>

namespace boa {
namespace {

class ReadAheadTest : public testing::Test {
protected:
  void Open(const std::string &text, int64_t steps) {
    linear::Options options;
    options.data = absl::StrCat("tokens(\"", scratch.Write("text", text), "\", uint8)");
    options.steps = steps;
    absl::StatusOr<Program> parsed = ParseProgram(linear::Descriptor(options));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    program = *std::move(parsed);
    absl::StatusOr<Data> opened = Data::Open(DataOptions(program));
    ASSERT_TRUE(opened.ok()) << opened.status();
    data = *std::move(opened);
  }

  Scratch scratch;
  Program program;
  std::optional<Data> data;
};

TEST_F(ReadAheadTest, GivesEachStepItsBatches) {
  Open(linear::Text(20000), 40);
  ReadAhead reader(program, *data);
  for (int64_t step = 7; step <= 40; ++step) {
    auto batches = reader.Take(step);
    ASSERT_TRUE(batches.ok()) << batches.status();
    std::vector<int32_t> tokens((*batches)->tokens[1].size()), targets(tokens.size());
    ASSERT_TRUE(data->FillTraining(step, 1, tokens.data(), targets.data()).ok());
    EXPECT_EQ((*batches)->tokens[1], tokens);
    EXPECT_EQ((*batches)->targets[1], targets);
    EXPECT_EQ((*batches)->counted(), int64_t(2 * tokens.size()));
  }
}

TEST_F(ReadAheadTest, GivesAnErrorToItsStep) {
  std::string text = linear::Text(20000);
  text[10000] = 'x'; // outside of the vocabulary of 64, and not at an end
  Open(text, 1000);
  ReadAhead reader(program, *data);
  int64_t step = 1;
  for (; step <= 1000; ++step)
    if (auto batches = reader.Take(step); !batches.ok()) {
      EXPECT_TRUE(absl::StrContains(batches.status().message(), "token 120 at byte 10000"))
          << batches.status();
      break;
    }
  EXPECT_LE(step, 1000);
  EXPECT_TRUE(step == 1 || data->FillTraining(step - 1, 0, std::vector<int32_t>(64).data(),
                                              std::vector<int32_t>(64).data())
                               .ok());
}

// Whether nothing, something or all was taken.
TEST_F(ReadAheadTest, Ends) {
  Open(linear::Text(20000), 5);
  for (int64_t taken : {0, 1, 3, 5}) {
    ReadAhead reader(program, *data);
    for (int64_t step = 1; step <= taken; ++step)
      EXPECT_TRUE(reader.Take(step).ok());
  }
}

// A slow disk does not hold up the end of a run.
TEST_F(ReadAheadTest, ASignalEndsTheWait) {
  Open(linear::Text(20000), 5);
  ReadAhead reader(program, *data);
  EXPECT_TRUE(reader.Take(1).ok());
  const InterruptGuard guard;
  raise(SIGTERM);
  for (int64_t step = 2; step <= 5; ++step)
    if (auto batches = reader.Take(step); !batches.ok()) // some may have been read before
      EXPECT_EQ(SignalOf(batches.status()), SIGTERM);
  EXPECT_EQ(SignalOf(reader.Take(6).status()), SIGTERM);
}

TEST_F(ReadAheadTest, AThreadThatCannotStartIsAnError) {
  Open(linear::Text(20000), 5);
  WithoutNewThreads([&] {
    ReadAhead reader(program, *data);
    EXPECT_EQ(reader.Take(1).status().message(), CannotStart("the thread that reads data"));
  });
}

} // namespace
} // namespace boa
