//===- report.cpp - Reports of a training run -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/report.h"

#include "runtime/support/units.h"
#include "runtime/trainer/outputs.h"
#include "runtime/trainer/process.h"
#include "runtime/trainer/trace.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <utility>

namespace boa {

RunReport::RunReport(const TrainRequest &request, int64_t first, const std::string &identity)
    : request(request), program(request.program()), first(first), identity(identity),
      progress(request.options().quiet ? nullptr : request.options().out, first,
               program.train.steps) {}

absl::Status RunReport::Open() {
  const TrainerOptions &options = request.options();
  if (!options.metrics.empty()) {
    absl::StatusOr<Metrics> opened = options.resume
                                         ? Metrics::Continue(options.metrics, first, identity)
                                         : Metrics::Create(options.metrics);
    if (!opened.ok())
      return opened.status();
    metrics = *std::move(opened);
  }
  if (!options.trace.empty()) {
    absl::StatusOr<OutputFile> created = OutputFile::Open(options.trace);
    if (!created.ok())
      return created.status();
    trace = *std::move(created);
  }
  return absl::OkStatus();
}

void RunReport::Start(const Data &data, const StateStore &state, const Engine &engine) {
  progress.Say(FormatStart(program, data.Describe()));
  progress.Say(FormatState(state, engine));
}

/// The state's directories and size, and the notes of its opening.
std::string RunReport::FormatState(const StateStore &state, const Engine &engine) const {
  int64_t bytes = 0;
  for (int64_t path : state.BytesByPath())
    bytes += path;
  const int64_t keep = program.train.commit_keep;
  std::string text = absl::StrCat("  state in ", absl::StrJoin(request.directories(), ", "), ": ",
                                  FormatBytes(bytes), " on SSD, ",
                                  keep == 1 ? "the last commit is kept"
                                            : absl::StrCat("the last ", keep, " commits are kept"),
                                  "; ", engine.DescribeIo(), "\n");
  text += DescribeForeignPaths(request.directories());
  if (trace)
    absl::StrAppend(&text, "  note: --trace keeps the newest ", kTraceEvents,
                    " commands, in up to ", FormatBytes(kTraceEvents * int64_t(sizeof(TraceEvent))),
                    " beside the memory of the plan\n");
  for (const std::string &note : state.Notes())
    absl::StrAppend(&text, "  note: ", note, "\n");
  return text;
}

void RunReport::Step(const FinishedStep &done, std::optional<double> validation_loss,
                     const Counters &counters, const Engine &engine) {
  const TrainSettings &t = program.train;
  StepRecord record;
  record.step = done.step;
  record.run = identity;
  record.loss = done.loss;
  record.rate = LearningRate(program.train.optimizer, done.step, t.steps);
  record.tokens = program.MicroBatches() * program.MicroBatch() * program.model.context;
  record.seconds = done.seconds;
  record.Take(program, counters, engine);
  record.waited["data"] = done.waited_for_data;
  record.gradient_norm = done.gradient_norm;
  record.validation_loss = validation_loss;

  ++outcome.steps;
  outcome.tokens += record.tokens;
  outcome.seconds += done.seconds;
  outcome.loss = done.loss;
  if (validation_loss)
    outcome.validation_loss = validation_loss;
  progress.Step(record);
  if (validation_loss)
    progress.Say(absl::StrFormat("step %d: validation loss %.4f", done.step, *validation_loss));
  if (metrics && writing.ok())
    writing = metrics->Write(record);
}

absl::Status RunReport::Finish(int64_t step, const Traffic &predicted, const StepTraffic &traffic,
                               Engine &engine) {
  if (trace)
    if (absl::Status status = WriteTrace(*trace, program.model.name, engine.TakeTrace());
        !status.ok())
      return status;
  outcome.last_step = step;
  outcome.predicted = predicted;
  outcome.moved = traffic.moved();
  outcome.disk_read = traffic.disk().read;
  outcome.disk_written = traffic.disk().written;
  outcome.TakeMemory(program, engine);
  outcome.resident_bytes = PeakResidentBytes();
  outcome.saved = request.save();
  progress.Say(outcome.steps > 0 ? "\n" + FormatOutcome(program, outcome)
                                 : absl::StrCat("  weights saved to ", request.save()));
  return absl::OkStatus();
}

} // namespace boa
