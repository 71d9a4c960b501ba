//===- trainer.h - The training loop ----------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a compiled program to its last step: fills batches, calls the entry
// points, evaluates, commits, exports the weights and tells what happened.
//
// What holds:
//   - The losses of a run do not depend on how often it was killed and resumed,
//     nor on when it evaluates or commits: draining the delayed updates early
//     applies the same updates.
//   - Refused before the first step: a plan above the memory limits, a state
//     directory that is in use, not empty without `resume`, or of another model or
//     optimizer. Everything else may differ from the run that is resumed, and what
//     changes the training is said.
//   - A commit holds no delayed update: they are applied first.
//   - Nothing that is not finite is ever committed.
//   - SIGINT, SIGTERM, SIGHUP or SIGPIPE ends the run after the step in progress,
//     committed; a second SIGINT ends the process at once, which loses what was
//     not committed.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_TRAINER_H
#define BOA_RUNTIME_TRAINER_TRAINER_H

#include "runtime/abi/abi.h"
#include "runtime/abi/program.h"
#include "runtime/device/scheduler.h"
#include "runtime/io/file_system.h"

#include "absl/status/status.h"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// The code of a program; runtime/abi/abi.h says what each does.
struct EntryPoints {
  boa_entry_point step = nullptr;
  boa_entry_point drain = nullptr;    // may be null where delay is 0
  boa_entry_point evaluate = nullptr; // may be null: no evaluation
};

/// The next step is enqueued when this share of a step's kernels is left: late
/// enough that an interrupt need not wait for two whole steps, early enough that
/// what the next one reads first is there in time.
inline constexpr double kEnqueueAhead = 0.25;

struct TrainerOptions {
  std::string state; // directory; empty: the machine's first ssd
  bool resume = false;
  bool changed_model = false;       // also a state of another computation
  std::string weights;              // safetensors to begin from; empty: random
  std::optional<int64_t> steps;     // instead of the program's
  std::string data;                 // instead of the program's; empty: its own
  std::string metrics, trace;       // files; empty: none
  std::string save;                 // empty: <state>/model.safetensors
  std::vector<std::string> sources; // files of the program: no output replaces them
  bool quiet = false;               // no tables and no progress
  std::FILE *out = stdout;          // where tables and progress go
  std::optional<int64_t> at;        // with resume: the commit of this step, not the last
  FileSystem *disk = nullptr;       // where the state lives; null: the system's
  Scheduler *scheduler = nullptr;   // runtime/device/scheduler.h; null: threads
};

/// kCancelled: interrupted, committed, and the
/// message tells how to resume. Every message says what was being done, and
/// where it can, what to do.
absl::Status Train(const Program &, const Kernels &, const EntryPoints &, const TrainerOptions &);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_TRAINER_H
