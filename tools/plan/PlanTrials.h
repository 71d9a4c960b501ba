//===- PlanTrials.h - Plans, compiled and simulated -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_PLANTRIALS_H
#define BOA_TOOLS_PLAN_PLANTRIALS_H

#include "dialect/Config.h"
#include "runtime/trainer/simulate.h"
#include "tools/Compiler.h"

#include "llvm/Support/ThreadPool.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// Where the chunks of a role live, in percent. The rest is on SSD. Of a machine that does not say
/// how fast its SSDs are it is on the host.
struct Shares {
  int device = 0, host = 0;

  int rest() const { return 100 - device - host; }
};

/// All that a plan block says. Whatever the spec gives is as given.
struct Choice {
  int64_t microBatch = 1;
  Schedule order = Schedule::vertical;
  double delay = 0;
  int64_t prefetch = 1;
  bool recompute = true;
  int64_t keep = 0;
  int64_t vocabularyBlocks = 1;
  int64_t batch = 0;                    // 0: the spec's
  std::map<std::string, Shares> places; // by name in a plan block; only those that are free
  std::vector<std::string> changes;     // of the spec or the machine, as --set takes them
};

/// Why a plan is not possible, whatever memory there is.
struct Failure {
  absl::Status status;
  std::string diagnostics; // ready to print
};

/// What became of a choice.
struct Trial {
  bool possible = false, fits = false;
  std::optional<MemoryNeed> need; // if it does not fit
  Failure failure;                // if it is not possible
  Program program;
  boa_entry_point step = nullptr; // alive as long as Trials
  // If it was simulated:
  double seconds = 0; // of a steady step
  std::vector<LinkUse> uses;

  /// Whether another like it takes a fraction of a second.
  bool isQuick() const;
};

/// Compiles a spec with other plans, and simulates a few steps of each. One thread calls.
/// Others try choices in advance.
class Trials {
public:
  explicit Trials(const CompileRequest &request);
  ~Trials();

  /// The spec's own settings and the plan's paths that it gives. None if the spec is wrong; its
  /// diagnostics were printed.
  const std::optional<Config> &config() const { return settings; }
  bool isGiven(const std::string &path) const;

  /// Compiles and simulates it. Remembers choices that were tried.
  const Trial &run(const Choice &choice);
  /// Compiles it only: seconds and uses are not for reading, since another thread may write them.
  const Trial &compile(const Choice &choice);
  /// Other threads try these in their order, in case that `run` is asked for them, and forget those
  /// of earlier calls. It changes no result and no count.
  void prepare(const std::vector<Choice> &choices, bool simulated = true);
  /// Runs it on the same machine without limits of memory.
  const Trial &runUnlimited(const Choice &choice);
  /// Runs it with the chunks that a training has. A trial has fewer, to be fast, if a group is
  /// large.
  const Trial &runWhole(const Choice &choice);
  const Trial &compileWhole(const Choice &choice);
  /// Seconds of a steady step of a trial that fits, on a machine with other rates.
  static double simulate(const Trial &trial, const MachineSettings &machine);
  /// The same, with what ran in one of them.
  static absl::StatusOr<SimulatedRun> record(const Trial &trial);
  /// How many were asked for.
  int64_t compiled() const { return countCompiled; }
  int64_t simulated() const { return countSimulated; }
  /// The failure of the first trial that was not possible.
  const std::optional<Failure> &firstFailure() const { return failure; }

  /// The choice as a plan block. It changes no value that the spec gives.
  std::string block(const Choice &choice) const;

private:
  struct Entry;
  struct Job;
  /// A simulation takes as long as its transfers are many. So many chunks are enough for shares
  /// in percent.
  static constexpr int64_t kMostChunks = 64;
  Job jobOf(const Choice &choice, int64_t mostChunks, bool limited) const;
  Entry &entryOf(const Job &job);
  void compile(Entry &entry, const Job &job);
  const Trial &make(const Choice &choice, bool simulated, int64_t mostChunks = kMostChunks,
                    bool limited = true);
  const Trial &makeWhole(const Choice &choice, bool simulated);
  std::vector<std::string> overrides(const Choice &choice) const;
  std::string schedule(const Choice &choice) const;
  Placement place(const Shares &shares) const;

  CompileRequest request;
  std::optional<Config> settings;
  std::vector<std::string> given, activations;
  int kindsOfLayers = 0;
  std::optional<Failure> failure;
  int64_t countCompiled = 0, countSimulated = 0;

  KernelStore kernels;
  std::mutex mutex; // of the next two
  std::map<std::string, std::unique_ptr<Entry>> entries;
  std::vector<std::unique_ptr<Compiler>> idle;
  std::atomic<int64_t> prepared = 0; // calls
  llvm::DefaultThreadPool others;
};

} // namespace boa

#endif // BOA_TOOLS_PLAN_PLANTRIALS_H
