//===- progress_test.cpp - The lines of steps that stay -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/progress.h"

#include "test/runtime/scratch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/ioctl.h>
#include <termios.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace boa {
namespace {

constexpr int64_t kSteps = 1234;

void PrintSteps(std::FILE *out) {
  Progress progress(out, 0, kSteps);
  for (int64_t step = 1; step <= kSteps; ++step) {
    StepRecord record;
    record.step = step;
    record.loss = 2;
    if (step == 123) {
      record.validation_loss = 2.5;
      progress.Step(record);
      progress.Say("step 123: validation loss 2.5000");
    } else {
      progress.Step(record);
    }
  }
}

/// The lines that a terminal shows in the end, each up to its loss.
std::vector<std::string> SeenLines(const std::string &output) {
  std::vector<std::string> lines(1);
  for (char c : output)
    if (c == '\n')
      lines.emplace_back();
    else if (c == '\r') // what follows stands over it
      lines.back().clear();
    else
      lines.back() += c;
  EXPECT_EQ(lines.back(), "");
  lines.pop_back();
  for (std::string &line : lines)
    line = line.substr(0, line.find("  loss"));
  return lines;
}

TEST(Progress, KeepsFewerLinesOfALongRun) {
  Scratch scratch;
  std::FILE *out = std::fopen(scratch.path("out").c_str(), "w");
  PrintSteps(out);
  std::fclose(out);
  const std::vector<std::string> lines = SeenLines(ReadWhole(scratch.path("out")));
  // A hundred, two at the evaluation, each tenth up to 1000, 1100, 1200, the last.
  ASSERT_EQ(lines.size(), 100u + 2 + 90 + 2 + 1);
  EXPECT_EQ(lines[0], "step    1/1234");
  EXPECT_EQ(lines[99], "step  100/1234");
  EXPECT_EQ(lines[101], "step  120/1234");
  EXPECT_EQ(lines[102], "step  123/1234");
  EXPECT_EQ(lines[103], "step 123: validation loss 2.5000");
  EXPECT_EQ(lines[104], "step  130/1234");
  EXPECT_EQ(lines.back(), "step 1234/1234");
}

// The newest step stands below them, and is written over.
TEST(Progress, ShowsTheSameLinesOnATerminal) {
  Scratch scratch;
  std::FILE *file = std::fopen(scratch.path("out").c_str(), "w");
  PrintSteps(file);
  std::fclose(file);

  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal) | unlockpt(terminal), 0);
  std::FILE *out = std::fopen(ptsname(terminal), "w");
  ASSERT_NE(out, nullptr);
  termios settings;
  ASSERT_EQ(tcgetattr(fileno(out), &settings), 0);
  cfmakeraw(&settings); // newlines stay as they are
  ASSERT_EQ(tcsetattr(fileno(out), TCSANOW, &settings), 0);
  const winsize size = {24, 200, 0, 0};
  ASSERT_EQ(ioctl(terminal, TIOCSWINSZ, &size), 0);
  std::string output;
  std::thread reader([&] {
    char block[4096];
    while (true) {
      const ssize_t bytes = read(terminal, block, sizeof block);
      if (bytes <= 0) // the other side was closed
        return;
      output.append(block, size_t(bytes));
    }
  });
  PrintSteps(out);
  std::fclose(out);
  reader.join();
  close(terminal);
  EXPECT_THAT(output, testing::HasSubstr("\r"));
  EXPECT_EQ(SeenLines(output), SeenLines(ReadWhole(scratch.path("out"))));
}

} // namespace
} // namespace boa
