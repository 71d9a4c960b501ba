//===- progress.h - The line of a step --------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step is a line. Functions format it, and only Progress prints. Each of the first hundred steps
// has a line that stays, then each tenth up to the thousandth, and so on. So have the last step, a
// step with an evaluation, and the first one that ends ten seconds behind the last such line. A
// terminal shows the same lines, and below them the newest step.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_PROGRESS_H
#define BOA_RUNTIME_VIEW_PROGRESS_H

#include "runtime/view/metrics.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace boa {

/// One line, without newline. `left` in seconds; negative: not known yet.
std::string FormatStep(const StepRecord &, int64_t steps, double left);
/// Fits a line into a width. Removes the alignment of its columns first, then the last parts. Two
/// spaces separate parts.
std::string FitLine(std::string line, size_t width);

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

  bool Stays(const StepRecord &, Clock::time_point now) const;

  std::FILE *out;
  bool terminal;
  int64_t first, steps;
  Clock::time_point start = Clock::now();
  Clock::time_point shown;          // when the line was last rewritten
  Clock::time_point stayed = start; // when the last line that stays was printed
  bool open_line = false;
};

} // namespace boa

#endif // BOA_RUNTIME_VIEW_PROGRESS_H
