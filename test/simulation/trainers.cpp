//===- trainers.cpp - Processes of the trainer, and what they come to -----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/simulation/campaign.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace boa {

uint64_t Dice::Next() {
  uint64_t value = state += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

SeededScheduler::SeededScheduler(uint64_t seed) : dice(seed), bent(dice.Below(4)) {}

size_t SeededScheduler::Choose(size_t count) {
  // Far more than any run takes.
  constexpr int64_t kMostChoices = 5000000;
  if (++choices > kMostChoices) {
    std::fprintf(stderr, "no end after %lld choices\n", static_cast<long long>(choices));
    std::abort(); // main.cpp says which seed
  }
  if (bent == 1 && dice.Chance(0.9))
    return 0;
  if (bent == 2 && dice.Chance(0.9))
    return count - 1;
  return size_t(dice.Below(int64_t(count)));
}

/// Losses by step of a file of metrics.
static void ReadMetrics(const std::string &path, Trained &trained) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_discarded() || !record.contains("step"))
      continue;
    const int64_t step = record["step"];
    // JSON has no word for one that is not a number.
    auto number = [&](const char *name) {
      return record[name].is_number() ? double(record[name]) : std::nan("");
    };
    trained.losses[step] = number("loss");
    if (record.contains("validation_loss"))
      trained.validation[step] = number("validation_loss");
  }
}

Trainers::Trainers(const std::string &directory) : directory(directory), data(directory + "/text") {
  std::ofstream(data, std::ios::binary) << linear::Text(6000);
}

void Trainers::Begin() { unlink((directory + "/metrics").c_str()); }

Ended Trainers::Run(const Process &process) {
  linear::Options options = process.options;
  options.data = data;
  absl::StatusOr<Program> program = ParseProgram(linear::Descriptor(options));
  if (!program.ok())
    std::fprintf(stderr, "%s\n", program.status().ToString().c_str()), std::abort();
  program->machine.ssd.clear();
  for (const std::string &path : process.paths)
    program->machine.ssd.push_back({path, 0, 0});
  char *text = nullptr;
  size_t bytes = 0;
  TrainerOptions trainer;
  trainer.resume = process.resume;
  trainer.metrics = directory + "/metrics";
  trainer.save = directory + "/weights";
  trainer.out = open_memstream(&text, &bytes);
  trainer.disk = process.disk;
  trainer.scheduler = process.scheduler;
  unlink(trainer.save.c_str());
  Ended ended;
  ended.status =
      Train(*program, linear::kKernels, linear::Entries(options), trainer, InterruptGuard());
  std::fclose(trainer.out);
  ended.text.assign(text, bytes);
  std::free(text);
  static const std::string kResuming = "resuming after step ";
  if (size_t at = ended.text.find(kResuming); at != std::string::npos)
    ended.resumed = std::atoll(ended.text.c_str() + at + kResuming.size());
  ReadMetrics(trainer.metrics, ended.trained);
  ended.trained.weights = ReadWhole(trainer.save);
  return ended;
}

const Trained &Trainers::Reference(const linear::Options &given) {
  linear::Options options = given;
  options.tier = "ssd";
  options.evaluate_every = 1; // which changes no loss of training
  options.commit_every = 0;
  const std::string key =
      absl::StrCat(options.weight_type, options.delayed, options.clip, " ", options.steps);
  auto [entry, fresh] = references.try_emplace(key);
  if (!fresh)
    return entry->second;
  const std::string metrics = directory + "/metrics", kept = directory + "/metrics.kept";
  std::rename(metrics.c_str(), kept.c_str());
  Process process;
  process.options = options;
  process.paths = {absl::StrCat(directory, "/reference", references.size())};
  Ended ended = Run(process);
  if (!ended.status.ok())
    std::fprintf(stderr, "%s\n", ended.status.ToString().c_str()), std::abort();
  unlink(metrics.c_str());
  std::rename(kept.c_str(), metrics.c_str());
  return entry->second = std::move(ended.trained);
}

std::string Trainers::Compare(const linear::Options &options, const Trained &trained, bool whole) {
  const Trained &expected = Reference(options);
  auto compare = [](const char *what, const std::map<int64_t, double> &got,
                    const std::map<int64_t, double> &wanted) -> std::string {
    for (auto [step, loss] : got)
      if (auto found = wanted.find(step); found == wanted.end() || found->second != loss)
        return absl::StrFormat("%s of step %d is %.17g and should be %.17g", what, step, loss,
                               found == wanted.end() ? 0 : found->second);
    return "";
  };
  std::string difference = compare("the loss", trained.losses, expected.losses);
  if (difference.empty())
    difference = compare("the validation loss", trained.validation, expected.validation);
  if (!difference.empty() || !whole)
    return difference;
  if (trained.losses.size() != expected.losses.size())
    return absl::StrFormat("%d steps of %d were told", trained.losses.size(),
                           expected.losses.size());
  return trained.weights == expected.weights ? "" : "the exported weights differ";
}

} // namespace boa
