//===- run_report.h - Reports of a training run -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything that a run tells: a screen at its start, a line and a record of metrics for each step,
// the summary, the trace and the page at its end. Tables are printed with --verbose; the log and
// the page have them always.
//
// Ownership: it owns the files of --metrics, --tensorboard, --trace and --log, and the line of
// progress. Program and options must outlive it. Threads: one, the driver. Errors: a console that
// is gone is no error. The first error of metrics, events or log stays in status(); after it
// nothing is written to them. The run must then end with a commit.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_RUN_REPORT_H
#define BOA_RUNTIME_TRAINER_RUN_REPORT_H

#include "runtime/abi/program.h"
#include "runtime/data/data.h"
#include "runtime/engine/engine.h"
#include "runtime/io/output_file.h"
#include "runtime/state/state.h"
#include "runtime/trainer/loss_settings.h"
#include "runtime/trainer/request.h"
#include "runtime/trainer/step_queue.h"
#include "runtime/trainer/step_traffic.h"
#include "runtime/view/loss_curve.h"
#include "runtime/view/metrics.h"
#include "runtime/view/outcome.h"
#include "runtime/view/progress.h"
#include "runtime/view/run_log.h"
#include "runtime/view/tensorboard.h"

#include "absl/status/status.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boa {

class RunReport {
public:
  /// `first`: steps that were done before. `identity`: of the state.
  RunReport(const TrainRequest &, const EntryPoints &, int64_t first, const std::string &identity);

  /// Opens the files.
  absl::Status Open();
  /// The facts of the run and its notes.
  void Start(const Data &, const Settings &, const StateStore &, const Engine &);
  /// Prints lines beside the progress, and logs them.
  void Say(const std::string &text);
  /// The line of a step, and its record of metrics.
  void Step(const FinishedStep &, std::optional<double> validation_loss, const Counters &,
            const Engine &);
  /// Writes the trace and the page, and prints the summary of the run. `step`: the last one.
  absl::Status Finish(int64_t step, const Traffic &predicted, const StepTraffic &, Engine &);

  /// Logs how the run ended, at a step or with an error. That may be one of status() then.
  void End(const absl::Status &, int64_t step);

  /// Of the metrics, events and the log.
  const absl::Status &status() const { return writing; }

private:
  /// Prints tables with --verbose. The log and the page have them always.
  void SayTables(const std::string &text);
  std::string FormatState(const StateStore &, const Engine &) const;
  std::vector<std::string> Notes(const StateStore &) const;
  absl::Status WritePage(std::vector<TraceEvent> events, Engine &);

  const TrainRequest &request;
  const EntryPoints entries;
  const Program &program;
  const int64_t first;
  const std::string identity;
  std::optional<Metrics> metrics;
  std::optional<EventFile> events;
  absl::Status writing;
  std::optional<OutputFile> trace;
  std::optional<RunLog> log;
  Progress progress;
  Outcome outcome;
  Losses losses;       // for the page
  std::string figures; // the same
  /// The last steps, for the page: what they took, and their ends on the engine's clock.
  std::deque<std::pair<double, int64_t>> ends;
  std::map<std::string, double> waited; // seconds of all steps, by link
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_RUN_REPORT_H
