//===- report.h - Reports of a training run ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything that a run tells: the table at its start, a line and a record of metrics for
// each step, the summary and the trace at its end.
//
// Ownership: it owns the files of --metrics and --trace, and the line of progress. Program
// and options must outlive it.
// Threads: one, the driver.
// Errors: a console that is gone is no error. The first error of the metrics stays in
// status(); after it no record is written. The run must then end with a commit.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_REPORT_H
#define BOA_RUNTIME_TRAINER_REPORT_H

#include "runtime/abi/program.h"
#include "runtime/engine/engine.h"
#include "runtime/state/state.h"
#include "runtime/data/data.h"
#include "runtime/trainer/file.h"
#include "runtime/trainer/metrics.h"
#include "runtime/trainer/progress.h"
#include "runtime/trainer/request.h"
#include "runtime/trainer/step_queue.h"
#include "runtime/trainer/step_traffic.h"

#include "absl/status/status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace boa {

class RunReport {
public:
  /// `first`: steps that were done before. `identity`: of the state.
  RunReport(const TrainRequest &, int64_t first, const std::string &identity);

  /// Opens the files.
  absl::Status Open();
  /// The table of storages, and the state.
  void Start(const Data &, const StateStore &, const Engine &);
  /// Prints lines beside the progress.
  void Say(const std::string &text) { progress.Say(text); }
  /// The line of a step, and its record of metrics.
  void Step(const FinishedStep &, std::optional<double> validation_loss, const Counters &,
            const Engine &);
  /// Writes the trace, and prints the summary of the run. `step`: the last one.
  absl::Status Finish(int64_t step, const Traffic &predicted, const StepTraffic &, Engine &);

  /// Of the metrics.
  const absl::Status &status() const { return writing; }

private:
  std::string FormatState(const StateStore &, const Engine &) const;

  const TrainRequest &request;
  const Program &program;
  const int64_t first;
  const std::string identity;
  std::optional<Metrics> metrics;
  absl::Status writing;
  std::optional<OutputFile> trace;
  Progress progress;
  Outcome outcome;
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_REPORT_H
