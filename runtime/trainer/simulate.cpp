//===- simulate.cpp - A run that moves nothing ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/simulate.h"

#include "runtime/device/simulated.h"
#include "runtime/engine/engine.h"
#include "runtime/io/input_file.h"
#include "runtime/io/new_file.h"
#include "runtime/io/output_file.h"
#include "runtime/support/units.h"
#include "runtime/trainer/output_checks.h"
#include "runtime/view/metrics.h"
#include "runtime/view/outcome.h"
#include "runtime/view/progress.h"
#include "runtime/view/screen.h"
#include "runtime/view/trace.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

namespace boa {
namespace {

absl::StatusOr<std::map<std::string, double>> ReadKernelTimes(const std::string &path) {
  std::map<std::string, double> seconds;
  if (path.empty())
    return seconds;
  absl::StatusOr<std::string> text = ReadInput(path);
  if (!text.ok())
    return text.status();
  std::istringstream file(*text);
  std::string name;
  for (double value; file >> name >> value;)
    seconds[name] = value;
  if (seconds.empty() || !file.eof())
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read kernel times from `", path,
                     "`: expected lines of a kernel's name and its seconds"));
  return seconds;
}

class Simulation {
public:
  Simulation(const Program &program, const EntryPoints &entries, const SimulateOptions &options)
      : program(program), entries(entries), options(options),
        extents(CreateSimulatedExtents(program)) {}
  absl::Status Run();
  SimulatedRun Result() && {
    return {std::move(seconds), std::move(uses), std::move(recorded), outcome.writes()};
  }

private:
  absl::Status Open();
  void Enqueue();
  absl::Status FinishStep();
  std::string FormatLinks(int64_t ns);

  const Program &program;
  const EntryPoints entries;
  const SimulateOptions options;
  const std::unique_ptr<ChunkExtents> extents;
  std::optional<Metrics> metrics;
  std::optional<OutputFile> trace;
  SimulatedDevice *device = nullptr; // the engine's
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Progress> progress;
  std::deque<int64_t> runs; // of steps that the engine has
  int64_t enqueued = 0, done = 0, step_begin = 0;
  std::vector<double> seconds; // of each step
  std::vector<LinkUse> uses;   // of the last step
  StepRecord last;
  StepRun recorded;
  Outcome outcome;
};

absl::Status Simulation::Open() {
  if (absl::Status status = CheckSimulation(options); !status.ok())
    return status;
  auto seconds = ReadKernelTimes(options.kernels);
  if (!seconds.ok())
    return seconds.status();
  auto made = CreateSimulatedDevice(program, *seconds);
  if (!made.ok())
    return made.status();
  device = made->get();
  EngineOptions engine_options;
  engine_options.trace = !options.trace.empty() || options.record;
  engine_options.trace_memory = options.record;
  auto created = Engine::Create(program, *std::move(made), extents.get(), engine_options);
  if (!created.ok())
    return created.status();
  engine = *std::move(created);
  if (!options.metrics.empty()) {
    auto opened = Metrics::Create(options.metrics);
    if (!opened.ok())
      return opened.status();
    metrics = *std::move(opened);
  }
  if (!options.trace.empty()) {
    auto opened = OutputFile::Open(options.trace);
    if (!opened.ok())
      return opened.status();
    trace = *std::move(opened);
  }
  progress = std::make_unique<Progress>(options.out, 0, options.steps);
  progress->Say(FormatScreen(program) + FormatPlaces(program));
  return absl::OkStatus();
}

void Simulation::Enqueue() {
  const int64_t pending = program.plan.delay > 0 ? enqueued : 0; // 0: of the first step, too
  runs.push_back(engine->Enqueue(entries.step, ++enqueued, pending));
  outcome.predicted.Add(program.TrafficOfStep(enqueued - 1));
}

absl::Status Simulation::FinishStep() {
  if (absl::Status status = engine->Wait(runs.front()); !status.ok())
    return status;
  // Transfers that end after a step count for the next one. The last step has no next.
  if (++done == options.steps)
    if (absl::Status status = engine->Drain(); !status.ok())
      return status;
  const int64_t end = done == options.steps ? engine->Now() : engine->EndOf(runs.front());
  const Counters counters = engine->TakeCounters(runs.front());
  uses = device->TakeUse(runs.front());
  runs.pop_front();
  const TrainSettings &t = program.train;
  last = {};
  last.step = done;
  last.loss = std::numeric_limits<double>::quiet_NaN();
  last.rate = LearningRate(program.train.optimizer, done, t.steps);
  last.tokens = program.MicroBatches() * program.MicroBatch() * program.model.context;
  last.seconds = double(end - step_begin) * 1e-9;
  last.Take(program, counters, *engine);
  // The first step fills memory, and the last one has what drains behind it.
  if (options.record && done == std::max<int64_t>(options.steps - 1, 1)) {
    recorded.name = "simulated";
    recorded.seconds = last.seconds;
    recorded.begin_ns = step_begin;
    recorded.end_ns = end;
    recorded.moved = counters.moved;
    recorded.uses = uses;
    recorded.waited = last.waited;
  }
  step_begin = end;
  seconds.push_back(last.seconds);
  outcome.moved.Add(counters.moved);
  for (const auto &[path, bytes] : counters.written_to)
    outcome.written_to[path] += bytes;
  ++outcome.steps;
  outcome.tokens += last.tokens;
  outcome.seconds += last.seconds;
  progress->Step(last);
  return metrics ? metrics->Write(last) : absl::OkStatus();
}

/// How busy each link was in the last step, the one that bounds it first.
std::string Simulation::FormatLinks(int64_t ns) {
  std::vector<LinkUse> busy;
  for (const LinkUse &use : uses)
    if (use.full_ns > 0)
      busy.push_back(use);
  std::sort(busy.begin(), busy.end(), [](const LinkUse &a, const LinkUse &b) {
    return std::make_pair(-a.busy_ns, a.name) < std::make_pair(-b.busy_ns, b.name);
  });
  if (busy.empty() || ns == 0)
    return "";
  std::string text = absl::StrFormat("\n  %-22s %11s %11s %11s %11s\n", "last step, by link",
                                     "busy", "alone", "bytes", "each second");
  for (const LinkUse &use : busy)
    absl::StrAppendFormat(&text, "  %-22s %10.1f%% %10.1f%% %11s %11s\n", use.name,
                          100 * double(use.busy_ns) / double(ns),
                          100 * double(use.full_ns) / double(ns),
                          use.bytes ? FormatBytes(double(use.bytes)) : "-",
                          use.bytes ? FormatBytes(double(use.bytes) * 1e9 / double(ns)) : "-");
  absl::StrAppendFormat(&text, "\n  bound by %s: busy for %.1f%% of the step\n", busy[0].name,
                        100 * double(busy[0].busy_ns) / double(ns));
  return text;
}

absl::Status Simulation::Run() {
  if (absl::Status status = Open(); !status.ok())
    return status;
  while (done < options.steps - (options.leave_last ? 1 : 0)) {
    if (runs.empty())
      Enqueue();
    // As a run does: the next is there before the last has ended.
    if (enqueued < options.steps) {
      if (absl::Status status = engine->Wait(runs.front(), kEnqueueAhead); !status.ok())
        return status;
      Enqueue();
    }
    if (absl::Status status = FinishStep(); !status.ok())
      return status;
  }
  std::vector<TraceEvent> events = engine->TakeTrace();
  if (options.record) {
    recorded.events = events;
    recorded.memory = engine->TakeMemoryTrace();
  }
  if (trace)
    if (absl::Status status = WriteTrace(*trace, program.model.name, std::move(events));
        !status.ok())
      return status;
  outcome.last_step = done;
  outcome.measured = false;
  outcome.loss = std::numeric_limits<double>::quiet_NaN();
  outcome.TakeMemory(program, *engine);
  progress->Say(absl::StrCat("\n", FormatSummary(outcome), FormatMeasures(program, outcome),
                             FormatLinks(int64_t(std::llround(last.seconds * 1e9)))));
  const std::string worn =
      FindWornOut(WearOf(program, outcome.writes()),
                  outcome.seconds / double(outcome.steps) * double(program.train.steps));
  if (!worn.empty())
    progress->Say("  warning: " + worn);
  return absl::OkStatus();
}

} // namespace

absl::Status CheckSimulation(const SimulateOptions &options) {
  std::vector<FileUse> kept = {{"the kernel times", options.kernels}};
  for (const std::string &source : options.sources)
    kept.push_back({"a source of this program", source});
  absl::Status status =
      CheckOutputs({{"--metrics", options.metrics}, {"--trace", options.trace}}, kept);
  if (status.ok() && !options.metrics.empty())
    status = Metrics::CheckNew(options.metrics);
  return status.ok() ? ReadKernelTimes(options.kernels).status() : status;
}

absl::StatusOr<SimulatedRun> Simulate(const Program &program, const EntryPoints &entries,
                                      const SimulateOptions &options) {
  Simulation simulation(program, entries, options);
  if (absl::Status status = simulation.Run(); !status.ok())
    return status;
  return std::move(simulation).Result();
}

} // namespace boa
