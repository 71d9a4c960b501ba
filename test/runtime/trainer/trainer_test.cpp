//===- trainer_test.cpp - Runs from the first step to the weights ---------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contracts of a run, on a model written by hand (linear.h). It learns, its losses do not
// depend on where the model lives, and its errors say how to go on.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/data.h"
#include "test/runtime/trainer/trainer_fixture.h"

#include "runtime/weights/parameter_names.h"
#include "runtime/weights/safetensors.h"

#include <cmath>
#include <map>
#include <sstream>

namespace boa {
namespace {

using nlohmann::json;

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
  std::map<std::string, int64_t> expected = {
      {"weights", 3 * 16384}, {"momentum", 3 * 16384}, {"variance", 3 * 16384}};
  EXPECT_EQ(written, expected);
  // The first step finds no moments on SSD.
  expected["momentum"] = expected["variance"] = 2 * 16384;
  EXPECT_EQ(read, expected);
}

// The plan's traffic comes out to the byte, whatever is drained early.
TEST_F(TrainerTest, MovesWhatWasPlanned) {
  options.quiet = false;
  options.verbose = true;
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

// An update that fails names the step of its gradient, and no other is named beside it.
TEST_F(TrainerTest, AnErrorNamesOneStep) {
  absl::StatusOr<Program> program = ParseProgram(linear::Descriptor(linear));
  ASSERT_TRUE(program.ok());
  program->train.optimizer.peak = program->train.optimizer.floor = 1e36;
  std::string error(
      Train(*program, linear::kKernels, linear::Entries(linear), options, InterruptGuard())
          .message());
  EXPECT_EQ(error.find("the gradient of embed.table is not finite in step 2: lower"), 0u) << error;
  EXPECT_NE(error.find("; the last committed step is 0 in"), std::string::npos) << error;
  // Data that cannot be read are those of the step that needs them.
  std::string text = linear::Text(20000);
  text[10000] = 'x'; // outside of the vocabulary of 64, and not at an end
  linear.data = "tokens(\"" + scratch.Write("tokens", text) + "\", uint8)";
  linear.steps = 1000;
  options.state = scratch.path("other");
  options.metrics = "";
  program = ParseProgram(linear::Descriptor(linear));
  ASSERT_TRUE(program.ok());
  absl::StatusOr<Data> data = Data::Open(DataOptions(*program));
  ASSERT_TRUE(data.ok()) << data.status();
  int64_t step = 0;
  for (bool good = true; good;) {
    ++step;
    for (int64_t m = 0; m < program->MicroBatches(); ++m) {
      std::vector<int32_t> tokens(size_t(program->MicroBatch() * program->model.context));
      std::vector<int32_t> targets(tokens.size());
      good &= data->FillTraining(step, m, tokens.data(), targets.data()).ok();
    }
  }
  ASSERT_GT(step, 2);
  error = Error();
  EXPECT_EQ(error.find("step " + std::to_string(step) + ": `"), 0u) << error;
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
  EXPECT_EQ(error.find("the plan needs 288 KiB of device memory, but machine "
                       "`bench` gives 200 KiB:\n"),
            0u)
      << error;
  EXPECT_NE(error.find("momentum                  64.0 KiB"), std::string::npos) << error;
  EXPECT_FALSE(std::filesystem::exists(options.state));
}

TEST_F(TrainerTest, RefusesKeysOfDropoutThatAreOfNoLayers) {
  absl::StatusOr<Program> program = ParseProgram(linear::Descriptor(linear));
  ASSERT_TRUE(program.ok()) << program.status();
  Storage keys;
  for (const Storage &storage : program->storages)
    if (storage.role == "tokens")
      keys = storage;
  keys.name = keys.role = "dropout_keys";
  program->storages.push_back(keys);
  for (const std::vector<int64_t> &entries :
       std::vector<std::vector<int64_t>>{{}, {2}, {2, 1}, {1, 2, 1}}) {
    program->storages.back().entries = entries;
    EXPECT_EQ(Train(*program, linear::kKernels, linear::Entries(linear), options, InterruptGuard())
                  .message(),
              "program descriptor: storage `dropout_keys`: expected layers x 2 entries of at "
              "least 256 bytes in memory");
  }
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
  options.verbose = true;
  linear.evaluate_every = 10;
  options.out = std::fopen(scratch.path("output").c_str(), "w");
  absl::Status status = Run();
  std::fclose(options.out);
  ASSERT_TRUE(status.ok()) << status;
  for (const char *part :
       {"linear: 4.10 k parameters", "weights  ", "step 20/20", "validation loss", "SSD traffic",
        "weights saved to", "the same command with --resume and more --steps goes on"})
    EXPECT_NE(Output().find(part), std::string::npos) << part << "\n" << Output();
}

} // namespace
} // namespace boa
