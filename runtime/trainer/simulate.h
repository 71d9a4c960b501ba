//===- simulate.h - A run that moves nothing --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the entry points of a compiled program on a simulated machine. Prints the times,
// traffic, waits and memory of a real run, and the resource that limits a step. It has no
// data, so it computes no loss.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_SIMULATE_H
#define BOA_RUNTIME_TRAINER_SIMULATE_H

#include "runtime/device/simulated.h"
#include "runtime/trainer/trainer.h"
#include "runtime/view/report.h"

namespace boa {

struct SimulateOptions {
  int64_t steps = 3;                // from the first step of a run on
  std::string metrics, trace;       // files; empty: none
  std::vector<std::string> sources; // files of the program: no output replaces them
  std::FILE *out = stdout;          // null: prints nothing
  bool record = false;              // returns what ran in a step, and its memory
  /// Returns when the last step but one has ended. So `steps` is 2 or more. Results are those of
  /// the steps that have ended.
  bool leave_last = false;
  /// A file of measured kernels. Each line has a kernel's name and its seconds. Other kernels take
  /// the time that the machine's rates give.
  std::string kernels;
};

/// Checks the outputs and the kernel times. Needs no program yet.
absl::Status CheckSimulation(const SimulateOptions &);

struct SimulatedRun {
  std::vector<double> seconds; // of each step
  std::vector<LinkUse> uses;   // of the last step
  StepRun step;                // with SimulateOptions::record: one of the last
  Writes writes;               // of all steps
};
absl::StatusOr<SimulatedRun> Simulate(const Program &, const EntryPoints &,
                                      const SimulateOptions &);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_SIMULATE_H
