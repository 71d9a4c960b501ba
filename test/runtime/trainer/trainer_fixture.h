//===- trainer_fixture.h - A run of the hand-written model ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_TRAINER_TRAINER_FIXTURE_H
#define BOA_TEST_RUNTIME_TRAINER_TRAINER_FIXTURE_H

#include "runtime/trainer/trainer.h"
#include "test/runtime/scratch.h"
#include "test/runtime/trainer/linear.h"

#include "nlohmann/json.hpp"
#include "gtest/gtest.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace boa {

inline std::vector<nlohmann::json> ReadLines(const std::string &path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    nlohmann::json record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object())
      lines.push_back(record);
  }
  return lines;
}

/// The losses by step; one for each from 1 on, or the test fails.
inline std::vector<double> ReadLosses(const std::string &path) {
  std::vector<double> losses;
  for (const nlohmann::json &line : ReadLines(path)) {
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
    return Train(*program, linear::kKernels, linear::Entries(linear), options, InterruptGuard());
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

  std::string Output() { return ReadWhole(scratch.path("output")); }

  Scratch scratch;
  linear::Options linear;
  TrainerOptions options;
};

} // namespace boa

#endif // BOA_TEST_RUNTIME_TRAINER_TRAINER_FIXTURE_H
