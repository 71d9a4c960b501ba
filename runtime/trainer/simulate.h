//===- simulate.h - A run that moves nothing --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The entry points of a compiled program on a machine that is simulated: what a real run
// would print of time, traffic, waits and memory, and which resource bounds the step.
// There is no data, so there is no loss.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_SIMULATE_H
#define BOA_RUNTIME_TRAINER_SIMULATE_H

#include "runtime/trainer/trainer.h"

namespace boa {

struct SimulateOptions {
  int64_t steps = 3;                // the first of a run and those that follow it
  std::string metrics, trace;       // files; empty: none
  std::vector<std::string> sources; // files of the program: no output replaces them
  std::FILE *out = stdout;          // null: says nothing
  /// Seconds that a kernel takes, by name, where it was measured: a line each, the name
  /// and the seconds. Empty: the machine's rates say it.
  std::string kernels;
};

/// Refuses what can be refused before there is a program: outputs, the kernel times.
absl::Status CheckSimulation(const SimulateOptions &);
absl::Status Simulate(const Program &, const EntryPoints &, const SimulateOptions &);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_SIMULATE_H
