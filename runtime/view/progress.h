//===- progress.h - What a person sees of a run -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The texts of a run: the table of storages and their homes, the line of progress, and the
// summary of the run beside the plan. Functions format them, and only Progress prints. On
// a terminal, it rewrites one line. Elsewhere it prints about twenty lines in a run.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_PROGRESS_H
#define BOA_RUNTIME_VIEW_PROGRESS_H

#include "runtime/abi/program.h"
#include "runtime/engine/engine.h"
#include "runtime/view/metrics.h"
#include "runtime/view/wear.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// The part of a run that this process did.
struct Outcome {
  int64_t steps = 0; // done by this process
  int64_t last_step = 0;
  int64_t tokens = 0;
  double seconds = 0; // in steps
  double loss = 0;    // of the last step; not a number: a simulation has no loss
  std::optional<double> validation_loss;
  Traffic moved, predicted;                // measured, and from the plan
  std::map<int32_t, int64_t> written_to;   // bytes by SSD path
  std::vector<std::string> paths;          // their directories; empty: those of the machine
  int64_t disk_read = 0, disk_written = 0; // by the counts of the operating system
  bool measured = true;                    // whether these and resident_bytes are known
  /// The largest part of a memory in use, and its size.
  struct Memory {
    std::string name; // "" if the machine has only one
    int64_t peak_bytes = 0, allocated_bytes = 0;
  };
  std::vector<Memory> memories;
  int64_t run_ahead_bytes = 0; // most memory of commands that were not over
  int64_t resident_bytes = 0;  // peak of the process
  std::string saved;           // path of the weights; may be empty

  void TakeMemory(const Program &, const Engine &);
  Writes writes() const { return {double(steps), seconds, moved.written, written_to, paths}; }
};

/// The headline and the table of storages by role and home. `data`: its lines
/// (Data::Describe); empty: nothing is read.
std::string FormatStart(const Program &, const std::string &data = "");
/// The same, with the traffic of each step.
std::string FormatPlan(const Program &);
/// One line, without newline. `left` in seconds; negative: not known yet.
std::string FormatStep(const StepRecord &, int64_t steps, double left);
/// Fits a line into a width. Removes the alignment of its columns first, then the last parts. Two
/// spaces separate parts.
std::string FitLine(std::string line, size_t width);
std::string FormatOutcome(const Program &, const Outcome &);

/// The memory of a plan by role, the largest first: for the table, and for the refusal of a plan
/// that needs too much.
std::string FormatArena(const Program &, const std::string &tier);

class Progress {
public:
  /// `out` null: prints nothing. Steps first + 1 to `steps` follow.
  Progress(std::FILE *out, int64_t first, int64_t steps);
  /// Ends the rewritten line, if there is one.
  ~Progress();

  void Step(const StepRecord &);
  /// Prints lines that stay.
  void Say(const std::string &text);

private:
  using Clock = std::chrono::steady_clock;

  std::FILE *out;
  bool terminal;
  int64_t first, steps;
  int64_t interval; // steps between lines, no terminal
  Clock::time_point start = Clock::now();
  Clock::time_point shown; // when the line was last rewritten
  bool open_line = false;
};

} // namespace boa

#endif // BOA_RUNTIME_VIEW_PROGRESS_H
