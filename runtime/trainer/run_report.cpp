//===- run_report.cpp - Reports of a training run -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/run_report.h"

#include "runtime/support/units.h"
#include "runtime/trainer/expected_step.h"
#include "runtime/trainer/output_checks.h"
#include "runtime/trainer/process.h"
#include "runtime/trainer/simulate.h"
#include "runtime/view/report_file.h"
#include "runtime/view/screen.h"
#include "runtime/view/trace.h"
#include "runtime/weights/adapters.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <utility>

namespace boa {

/// What a person may type behind a run.
static std::string FormatNext(const TrainRequest &request) {
  const std::string &next = request.options().next;
  return next.empty() ? absl::StrCat("the same command with --resume and more ",
                                     request.FlagOfSteps(), " goes on")
                      : absl::StrCat("next: ", next);
}

RunReport::RunReport(const TrainRequest &request, const EntryPoints &entries, int64_t first,
                     const std::string &identity)
    : request(request), entries(entries), program(request.program()), first(first),
      identity(identity), progress(request.options().quiet ? nullptr : request.options().out, first,
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
    losses = metrics->former();
  }
  if (!options.tensorboard.empty()) {
    absl::StatusOr<EventFile> opened = EventFile::Create(options.tensorboard, identity, first);
    if (!opened.ok())
      return opened.status();
    events = *std::move(opened);
  }
  if (!options.trace.empty()) {
    absl::StatusOr<OutputFile> created = OutputFile::Open(options.trace);
    if (!created.ok())
      return created.status();
    trace = *std::move(created);
  }
  if (!options.log.empty()) {
    absl::StatusOr<RunLog> opened = RunLog::Open(options.log);
    if (!opened.ok())
      return opened.status();
    log = *std::move(opened);
  }
  return absl::OkStatus();
}

void RunReport::Start(const Data &data, const Settings &settings, const StateStore &state,
                      const Engine &engine) {
  if (log && writing.ok())
    writing = log->Begin(identity, first, settings, engine.Environment());
  ExpectedStep expected;
  if (!request.options().quiet || log || !request.options().report.empty())
    expected = ExpectStep(program, entries, program.train.steps - first);
  std::vector<std::string> texts = Notes(state);
  texts.insert(texts.begin(), FormatScreen(program, {data.Describe(), FormatState(state, engine),
                                                     expected.speed}));
  if (!expected.warning.empty())
    texts.push_back(expected.warning);
  for (const std::string &text : texts) {
    Say(text);
    absl::StrAppend(&figures, text, absl::EndsWith(text, "\n") ? "" : "\n");
  }
  SayTables(FormatPlaces(program));
}

void RunReport::Say(const std::string &text) {
  progress.Say(text);
  if (log && writing.ok())
    writing = log->Say(text);
}

void RunReport::SayTables(const std::string &text) {
  if (request.options().verbose)
    progress.Say(text);
  if (log && writing.ok())
    writing = log->Say(text);
  figures += text;
}

void RunReport::End(const absl::Status &status, int64_t step) {
  if (log && writing.ok())
    writing = log->End(status, step);
}

/// The state's directories and size, and what moves its bytes.
std::string RunReport::FormatState(const StateStore &state, const Engine &engine) const {
  int64_t bytes = 0;
  for (int64_t path : state.BytesByPath())
    bytes += path;
  const int64_t keep = program.train.commit_keep;
  return absl::StrCat(absl::StrJoin(request.directories(), ", "), ": ", FormatBytes(bytes),
                      " on SSD, ",
                      keep == 1 ? "the last commit is kept"
                      : program.train.evaluate_every == 0
                          ? absl::StrCat("the last ", keep, " commits are kept")
                          : absl::StrCat(keep, " commits are kept: the last ones, and the best in "
                                               "validation"),
                      "; ", engine.DescribeIo());
}

/// Lines that a person may have to act on.
std::vector<std::string> RunReport::Notes(const StateStore &state) const {
  std::vector<std::string> notes = DescribeForeignPaths(request.directories());
  if (trace || !request.options().report.empty())
    notes.push_back(absl::StrCat("note: ", trace ? "--trace" : "--report", " keeps the newest ",
                                 kTraceEvents, " commands, in up to ",
                                 FormatBytes(kTraceEvents * int64_t(sizeof(TraceEvent))),
                                 " beside the memory of the plan"));
  for (const std::string &note : state.Notes())
    notes.push_back(absl::StrCat("note: ", note));
  if (const absl::Status status = CheckForPeft(program); !status.ok())
    notes.push_back(absl::StrCat("note: boa export cannot write this training with --adapter: ",
                                 status.message()));
  if (std::string note = DescribeWarmup(program.train); !note.empty())
    notes.push_back(std::move(note));
  return notes;
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
  record.tokens_of = done.tokens_of;
  record.seconds = done.seconds;
  record.Take(program, counters, engine);
  record.waited["data"] = done.waited_for_data;
  record.gradient_norm = done.gradient_norm;
  record.validation_loss = validation_loss;

  ++outcome.steps;
  outcome.tokens += record.tokens;
  outcome.seconds += done.seconds;
  constexpr size_t kEnds = 9;
  ends.emplace_back(done.seconds, done.end_ns);
  if (ends.size() > kEnds)
    ends.pop_front();
  for (const auto &[link, seconds] : record.waited)
    waited[link] += seconds;
  outcome.loss = done.loss;
  losses.training.Add(done.step, done.loss);
  if (validation_loss) {
    outcome.Validated(done.step, *validation_loss);
    losses.validation.Add(done.step, *validation_loss);
  }
  progress.Step(record);
  if (validation_loss)
    Say(absl::StrFormat("step %d: validation loss %.4f", done.step, *validation_loss));
  if (metrics && writing.ok())
    writing = metrics->Write(record);
  if (events && writing.ok())
    writing = events->Write(record);
}

/// The run beside what a simulation of the same program foretells.
absl::Status RunReport::WritePage(std::vector<TraceEvent> events, Engine &engine) {
  Report page;
  page.program = &program;
  page.what = "Training";
  page.block = request.options().plan.block;
  page.losses = losses;
  page.writes = outcome.writes();
  page.figures = figures;
  StepRun &measured = page.runs.emplace_back();
  const double steps = double(outcome.steps);
  measured.name = "measured";
  measured.seconds = outcome.seconds / steps;
  // Of the last steps the one in the middle, by time.
  std::sort(ends.begin(), ends.end());
  const auto &[seconds, end_ns] = ends[ends.size() / 2];
  measured.end_ns = end_ns;
  measured.begin_ns = end_ns - int64_t(seconds * 1e9);
  measured.events = std::move(events);
  measured.memory = engine.TakeMemoryTrace();
  auto mean = [&](const std::map<std::string, int64_t> &bytes) {
    std::map<std::string, int64_t> of_step;
    for (const auto &[role, all] : bytes)
      of_step[role] = all / outcome.steps;
    return of_step;
  };
  measured.moved = {mean(outcome.moved.read), mean(outcome.moved.written),
                    mean(outcome.moved.to_device), mean(outcome.moved.to_host)};
  for (const auto &[link, all] : waited)
    measured.waited[link] = all / steps;
  if (CheckSimulatedRates(program).ok()) {
    SimulateOptions options;
    options.steps = 5;
    options.out = nullptr;
    options.record = true;
    absl::StatusOr<SimulatedRun> run = Simulate(program, entries, options);
    if (!run.ok())
      return run.status();
    page.runs.push_back(std::move(run->step));
    page.runs.back().name = "predicted";
    SetBoundOfLinks(page);
  } else {
    page.notes.push_back("The machine does not say how fast it is, so there is no prediction: "
                         "boa probe measures it.");
  }
  return WriteReport(request.options().report, page);
}

absl::Status RunReport::Finish(int64_t step, const Traffic &predicted, const StepTraffic &traffic,
                               Engine &engine) {
  std::vector<TraceEvent> events = engine.TakeTrace();
  if (trace)
    if (absl::Status status = WriteTrace(*trace, program.model.name, events); !status.ok())
      return status;
  outcome.last_step = step;
  outcome.predicted = predicted;
  outcome.moved = traffic.moved();
  outcome.written_to = traffic.written_to();
  outcome.paths = request.directories();
  outcome.disk_read = traffic.disk().read;
  outcome.disk_written = traffic.disk().written;
  outcome.TakeMemory(program, engine);
  outcome.resident_bytes = PeakResidentBytes();
  outcome.state = absl::StrJoin(request.directories(), ", ");
  outcome.saved = request.save();
  // Before the page, which may take long: a person who ends it has read the outcome.
  if (outcome.steps > 0) {
    SayTables(FormatMeasures(program, outcome));
    const std::string summary = absl::StrCat("\n", FormatSummary(outcome));
    Say(summary);
    figures += summary;
  } else {
    Say(absl::StrCat("weights saved to ", request.save()));
  }
  Say(FormatNext(request));
  return !request.options().report.empty() && outcome.steps > 0
             ? WritePage(std::move(events), engine)
             : absl::OkStatus();
}

} // namespace boa
