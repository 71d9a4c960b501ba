//===- endings_test.cpp - How a run ends before its last step ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Signals, closed terminals and pipes that nobody reads: the run commits and says
// so in its status. Refusals: nothing is lost.
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/main.h"
#include "runtime/trainer/process.h"

#include "test/runtime/scratch.h"
#include "test/runtime/trainer/linear.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace boa {
namespace {

/// A trainer of many small steps as a process of a session of its own.
class EndingsTest : public testing::Test {
protected:
  EndingsTest() { data = scratch.Write("text", linear::Text(20000)); }
  ~EndingsTest() override {
    if (process > 0 && waitpid(process, nullptr, WNOHANG) == 0) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
  }

  /// `out` becomes its stdout and stderr; -1: the file "output". Where it is a
  /// terminal it becomes the one that controls the session.
  void Start(std::vector<std::string> flags, int out = -1, int ignored = 0,
             const std::string &metrics = "") {
    std::vector<std::string> arguments = {BOA_LINEAR_TRAINER, "data=" + data,
                                          "--state=" + scratch.path("state"),
                                          "--metrics=" + (metrics.empty() ? Metrics() : metrics)};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    std::vector<char *> pointers;
    for (std::string &argument : arguments)
      pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const std::string output = scratch.path("output");
    // gtest's own process may ignore some.
    process = fork();
    if (process != 0)
      return;
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ})
      std::signal(signal, signal == ignored ? SIG_IGN : SIG_DFL);
    const rlimit limit = {file_bytes, file_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    setsid();
    if (out >= 0 && isatty(out))
      close(open(ttyname(out), O_RDWR)); // the first that a session opens is its terminal
    dup2(out >= 0 ? out : file, 1);
    dup2(out >= 0 ? out : file, 2);
    for (int fd = 3; fd < 64; ++fd)
      close(fd);
    execv(pointers[0], pointers.data());
    _exit(127);
  }

  bool AwaitLines(size_t count) {
    for (;;) {
      const std::string text = ReadWhole(Metrics());
      if (size_t(std::count(text.begin(), text.end(), '\n')) >= count)
        return true;
      siginfo_t info = {};
      waitid(P_PID, process, &info, WEXITED | WNOHANG | WNOWAIT);
      if (info.si_pid == process)
        return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  /// Until it handles a signal, or is no more.
  void AwaitHandler(int signal) {
    for (bool handles = false; !handles;) {
      std::ifstream status("/proc/" + std::to_string(process) + "/status");
      std::string word;
      while (status >> word && word != "SigCgt:")
        ;
      handles = !(status >> word) || (std::stoull(word, nullptr, 16) >> (signal - 1) & 1) != 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  /// The exit status, or minus the signal that ended it.
  int Wait() {
    int status = 0;
    waitpid(process, &status, 0);
    process = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string Metrics() { return scratch.path("metrics"); }
  std::string Output() { return ReadWhole(scratch.path("output")); }
  size_t Lines() {
    const std::string text = ReadWhole(Metrics());
    return std::count(text.begin(), text.end(), '\n');
  }
  /// That the last step that the metrics tell of is the one that is committed.
  void ExpectCommitted() {
    const size_t done = Lines();
    Start({"--resume", "--steps=" + std::to_string(done + 1)});
    EXPECT_EQ(Wait(), 0) << Output();
    EXPECT_NE(Output().find("resuming after step " + std::to_string(done) + "\n"),
              std::string::npos)
        << Output();
  }

  Scratch scratch;
  std::string data;
  rlim_t file_bytes = RLIM_INFINITY; // the limit of a file's size
  pid_t process = 0;
};

TEST_F(EndingsTest, EachSignalCommitsAndIsToldInTheStatus) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    SCOPED_TRACE(strsignal(signal));
    Start({"--steps=1000000"});
    ASSERT_TRUE(AwaitLines(3)) << Output();
    kill(process, signal);
    EXPECT_EQ(Wait(), 128 + signal) << Output();
    // Of SIGHUP, nobody is there to read it.
    EXPECT_EQ(Output().find("stopping: waits for step ") != std::string::npos, signal != SIGHUP)
        << Output();
    EXPECT_NE(Output().find("interrupted after step " + std::to_string(Lines()) +
                            " of 1000000, which is committed in `" + scratch.path("state") +
                            "`; the same command with --resume continues"),
              std::string::npos)
        << Output();
    ExpectCommitted();
    std::filesystem::remove_all(scratch.path("state"));
    std::filesystem::remove(Metrics());
  }
}

// A predecessor's writes have not landed: its data file is locked still.
TEST_F(EndingsTest, ASignalEndsTheWaitForLateWrites) {
  Start({"--steps=1"});
  ASSERT_EQ(Wait(), 0) << Output();
  const int data_file = open(scratch.path("state/data").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(data_file, LOCK_EX), 0); // the kernel may still close the first run's
  Start({"--resume", "--steps=2"});
  AwaitHandler(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(50)); // until it waits
  const std::string before = ReadWhole(scratch.path("state/manifest.json"));
  kill(process, SIGTERM);
  EXPECT_EQ(Wait(), 128 + SIGTERM) << Output();
  EXPECT_NE(Output().find("interrupted while writes of an ended process"), std::string::npos)
      << Output();
  EXPECT_EQ(ReadWhole(scratch.path("state/manifest.json")), before);
  close(data_file);
  ExpectCommitted();
}

// A terminal that is closed sends SIGHUP, and from then on every write to it fails.
TEST_F(EndingsTest, AClosedTerminalCommits) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal) | unlockpt(terminal), 0);
  const int out = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(out, 0);
  Start({"--steps=1000000"}, out);
  close(out);
  ASSERT_TRUE(AwaitLines(3));
  close(terminal);
  EXPECT_EQ(Wait(), 128 + SIGHUP);
  ExpectCommitted();
}

// boa train ... | head -1
TEST_F(EndingsTest, APipeThatNobodyReadsCommits) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Start({"--steps=2000"}, ends[1]);
  close(ends[1]);
  ASSERT_TRUE(AwaitLines(3));
  close(ends[0]);
  EXPECT_EQ(Wait(), 128 + SIGPIPE);
  ExpectCommitted();
}

// boa train --metrics /dev/stdout --quiet | head -1
TEST_F(EndingsTest, MetricsThatNobodyReadsCommit) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Start({"--steps=1000000", "--quiet"}, ends[1], 0, "/dev/stdout");
  close(ends[1]);
  char byte;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  close(ends[0]);
  EXPECT_EQ(Wait(), 128 + SIGPIPE);
  Start({"--resume", "--steps=1000000"});
  ASSERT_TRUE(AwaitLines(1)) << Output();
  EXPECT_EQ(Output().find("resuming after step 0\n"), std::string::npos) << Output();
}

// nohup boa train
TEST_F(EndingsTest, WhatWasIgnoredStaysIgnored) {
  Start({"--steps=2000"}, -1, SIGHUP);
  ASSERT_TRUE(AwaitLines(3)) << Output();
  kill(process, SIGHUP);
  EXPECT_EQ(Wait(), 0) << Output();
}

// ulimit -f: an error, not a signal.
TEST_F(EndingsTest, AFileSizeLimitIsAnError) {
  file_bytes = 4096;
  Start({"--steps=1"});
  EXPECT_EQ(Wait(), 1) << Output();
  EXPECT_NE(Output().find("data: File too large; see `ulimit -f`"), std::string::npos) << Output();
}

TEST_F(EndingsTest, OnlyWhatASignalEndedHasItsStatus) {
  EXPECT_EQ(SignalOf(InterruptedError(SIGHUP, "interrupted")), SIGHUP);
  EXPECT_EQ(SignalOf(absl::CancelledError("else")), 0);
  EXPECT_EQ(SignalOf(absl::OkStatus()), 0);
  EXPECT_EXIT(_exit(ExitStatus(InterruptedError(SIGTERM, "interrupted"))),
              testing::ExitedWithCode(143), "^interrupted\n$");
  EXPECT_EXIT(_exit(ExitStatus(absl::CancelledError("else"))), testing::ExitedWithCode(1),
              "^error: else\n$");
}

// The history of a run is worth as much as its state.
TEST_F(EndingsTest, ARefusedResumeKeepsTheMetrics) {
  Start({"--steps=5"});
  ASSERT_EQ(Wait(), 0) << Output();
  const std::string lines = ReadWhole(Metrics());
  ASSERT_EQ(Lines(), 5u);
  const std::vector<std::vector<std::string>> refused = {
      {"--steps=9"},                      // the state is there already
      {"--resume", "--at=4"},             // there is no such commit
      {"--resume", "--steps=3"},          // it is beyond that
      {"--resume", "--trace=/nowhere/t"}, // a trace that cannot be written
  };
  for (const auto &flags : refused) {
    Start(flags);
    EXPECT_EQ(Wait(), 1) << Output();
    EXPECT_EQ(ReadWhole(Metrics()), lines) << Output();
  }
}

} // namespace
} // namespace boa
