//===- interrupt_test.cpp - Signals that end a process --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/interrupt.h"

#include "gtest/gtest.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <unistd.h>

namespace boa {
namespace {

constexpr std::chrono::milliseconds kLater(300);

TEST(Interrupts, AreNotedWhileAGuardLives) {
  EXPECT_FALSE(Interrupted());
  {
    InterruptGuard guard;
    raise(SIGTERM);
    raise(SIGHUP);
    EXPECT_EQ(guard.signal(), SIGTERM);
    EXPECT_TRUE(Interrupted());
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(InterruptedFor(std::chrono::nanoseconds(0), begin));
    EXPECT_FALSE(InterruptedFor(std::chrono::hours(1), begin));
    EXPECT_EQ(SignalOf(Interruption()), SIGTERM);
    EXPECT_EQ(IfInterrupted(Interruption(), "what was kept").message(), "what was kept");
    EXPECT_EQ(SignalOf(IfInterrupted(Interruption(), "what was kept")), SIGTERM);
    EXPECT_EQ(IfInterrupted(absl::CancelledError("else"), "what was kept").message(), "else");
  }
  EXPECT_FALSE(Interrupted());
}

TEST(Interrupts, TheFirstSaysWhatTheEndWaitsFor) {
  const auto say = [](std::initializer_list<int> signals) {
    InterruptGuard guard;
    SetStopNote("an older note, which is longer\n");
    SetStopNote("waits for a step\n");
    for (int signal : signals)
      raise(signal);
    _exit(0);
  };
  EXPECT_EXIT(say({SIGTERM, SIGINT}), testing::ExitedWithCode(0), "^waits for a step\n$");
  EXPECT_EXIT(say({SIGHUP, SIGPIPE}), testing::ExitedWithCode(0), "^$");
}

// `timeout` sends SIGTERM to a process, and then to its group.
TEST(Interrupts, ASecondOneEndsAtOnceUnlessItIsTheSame) {
  RecordProperty("depends_on_time", "two signals within a quarter of a second are one");
  const auto end = [](std::initializer_list<int> signals, std::chrono::milliseconds pause) {
    InterruptGuard guard;
    for (int signal : signals) {
      raise(signal);
      std::this_thread::sleep_for(pause);
    }
    _exit(0);
  };
  EXPECT_EXIT(end({SIGTERM, SIGTERM}, {}), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(end({SIGINT, SIGINT}, {}), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(end({SIGTERM, SIGHUP, SIGHUP, SIGPIPE, SIGTERM, SIGINT}, {}),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(end({SIGTERM, SIGTERM}, kLater), testing::ExitedWithCode(128 + SIGTERM), "");
  EXPECT_EXIT(end({SIGTERM, SIGINT}, kLater), testing::ExitedWithCode(128 + SIGINT), "");
  EXPECT_EXIT(end({SIGINT, SIGTERM}, kLater), testing::ExitedWithCode(128 + SIGTERM), "");
  EXPECT_EXIT(end({SIGTERM, SIGHUP, SIGPIPE, SIGHUP}, kLater), testing::ExitedWithCode(0), "");
}

// A handler on any thread prints a whole note, whichever it finds.
TEST(Interrupts, NotesChangeWhileAHandlerRuns) {
  const auto race = [] {
    InterruptGuard guard;
    SetStopNote("bbbbbbbb\n");
    std::atomic<bool> over{false};
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      raise(SIGTERM);
      over = true;
    });
    while (!over) {
      SetStopNote("aaaaaaaaaaaaaaaa\n");
      SetStopNote("bbbbbbbb\n");
    }
    other.join();
    _exit(0);
  };
  EXPECT_EXIT(race(), testing::ExitedWithCode(0), "^(a{16}|b{8})\n$");
}

} // namespace
} // namespace boa
