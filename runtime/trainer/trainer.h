//===- trainer.h - The training loop ----------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a compiled program to its last step: fills batches, calls the entry points,
// evaluates, commits, exports the weights and reports.
//
// Guarantees:
//   - Kills, resumptions, evaluations and commits change no loss of a run. Delayed updates
//     that are applied early are the same updates.
//   - A commit holds no delayed update: they are applied first.
//   - Each committed number is finite.
//
// A refusal comes before the first step. It concerns a plan above the memory limits, or a
// state directory: in use, not empty without `resume`, or of another model or optimizer. A
// resumed run may differ in everything else. It reports each change of the training.
//
// SIGINT, SIGTERM, SIGHUP or SIGPIPE ends the run after the step in progress, with a
// commit. It leaves out the rest of an evaluation: only kernels and transfers under way
// end. Before the first step and behind the last, it ends what takes long. A second one ends the
// process at once and loses the steps since the last commit (support/interrupt.h).
//
// Ownership: the arguments must outlive the call.
// Threads: Train runs on the caller's thread, the driver. Only one run at a time, because
// it handles signals.
// Errors: see Train.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_TRAINER_H
#define BOA_RUNTIME_TRAINER_TRAINER_H

#include "runtime/abi/abi.h"
#include "runtime/abi/program.h"
#include "runtime/device/scheduler.h"
#include "runtime/io/file_system.h"
#include "runtime/state/state.h"
#include "runtime/trainer/process.h"

#include "absl/status/status.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boa {

class PeftAdapter;

/// The code of a program: see runtime/abi/abi.h.
struct EntryPoints {
  boa_entry_point step = nullptr;
  boa_entry_point drain = nullptr;    // may be null if delay is 0
  boa_entry_point evaluate = nullptr; // may be null: no evaluation
};

/// The next step is enqueued when this share of a step's kernels is left. Earlier, an interrupt
/// would wait for two whole steps. Later, the next step would wait for its first reads.
inline constexpr double kEnqueueAhead = 0.25;

struct TrainerOptions {
  /// To begin with; null: none.
  std::shared_ptr<PeftAdapter> adapter;
  std::string state; // directory; empty: the machine's first ssd
  bool resume = false;
  bool changed_model = false;        // also a state of another computation
  bool changed_data = false;         // also a commit whose files of tokens were others
  std::string weights;               // safetensors to begin from; empty: random
  std::vector<std::string> unwanted; // names of its tensors to leave out
  std::string from;                  // a state whose weights to begin with, or a commit of it
  std::optional<int64_t> steps;      // instead of the program's
  double epochs = 0;                 // the same; 0: not given
  std::string data;                  // instead of the program's; empty: its own
  std::string data_place;            // of `data` in its spec, for errors; empty: not known
  std::string tokens;                // where tokens of texts are kept; empty: beside the state
  std::string metrics, trace;        // files; empty: none
  std::string tensorboard;           // a folder for events; empty: none
  std::string log;                   // of this run and others; empty: none
  std::string report;                // a page beside them; empty: none
  std::string save;                  // empty: <state>/model.safetensors
  std::vector<std::string> sources;  // files of the program: no output replaces them
  bool quiet = false;                // nothing is printed
  bool verbose = false;              // tables, too
  std::string next;                  // a command to type after the run; may be empty
  std::FILE *out = stdout;           // where tables and progress go
  std::optional<int64_t> at;         // with resume: the commit of this step, not the last
  ChosenPlan plan;                   // that the compiler chose; commits hold it
  FileSystem *disk = nullptr;        // where the state lives; null: the system's
  Scheduler *scheduler = nullptr;    // runtime/device/scheduler.h; null: threads
};

/// kCancelled: the run was interrupted and has committed; the message says how to resume. Every
/// message names the action that failed and, if there is one, the way out. The caller keeps the
/// guard until it has printed the message.
absl::Status Train(const Program &, const Kernels &, const EntryPoints &, const TrainerOptions &,
                   const InterruptGuard &);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_TRAINER_H
