//===- PlanReport.cpp - The reports of plans and simulations --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/PlanReport.h"

#include "runtime/support/units.h"
#include "runtime/view/report_file.h"
#include "tools/plan/Alternatives.h"
#include "tools/plan/ShadowPrices.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <optional>

namespace boa {
namespace {

void warnOfWear(Report &report, double seconds) {
  if (std::string worn = FindWornOut(WearOf(*report.program, report.writes), seconds);
      !worn.empty())
    report.notes.push_back("warning: " + worn);
}

} // namespace

absl::Status writePlanReport(const std::string &path, Trials &trials, const FoundPlan &found,
                             const PlanSummaryOptions &options) {
  absl::StatusOr<SimulatedRun> run = Trials::record(found.trial);
  if (!run.ok())
    return run.status();
  const Program &program = found.trial.program;
  Report report;
  report.program = &program;
  report.what = "Plan";
  report.block = trials.block(found.choice);
  report.reasons = compareAlternatives(trials, found);
  report.runs.push_back(std::move(run->step));
  report.runs[0].seconds = found.trial.seconds;
  report.runs[0].moved = program.TrafficOfStep(/*earlier=*/2);
  report.bound_seconds = found.bound.seconds;
  report.bound_link = found.bound.link;
  report.bound_of_machine = true;
  report.curve = throughputByBatch(trials, found.choice);
  report.writes = writesOf(found.trial);
  const double tokens = double(program.train.batch) * double(program.model.context);
  double longest = found.trial.seconds * double(program.train.steps);
  if (options.tokens > 0)
    longest = std::max(longest, found.trial.seconds * options.tokens / tokens);
  for (const std::string &sentence : costsOf(found, options))
    report.notes.push_back(sentence + ".");
  for (const ShadowPrice &price : shadowPricesOf(trials, found))
    report.notes.push_back(absl::StrFormat("With a tenth more of %s a step takes %s, %.1f%% less.",
                                           price.resource, FormatSeconds(price.seconds),
                                           100 * (1 - price.seconds / found.trial.seconds)));
  warnOfWear(report, longest);
  return WriteReport(path, report);
}

absl::Status writeSimulationReport(const std::string &path, const CompileRequest &request,
                                   const Program &program, SimulatedRun run, bool withCurve) {
  Report report;
  report.program = &program;
  report.what = "Simulation";
  report.runs.push_back(std::move(run.step));
  report.writes = run.writes;
  SetBoundOfLinks(report);
  warnOfWear(report, report.runs[0].seconds * double(program.train.steps));
  // A module has no settings that could change.
  const bool isModule = llvm::any_of(request.files, [](const std::string &file) {
    return llvm::StringRef(file).ends_with(".mlir");
  });
  std::optional<Trials> trials;
  if (!isModule && !llvm::is_contained(request.files, "-"))
    trials.emplace(request);
  if (trials && trials->config()) {
    const PlanSettings &plan = trials->config()->plan;
    Choice choice;
    choice.microBatch = program.MicroBatch();
    choice.order = plan.schedule;
    choice.delay = plan.delay;
    choice.prefetch = plan.prefetch;
    choice.recompute = plan.recompute;
    choice.keep = plan.keep;
    choice.vocabularyBlocks = plan.vocabulary_blocks;
    report.block = trials->block(choice);
    if (withCurve)
      report.curve = throughputByBatch(*trials, choice);
  }
  return WriteReport(path, report);
}

} // namespace boa
