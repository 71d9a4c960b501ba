//===- progress.h - What a person sees of a run -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table of what lives where, a line of progress, a summary of what happened
// beside what was planned. Texts are made by functions of what they tell;
// Progress alone prints. On a terminal the line of progress is one that is
// rewritten; elsewhere a line is printed about twenty times in a run.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_PROGRESS_H
#define BOA_RUNTIME_TRAINER_PROGRESS_H

#include "runtime/abi/program.h"
#include "runtime/engine/engine.h"
#include "runtime/trainer/metrics.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// The whole run's part that this process did.
struct Outcome {
  int64_t steps = 0; // done by this process
  int64_t last_step = 0;
  int64_t tokens = 0;
  double seconds = 0; // in steps
  double loss = 0;    // of the last step; not a number: there is none
  std::optional<double> validation_loss;
  Traffic moved, predicted;                // measured, and from the plan
  int64_t disk_read = 0, disk_written = 0; // what the system counted,
  bool measured = true;                    // whether it was asked, for these and resident_bytes
  /// Of a memory: used at most, and in all.
  struct Memory {
    std::string name; // "" where there is but one
    int64_t peak_bytes = 0, allocated_bytes = 0;
  };
  std::vector<Memory> memories;
  int64_t run_ahead_bytes = 0; // that commands which waited took at most
  int64_t resident_bytes = 0;  // peak of the process
  std::string saved;           // path of the weights; may be empty

  void TakeMemory(const Program &, const Engine &);
};

/// The headline and the table of storages by role and home. Of the text, where there is
/// one, the bytes.
std::string FormatStart(const Program &, int64_t training_bytes = -1,
                        int64_t validation_bytes = -1);
/// The same, and what each step moves.
std::string FormatPlan(const Program &);
/// One line, without newline. `left` in seconds; negative: not known yet.
std::string FormatStep(const StepRecord &, int64_t steps, double left);
/// A line without its columns where that is too wide; then as many of its parts,
/// two spaces apart, as there is room for.
std::string FitLine(std::string line, size_t width);
std::string FormatOutcome(const Program &, const Outcome &);

/// What the memory of a plan is for, by role, the largest first: for the table
/// and for the refusal of a plan that does not fit.
std::string FormatArena(const Program &, const std::string &tier);

class Progress {
public:
  /// `out` null: says nothing. Steps first + 1 to `steps` follow.
  Progress(std::FILE *out, int64_t first, int64_t steps);
  /// Ends the line that is being rewritten, if there is one.
  ~Progress();

  void Step(const StepRecord &);
  /// Lines that stay.
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

#endif // BOA_RUNTIME_TRAINER_PROGRESS_H
