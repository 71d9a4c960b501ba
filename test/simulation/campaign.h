//===- campaign.h - Runs on disks that fail ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A seed is a training that is killed, starved, deceived and resumed, by the real
// trainer, engine and state, on a simulated disk, in one thread. What must hold:
//
//   - A process either ends with the losses and the weights of an undisturbed run,
//     bit for bit, or it stops with an error that names a file, and the tensor
//     where a checksum told. Faults that are no errors change nothing at all.
//   - What a commit acknowledged is there: the next process resumes at its step or
//     later. Without faults it then goes on to the end, bit for bit.
//   - Where bytes at rest were damaged, an error that names the damaged file may
//     stand in for that. Never another result.
//   - All of it ends.
//
// The undisturbed run is that of the real disk, with threads.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_SIMULATION_CAMPAIGN_H
#define BOA_TEST_SIMULATION_CAMPAIGN_H

#include "runtime/device/scheduler.h"
#include "test/runtime/scratch.h"
#include "test/runtime/trainer/linear.h"
#include "test/simulation/simulated_disk.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// The numbers of a seed, apart from those of its disk.
class Dice {
public:
  explicit Dice(uint64_t seed) : state(seed) {}
  uint64_t Next();
  /// One of 0 ... count - 1.
  int64_t Below(int64_t count) { return int64_t(Next() % uint64_t(count)); }
  bool Chance(double probability) { return double(Next() >> 11) * 0x1p-53 < probability; }
  template <typename T> T Of(std::initializer_list<T> choices) {
    return choices.begin()[Below(int64_t(choices.size()))];
  }

private:
  uint64_t state;
};

/// Chooses by the seed: evenly, or with a bent for one end of what is offered, so
/// that kernels run far ahead of transfers or the reverse.
class SeededScheduler : public Scheduler {
public:
  explicit SeededScheduler(uint64_t seed);
  size_t Choose(size_t count) override;
  int64_t choices = 0;

private:
  Dice dice;
  int64_t bent;
};

/// What must be the same, whatever happened.
struct Trained {
  std::map<int64_t, double> losses, validation; // by step
  std::string weights;                          // the exported file
};

/// A process of the trainer.
struct Process {
  linear::Options options;
  std::vector<std::string> paths; // of the state; the first is its home
  bool resume = false;
  FileSystem *disk = nullptr;
  Scheduler *scheduler = nullptr;
};

struct Ended {
  absl::Status status;
  std::string text;               // what it told a person
  std::optional<int64_t> resumed; // the step that it began from
  Trained trained;                // what there is of it
};

/// Runs processes, and knows what should come of them.
class Trainers {
public:
  explicit Trainers(const std::string &directory);
  Ended Run(const Process &);
  /// What an undisturbed run of these options comes to.
  const Trained &Reference(const linear::Options &);
  /// Forgets the metrics of the run before.
  void Begin();
  /// What differs from the reference; empty: nothing.
  std::string Compare(const linear::Options &, const Trained &, bool whole);

private:
  const std::string directory;
  std::string data;
  std::map<std::string, Trained> references;
};

struct Tally {
  int64_t runs = 0, processes = 0, finished = 0, stopped = 0, died = 0, refused = 0;
  int64_t operations = 0, choices = 0;
  FaultCounts faults;
};

struct CampaignOptions {
  std::vector<Fault> faults; // those that may strike
  int64_t paths = 0;         // of the state; 0: by the seed
  bool verbose = false;
};

/// One run of a seed. What went wrong, or nothing.
std::string RunSeed(uint64_t seed, const CampaignOptions &, Trainers &, Tally &);

/// A random program on the engine. What went wrong, or nothing.
std::string RunProgram(uint64_t seed);

/// So many flips of one byte of a state at rest, each followed by a resumption.
/// Prints a table; false: one of them made a difference that nobody told.
bool RunFlips(int64_t count, uint64_t seed, const CampaignOptions &, Trainers &);

} // namespace boa

#endif // BOA_TEST_SIMULATION_CAMPAIGN_H
