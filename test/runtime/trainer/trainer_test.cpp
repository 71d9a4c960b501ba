//===- trainer_test.cpp - Runs from the first step to the weights ---------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a run promises, on a model written by hand (linear.h): it learns, its
// losses do not depend on where the model lives nor on how often the run was
// killed, and what is wrong is refused in words that help. Runs that are killed
// are processes of their own (linear_trainer.cpp).
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/trainer.h"

#include "runtime/support/nearest.h"
#include "runtime/trainer/main.h"
#include "runtime/trainer/safetensors.h"
#include "runtime/trainer/sample.h"
#include "runtime/trainer/weights.h"
#include "test/runtime/trainer/linear.h"
#include "test/runtime/trainer/scratch.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include <cmath>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace boa {
namespace {

using nlohmann::json;

std::vector<json> ReadLines(const std::string &path) {
  std::vector<json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    json record = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object())
      lines.push_back(record);
  }
  return lines;
}

/// The losses by step; one for each from 1 on, or the test fails.
std::vector<double> ReadLosses(const std::string &path) {
  std::vector<double> losses;
  for (const json &line : ReadLines(path)) {
    losses.push_back(line["loss"].get<double>());
    EXPECT_EQ(line["step"].get<size_t>(), losses.size());
  }
  return losses;
}

class TrainerTest : public testing::Test {
protected:
  TrainerTest() {
    linear.data = scratch.Write("text", linear::Text(20000));
    options.state = scratch.path("state");
    options.metrics = scratch.path("metrics");
    options.quiet = true;
  }

  absl::Status Run() {
    absl::StatusOr<Program> program = ParseProgram(linear::Descriptor(linear));
    if (!program.ok())
      return program.status();
    return Train(*program, linear::kKernels, linear::Entries(linear), options);
  }
  std::string Error() { return std::string(Run().message()); }

  /// The losses of the whole run, done at once in a state of its own.
  std::vector<double> Unbroken() {
    TrainerOptions kept = options;
    options.state = scratch.path("unbroken");
    options.metrics = scratch.path("unbroken.metrics");
    std::filesystem::remove(options.metrics);
    options.resume = false;
    absl::Status status = Run();
    EXPECT_TRUE(status.ok()) << status;
    std::vector<double> losses = ReadLosses(options.metrics);
    options = kept;
    return losses;
  }

  /// Starts the run as a process; what it prints goes to the file "output".
  pid_t Start(const std::vector<std::string> &flags) {
    std::vector<std::string> arguments = {BOA_LINEAR_TRAINER,
                                          "data=" + linear.data,
                                          "tier=" + linear.tier,
                                          "type=" + linear.weight_type,
                                          std::string("delayed=") + (linear.delayed ? "1" : "0"),
                                          "commit=" + std::to_string(linear.commit_every),
                                          "evaluate=" + std::to_string(linear.evaluate_every),
                                          "clip=" + std::to_string(linear.clip),
                                          "--state=" + options.state,
                                          "--metrics=" + options.metrics,
                                          "--steps=" + std::to_string(linear.steps)};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    std::vector<char *> pointers;
    for (std::string &argument : arguments)
      pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const std::string output = scratch.path("output");
    const pid_t process = fork();
    if (process == 0) {
      const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
      dup2(file, 1);
      dup2(file, 2);
      execv(pointers[0], pointers.data());
      _exit(127);
    }
    return process;
  }

  /// Waits until the metrics have a line for `step` and sends `signal`. False
  /// if the process ended before.
  bool SignalAtStep(pid_t process, int64_t step, int signal) {
    for (;;) {
      const std::vector<json> lines = ReadLines(options.metrics);
      if (!lines.empty() && lines.back()["step"].get<int64_t>() >= step)
        return kill(process, signal) == 0;
      siginfo_t info = {};
      waitid(P_PID, process, &info, WEXITED | WNOHANG | WNOWAIT);
      if (info.si_pid == process)
        return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  static int Wait(pid_t process) {
    int status = 0;
    waitpid(process, &status, 0);
    return status;
  }
  std::string Output() { return ReadWhole(scratch.path("output")); }

  Scratch scratch;
  linear::Options linear;
  TrainerOptions options;
};

TEST_F(TrainerTest, Learns) {
  linear.steps = 60;
  linear.evaluate_every = 30;
  absl::Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  const std::vector<json> lines = ReadLines(options.metrics);
  ASSERT_EQ(lines.size(), 60u);
  EXPECT_NEAR(lines[0]["loss"].get<double>(), std::log(64), 0.05);
  EXPECT_LT(lines[59]["loss"].get<double>(), 2.0);
  EXPECT_FALSE(lines[28].contains("validation_loss"));
  EXPECT_LT(lines[59]["validation_loss"].get<double>(), lines[29]["validation_loss"].get<double>());
  EXPECT_EQ(lines[0]["tokens"], 128);
  EXPECT_DOUBLE_EQ(lines[0]["lr"].get<double>(), 0.05 / 3);

  auto weights = SafetensorsReader::Open(options.state + "/model.safetensors");
  ASSERT_TRUE(weights.ok()) << weights.status();
  ASSERT_NE(weights->Find("embed.table"), nullptr);
  EXPECT_EQ(weights->Find("embed.table")->shape, (std::vector<int64_t>{64, 64}));
}

// Traffic is measured: what the hand-written step asks for, counted by hand.
TEST_F(TrainerTest, CountsWhatMoves) {
  linear.steps = 3;
  absl::Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  // A transfer that ends after its step counts for the next: sums are exact.
  std::map<std::string, int64_t> read, written;
  for (const json &line : ReadLines(options.metrics))
    for (auto [to, direction] : {std::pair{&read, "read"}, {&written, "written"}})
      for (const auto &[tier, roles] : line[direction].items())
        for (const auto &[role, bytes] : roles.items())
          (*to)[role] += bytes.get<int64_t>();
  const std::map<std::string, int64_t> expected = {
      {"weights", 3 * 16384}, {"momentum", 3 * 16384}, {"variance", 3 * 16384}};
  EXPECT_EQ(read, expected);
  EXPECT_EQ(written, expected);
}

// The plan's traffic comes out to the byte, whatever is drained early.
TEST_F(TrainerTest, MovesWhatWasPlanned) {
  options.quiet = false;
  linear.evaluate_every = 7;
  linear.commit_every = 3;
  for (bool delayed : {false, true}) {
    linear.delayed = delayed;
    options.state = scratch.path(delayed ? "delayed" : "plain");
    options.metrics = options.state + ".metrics";
    options.out = std::fopen(scratch.path("output").c_str(), "w");
    absl::Status status = Run();
    std::fclose(options.out);
    ASSERT_TRUE(status.ok()) << status;
    std::istringstream output(Output().substr(Output().find("SSD traffic")));
    std::string line;
    int rows = 0;
    while (std::getline(output, line) && line.find("total") == std::string::npos) {
      double values[4];
      char units[4][4];
      if (std::sscanf(line.c_str(), " %*s %lf %3s %lf %3s %lf %3s %lf %3s", &values[0], units[0],
                      &values[1], units[1], &values[2], units[2], &values[3], units[3]) != 8)
        continue;
      ++rows;
      EXPECT_EQ(values[0], values[1]) << line;
      EXPECT_EQ(values[2], values[3]) << line;
      EXPECT_GT(values[0], 0) << line;
    }
    EXPECT_EQ(rows, delayed ? 4 : 3) << Output();
  }
}

// The equivalence that all rests on: home and delay change no bit.
TEST_F(TrainerTest, LossesDoNotDependOnHomeOrDelay) {
  linear.evaluate_every = 7;
  for (double clip : {0.0, 0.05}) {
    linear.clip = clip;
    std::vector<std::vector<double>> losses;
    for (const char *tier : {"device", "ssd"})
      for (bool delayed : {false, true}) {
        linear.tier = tier;
        linear.delayed = delayed;
        losses.push_back(Unbroken());
        std::filesystem::remove_all(scratch.path("unbroken"));
      }
    EXPECT_EQ(losses[0].size(), 20u);
    for (size_t i = 1; i < losses.size(); ++i)
      EXPECT_EQ(losses[i], losses[0]) << i << " with clip " << clip;
  }
}

// Kills at many moments, the process's own commit among them.
TEST_F(TrainerTest, ResumesBitForBitAfterKill) {
  for (const char *type : {"f32", "bf16"})
    for (bool delayed : {false, true}) {
      SCOPED_TRACE(std::string(type) + (delayed ? ", delayed" : ""));
      linear.weight_type = type;
      linear.delayed = delayed;
      linear.commit_every = 7;
      // A delayed update takes the clipping factor of the step that it is of.
      linear.clip = delayed ? 0.05 : 0;
      linear.evaluate_every = 20;
      linear.steps = 200;
      const std::vector<double> expected = Unbroken();
      ASSERT_EQ(expected.size(), 200u);
      std::vector<std::string> flags;
      for (int64_t step : {3, 50, 98, 151}) {
        const pid_t process = Start(flags);
        SignalAtStep(process, step, SIGKILL);
        Wait(process);
        flags = {"--resume"};
      }
      EXPECT_EQ(Wait(Start(flags)), 0) << Output();
      EXPECT_EQ(ReadLosses(options.metrics), expected);
      EXPECT_EQ(ReadWhole(options.state + "/model.safetensors"),
                ReadWhole(scratch.path("unbroken") + "/model.safetensors"));
      std::filesystem::remove_all(options.state);
      std::filesystem::remove_all(scratch.path("unbroken"));
      std::filesystem::remove(options.metrics);
    }
}

TEST_F(TrainerTest, InterruptCommitsAndTellsHowToResume) {
  linear.steps = 1500;
  linear.delayed = true;
  const std::vector<double> expected = Unbroken();
  const pid_t process = Start({});
  ASSERT_TRUE(SignalAtStep(process, 5, SIGINT)) << Output();
  const int status = Wait(process);
  ASSERT_TRUE(WIFEXITED(status)) << Output();
  EXPECT_EQ(WEXITSTATUS(status), 130) << Output();
  const size_t done = ReadLosses(options.metrics).size();
  EXPECT_LT(done, 1500u);
  EXPECT_NE(Output().find("interrupted after step " + std::to_string(done) +
                          " of 1500, which is committed in `" + options.state +
                          "`; the same command with --resume continues"),
            std::string::npos)
      << Output();
  options.resume = true;
  absl::Status resumed = Run();
  ASSERT_TRUE(resumed.ok()) << resumed;
  EXPECT_EQ(ReadLosses(options.metrics), expected);
}

TEST_F(TrainerTest, RefusesASecondTrainer) {
  linear.steps = 1000000;
  const pid_t process = Start({});
  EXPECT_TRUE(SignalAtStep(process, 1, 0)) << Output();
  options.resume = true;
  options.metrics.clear();
  const std::string error = Error();
  kill(process, SIGKILL);
  Wait(process);
  EXPECT_NE(error.find(options.state), std::string::npos) << error;
  EXPECT_NE(error.find("in use by process"), std::string::npos) << error;
}

TEST_F(TrainerTest, RefusesAStateThatItWasNotToldToResume) {
  ASSERT_TRUE(Run().ok());
  const std::string error = Error();
  EXPECT_NE(error.find("--resume"), std::string::npos) << error;
  EXPECT_NE(error.find("--state"), std::string::npos) << error;
}

TEST_F(TrainerTest, RefusesToResumeNothing) {
  options.resume = true;
  const std::string error = Error();
  EXPECT_NE(error.find(options.state), std::string::npos) << error;
}

// The rate is constant: more steps are what a longer run would have done.
TEST_F(TrainerTest, GoesOnToMoreSteps) {
  linear.steps = 30;
  const std::vector<double> expected = Unbroken();
  linear.steps = 10;
  ASSERT_TRUE(Run().ok());
  options.resume = true;
  options.steps = 30;
  absl::Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ReadLosses(options.metrics), expected);
}

TEST_F(TrainerTest, StopsAtALossThatIsNoNumber) {
  linear.commit_every = 5;
  linear::poison_after = 2 * 12; // two micro-batches a step: step 13
  const std::string error = Error();
  linear::poison_after = -1;
  EXPECT_EQ(error.find("the loss of step 13 is nan"), 0u) << error;
  EXPECT_NE(error.find("last committed step is 10"), std::string::npos) << error;
  // What was committed is as good as ever.
  const std::vector<double> expected = Unbroken();
  options.resume = true;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(ReadLosses(options.metrics), expected);
}

// The norm before clipping is in the metrics of a run that needs it, and only there.
TEST_F(TrainerTest, ReportsTheGradientNorm) {
  linear.steps = 4;
  for (double clip : {0.0, 0.05}) {
    linear.clip = clip;
    options.state = scratch.path("clip" + std::to_string(clip));
    options.metrics = options.state + ".metrics";
    ASSERT_TRUE(Run().ok());
    for (const json &line : ReadLines(options.metrics)) {
      ASSERT_EQ(line.contains("gradient_norm"), clip > 0) << line;
      if (clip > 0)
        EXPECT_GT(line["gradient_norm"].get<double>(), clip);
    }
  }
}

// A resumed run would read the same damaged bytes.
TEST_F(TrainerTest, PromisesNothingOfADamagedState) {
  linear.tier = "ssd";
  linear.steps = 10;
  ASSERT_TRUE(Run().ok());
  const std::string data = options.state + "/data";
  const uintmax_t bytes = std::filesystem::file_size(data);
  std::fstream file(data, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(std::streamoff(bytes / 4));
  file << std::string(bytes / 4 * 3, 'x');
  file.close();
  linear.steps = 20;
  options.resume = true;
  const std::string error = Error();
  EXPECT_NE(error.find("; the last committed step is 10 in `" + options.state + "`; `boa state " +
                       options.state + " --check` says whether it is whole"),
            std::string::npos)
      << error;
}

TEST_F(TrainerTest, RefusesAPlanThatDoesNotFit) {
  linear.device_memory = 200 << 10;
  const std::string error = Error();
  EXPECT_EQ(error.find("the plan needs 280 KiB of device memory, but machine "
                       "`bench` gives 200 KiB:\n"),
            0u)
      << error;
  EXPECT_NE(error.find("momentum                  64.0 KiB"), std::string::npos) << error;
  EXPECT_FALSE(std::filesystem::exists(options.state));
}

TEST_F(TrainerTest, BeginsFromGivenWeights) {
  linear.steps = 60;
  options.save = scratch.path("trained.safetensors");
  ASSERT_TRUE(Run().ok());
  const double trained = ReadLosses(options.metrics).back();
  for (const char *type : {"f32", "bf16"}) {
    linear.weight_type = type;
    linear.steps = 1;
    options.weights = scratch.path("trained.safetensors");
    options.state = scratch.path(std::string("tuned.") + type);
    options.save = scratch.path("again.safetensors");
    options.metrics = scratch.path(std::string("tuned.metrics.") + type);
    absl::Status status = Run();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_NEAR(ReadLosses(options.metrics)[0], trained, 0.5);
  }
}

TEST_F(TrainerTest, SaysWhatIsWrongWithGivenWeights) {
  Tensor other;
  other.name = "embed.table";
  other.shape = {32, 64};
  auto writer = SafetensorsWriter::Create(scratch.path("other"), {other}, {});
  std::vector<float> values(32 * 64);
  ASSERT_TRUE(writer->Append(values.data(), values.size()).ok());
  ASSERT_TRUE(writer->Finish().ok());
  options.weights = scratch.path("other");
  const std::string error = Error();
  EXPECT_NE(error.find("embed.table: expected [64, 64] but found [32, 64]"), std::string::npos)
      << error;
}

TEST(ParameterNames, LayersHaveAnIndex) {
  Group group;
  group.name = "block";
  Parameter parameter;
  parameter.name = "wq";
  EXPECT_EQ(ParameterName(group, 0, parameter), "block.wq");
  group.layer = true;
  EXPECT_EQ(ParameterName(group, 0, parameter), "block.0.wq");
  group.count = 12;
  EXPECT_EQ(ParameterName(group, 11, parameter), "block.11.wq");
}

TEST_F(TrainerTest, TracesATimeline) {
  options.trace = scratch.path("trace.json");
  absl::Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  const json trace = json::parse(ReadWhole(options.trace), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  std::map<std::string, int> events;
  std::map<int, std::string> rows;
  for (const json &event : trace["traceEvents"])
    if (event["name"] == "thread_name")
      rows[event["tid"].get<int>()] = event["args"]["name"].get<std::string>();
  for (const json &event : trace["traceEvents"])
    if (event["ph"] == "X")
      ++events[rows[event["tid"].get<int>()]];
  EXPECT_GE(events["compute"], 40) << json(events);
  EXPECT_GE(events["optimizer"], 40) << json(events);
}

TEST_F(TrainerTest, ReportsOnARun) {
  options.quiet = false;
  linear.evaluate_every = 10;
  options.out = std::fopen(scratch.path("output").c_str(), "w");
  absl::Status status = Run();
  std::fclose(options.out);
  ASSERT_TRUE(status.ok()) << status;
  for (const char *part : {"linear: 4.10 k parameters", "weights  ", "step 20/20",
                           "validation loss", "SSD traffic", "weights saved to"})
    EXPECT_NE(Output().find(part), std::string::npos) << part << "\n" << Output();
}

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
