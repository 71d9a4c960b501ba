//===- outputs_test.cpp - Files that a run may write ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// No output destroys the state, the data or another output; no link is followed
// and no open blocks. All runs are of the model of linear.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/new_file.h"
#include "runtime/io/output_file.h"
#include "runtime/weights/safetensors.h"

#include "runtime/state/saved_commit.h"
#include "test/runtime/trainer/trainer_fixture.h"

#include "gmock/gmock.h"

#include <fcntl.h>
#include <map>
#include <string>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace boa {
namespace {

using testing::HasSubstr;
using testing::Not;

class OutputsTest : public TrainerTest {
protected:
  OutputsTest() {
    linear.steps = 2;
    options.metrics.clear();
  }
  /// All files by name: their contents.
  std::map<std::string, std::string> Contents() {
    std::map<std::string, std::string> files;
    for (const auto &entry : std::filesystem::recursive_directory_iterator(scratch.path()))
      if (entry.is_regular_file())
        files[entry.path()] = ReadWhole(entry.path());
    return files;
  }
};

TEST_F(OutputsTest, NoOutputDestroysTheStateTheDataOrAnother) {
  linear.paths = {"", scratch.path("second")};
  ASSERT_TRUE(Run().ok());
  linear.steps = 4;
  const std::string spec = scratch.Write("model.boa", "spec");
  const std::string other = scratch.path("other");
  ASSERT_EQ(mkdir(other.c_str(), 0755), 0);
  std::filesystem::copy_file(scratch.path("state/data"), other + "/renamed");
  for (const char *name : {"/data", "/manifest.json"}) // of another training
    std::filesystem::copy_file(options.state + name, other + name);
  std::filesystem::create_hard_link(linear.data, scratch.path("hard"));
  std::filesystem::create_directory_symlink(scratch.path("state"), scratch.path("link"));
  options.sources = {spec};
  options.resume = true;
  options.metrics = scratch.path("metrics");
  options.save = scratch.path("weights");
  const auto before = Contents();
  std::vector<std::string> names = {"state/data",
                                    "state/../state/lock",
                                    "link/manifest.json",
                                    "state/manifest.copy.json",
                                    "second/data",
                                    "second/lock",
                                    "text",
                                    "hard",
                                    "model.boa",
                                    "other/renamed",
                                    "other/manifest.json"};
  for (const auto &entry : std::filesystem::directory_iterator(options.state))
    if (const std::string name = entry.path().filename().string(); IsSealedName(name))
      names.push_back("state/" + name);
  EXPECT_EQ(names.size(), 11u + 6); // a commit, a model and a part, each twice
  for (std::string TrainerOptions::*output : {&TrainerOptions::save, &TrainerOptions::trace,
                                              &TrainerOptions::metrics, &TrainerOptions::log})
    for (const std::string &name : names) {
      SCOPED_TRACE(name);
      const TrainerOptions kept = options;
      options.*output = scratch.path(name);
      const absl::Status status = Run();
      EXPECT_THAT(std::string(status.message()), HasSubstr("would overwrite")) << status;
      EXPECT_EQ(Contents(), before);
      options = kept;
    }
  // Each other; the temporary file of the weights counts.
  options.data = scratch.Write("weights.tmp", linear::Text(20000));
  EXPECT_THAT(std::string(Run().message()), HasSubstr("weights.tmp`, which is the training data"));
  options.data.clear();
  std::filesystem::remove(scratch.path("weights.tmp"));
  options.trace = options.metrics;
  EXPECT_THAT(std::string(Run().message()), HasSubstr("which is --metrics"));
  options.trace = options.save + ".tmp";
  EXPECT_THAT(std::string(Run().message()), HasSubstr("which is --save"));
  options.trace = scratch.path("state/model.safetensors");
  EXPECT_THAT(std::string(Run().message()), HasSubstr("which is the trained weights"));
  EXPECT_EQ(Contents(), before);
}

// Before the first step of a new training, when there are no files yet.
TEST_F(OutputsTest, FilesOfANewStateAreRefusedByName) {
  options.trace = scratch.path("state/data");
  EXPECT_THAT(std::string(Run().message()), HasSubstr("which is a file of the state"));
  EXPECT_FALSE(std::filesystem::exists(options.state));
}

TEST_F(OutputsTest, LinksAreNotFollowed) {
  const std::string target = scratch.Write("target", "precious");
  std::filesystem::create_directory(options.state);
  std::filesystem::create_symlink(target, scratch.path("state/model.safetensors.tmp"));
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(ReadWhole(target), "precious");
  EXPECT_TRUE(SafetensorsReader::Open(scratch.path("state/model.safetensors")).ok());

  std::filesystem::create_symlink(target, scratch.path("out"));
  options.state = scratch.path("fresh");
  for (std::string TrainerOptions::*output : {&TrainerOptions::save, &TrainerOptions::trace,
                                              &TrainerOptions::metrics, &TrainerOptions::log}) {
    const TrainerOptions kept = options;
    options.*output = scratch.path("out");
    EXPECT_THAT(std::string(Run().message()), HasSubstr("link"));
    EXPECT_EQ(ReadWhole(target), "precious");
    options = kept;
  }
}

// Links to texts and weights are common, and reading changes nothing.
TEST_F(OutputsTest, InputsMayBeLinks) {
  std::filesystem::create_symlink(linear.data, scratch.path("link"));
  linear.data = scratch.path("link");
  absl::Status status = Run();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(OutputsTest, NoOpenBlocks) {
  const std::string pipe = scratch.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0666), 0);
  alarm(60); // an open that blocks ends the test
  options.data = pipe;
  EXPECT_THAT(std::string(Run().message()), HasSubstr("not a regular file"));
  options.data = "";
  options.weights = pipe;
  EXPECT_THAT(std::string(Run().message()), HasSubstr("not a regular file"));
  options.weights = "";
  options.save = pipe;
  EXPECT_THAT(std::string(Run().message()), HasSubstr("pipe"));
  options.save = "";
  for (std::string TrainerOptions::*output :
       {&TrainerOptions::trace, &TrainerOptions::metrics, &TrainerOptions::log}) {
    options.*output = pipe;
    EXPECT_THAT(std::string(Run().message()), HasSubstr("a pipe that nobody reads"));
    options.*output = "";
  }
  alarm(0);
}

// The reader begins once the pipe is full: the writer must wait for it then.
TEST_F(OutputsTest, AFullPipeIsWaitedFor) {
  const std::string pipe = scratch.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0666), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  const int capacity = fcntl(reader, F_GETPIPE_SZ);
  auto file = OutputFile::Open(pipe);
  ASSERT_TRUE(file.ok()) << file.status();
  int64_t got = 0;
  std::thread reading([&] {
    for (int waiting = 0; waiting < capacity;)
      ASSERT_EQ(ioctl(reader, FIONREAD, &waiting), 0);
    char buffer[4096];
    while (ssize_t count = read(reader, buffer, sizeof buffer))
      got += count > 0 ? count : 0;
  });
  const std::string text(2 * capacity, 'x');
  absl::Status status = file->Append(text.data(), text.size());
  file = absl::CancelledError();
  reading.join();
  close(reader);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(got, int64_t(text.size()));
}

TEST_F(OutputsTest, DirectoriesOutsideTheStateAndMemoryBesideThePlanAreAnnounced) {
  options.trace = scratch.path("trace");
  linear.paths = {"", scratch.path("state/below"), scratch.path("beyond")};
  options.quiet = false;
  options.out = std::fopen(scratch.path("output").c_str(), "w");
  absl::Status status = Run();
  std::fclose(options.out);
  ASSERT_TRUE(status.ok()) << status;
  const std::string output = ReadWhole(scratch.path("output"));
  EXPECT_THAT(output, HasSubstr("has this run write to " + scratch.path("beyond") +
                                ", outside of " + options.state + "\n"));
  EXPECT_EQ(output.find("run write to " + scratch.path("state/below")), std::string::npos);
  EXPECT_THAT(output, HasSubstr("--trace keeps the newest 1048576 commands, in up to 48.0 MiB "
                                "beside the memory of the plan\n"));
}

// Weights that are missing or older than the commit are still written.
TEST_F(OutputsTest, AFinishedRunTouchesNothing) {
  linear.paths = {"", scratch.path("second")};
  options.quiet = false;
  options.metrics = scratch.path("metrics");
  options.trace = scratch.path("trace");
  const std::string weights = options.state + "/model.safetensors";
  std::string said;
  auto train = [&] {
    Scratch other;
    options.out = std::fopen(other.path("output").c_str(), "w");
    absl::Status status = Run();
    std::fclose(options.out);
    EXPECT_TRUE(status.ok()) << status;
    said = ReadWhole(other.path("output"));
  };
  auto times = [&] { // of directories too: no file came or went
    std::map<std::string, std::filesystem::file_time_type> times;
    for (const auto &entry : std::filesystem::recursive_directory_iterator(scratch.path()))
      times[entry.path()] = entry.last_write_time();
    return times;
  };
  train();
  options.resume = true;
  const auto contents = Contents();
  const auto before = times();
  train();
  EXPECT_THAT(said, HasSubstr("is already at step 2"));
  EXPECT_EQ(Contents(), contents);
  EXPECT_EQ(times(), before);
  options.steps = 1;
  EXPECT_THAT(std::string(Run().message()),
              HasSubstr("at step 2, beyond the 1 step asked for; --steps can raise"));
  EXPECT_EQ(times(), before);
  options.steps.reset();

  auto expect_saved = [&] {
    train();
    EXPECT_THAT(said, HasSubstr("weights saved to " + weights));
    EXPECT_THAT(said, Not(HasSubstr("tokens/s")));
    EXPECT_EQ(ReadWhole(weights), contents.at(weights));
  };
  std::filesystem::remove(weights);
  expect_saved();
  // As an earlier run of two steps left it.
  const auto hour = std::chrono::hours(1);
  std::filesystem::last_write_time(weights, std::filesystem::last_write_time(weights) - hour);
  expect_saved();
}

// Of two runs with one --save, the one that lost its file says so.
TEST_F(OutputsTest, AFileOfAnotherProcessIsNotPublished) {
  const std::string path = scratch.path("weights");
  auto first = NewFile::Create(path);
  ASSERT_TRUE(first.ok()) << first.status();
  auto second = NewFile::Create(path);
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE(second->Append("second", 6).ok());
  EXPECT_THAT(std::string(first->Publish().message()), HasSubstr("another process"));
  // The file that it gives up is gone; it does not remove the other one.
  first = absl::CancelledError();
  absl::Status status = second->Publish();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(ReadWhole(path), "second");
}

TEST_F(OutputsTest, AFileOfAReplacedDirectoryIsNotPublished) {
  namespace fs = std::filesystem;
  const std::string directory = scratch.path("out"), old = scratch.path("old");
  fs::create_directory(directory);
  {
    auto file = NewFile::Create(directory + "/weights");
    ASSERT_TRUE(file.ok()) << file.status();
    fs::rename(directory, old);
    fs::create_directory(directory);
    EXPECT_THAT(std::string(file->Publish().message()), HasSubstr("was moved or replaced"));
  }
  EXPECT_TRUE(fs::is_empty(directory));
  EXPECT_TRUE(fs::is_empty(old));
}

// /proc has no room at all.
TEST_F(OutputsTest, TheExportsSpaceIsCheckedBeforeTheFirstStep) {
  if (access("/proc", W_OK) != 0)
    GTEST_SKIP() << "/proc cannot be written";
  options.save = "/proc/weights";
  options.metrics = scratch.path("metrics");
  EXPECT_THAT(
      std::string(Run().message()),
      HasSubstr("too full for the trained weights: in addition to the state they need 16.0 KiB"));
  EXPECT_FALSE(std::filesystem::exists(options.metrics));
}

} // namespace
} // namespace boa
