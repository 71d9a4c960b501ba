//===- StoredPlan.cpp - The plan that a state holds -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/StoredPlan.h"

#include "frontend/Frontend.h"
#include "runtime/state/manifest_files.h"
#include "runtime/support/units.h"
#include "tools/plan/ChoosePlan.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "llvm/ADT/StringRef.h"

#include <cstdio>
#include <optional>

namespace boa {
namespace {

/// A checked spec, and the directory of its state.
struct TrainingSpec {
  frontend::Spec spec;
  std::string state;

  /// All that its plan block says.
  std::string given() const {
    return absl::StrCat(absl::StrJoin(spec.valuesOfPlan, "\n"), "\n",
                        absl::StrJoin(spec.activationsOfPlan, ""));
  }
};

/// None if the spec is wrong: compiling it says why.
absl::StatusOr<std::optional<TrainingSpec>> readSpec(CompileRequest &compile,
                                                     const TrainerOptions &train) {
  if (absl::Status status = readTexts(compile); !status.ok())
    return status;
  frontend::FrontendResult result =
      frontend::compileTexts(compile.texts, compile.overrides, compile.held);
  if (!result.spec)
    return std::nullopt;
  TrainingSpec read{*std::move(result.spec), train.state};
  if (read.state.empty())
    read.state = FolderOfState(read.spec.machine);
  return read;
}

/// The plan of the commit that a run goes on from; none if it holds none. The training says what is
/// wrong with a state that cannot be read.
std::optional<ChosenPlan> readStoredPlan(const std::string &state, const TrainerOptions &train) {
  const absl::StatusOr<ReadManifests> manifests =
      ReadManifest(train.disk ? *train.disk : SystemFiles(), state);
  if (!manifests.ok())
    return std::nullopt;
  std::optional<ChosenPlan> plan;
  for (const SavedCommit &commit : manifests->manifest.commits)
    if (!train.at || commit.record.step == *train.at)
      plan = PlanOf(commit.record);
  return plan;
}

void appendPlan(const ChosenPlan &plan, const std::string &origin, CompileRequest &compile) {
  // Of several plan blocks the last one holds.
  compile.texts.push_back({origin, plan.block});
}

std::string nameOf(const std::string &state) { return absl::StrCat("the plan in ", state); }

absl::StatusOr<FoundPlan> searchPlan(const CompileRequest &compile) {
  Trials trials(compile);
  if (!trials.config())
    return absl::InvalidArgumentError("");
  absl::StatusOr<FoundPlan> found = choosePlan(trials);
  return found;
}

} // namespace

absl::Status usePlan(const StoredPlanOptions &options, CompileRequest &compile,
                     TrainerOptions &train) {
  if (compile.isModule() || !(train.resume || options.choose))
    return absl::OkStatus();
  absl::StatusOr<std::optional<TrainingSpec>> spec = readSpec(compile, train);
  if (!spec.ok() || !*spec)
    return spec.status();
  const std::string given = (*spec)->given(), &state = (*spec)->state;
  std::optional<ChosenPlan> stored;
  if (train.resume)
    stored = readStoredPlan(state, train);
  const bool isSame = stored && stored->given == given;
  auto say = [&](const std::string &text) {
    if (!train.quiet)
      std::fprintf(train.out, "%s\n", text.c_str());
  };
  if (isSame && !options.again) {
    say(absl::StrCat("under the plan that `", state, "` holds; --replan chooses another"));
    train.plan = *stored;
    appendPlan(*stored, nameOf(state), compile);
    compile.adviceOnMemory =
        absl::StrCat("the plan is the one in `", state, "`; --replan chooses another");
    return absl::OkStatus();
  }
  if (!stored && !options.choose && !options.again)
    return absl::OkStatus();
  if (stored && !isSame)
    say("note: the plan block is not that for which the plan in the state was chosen: it is chosen "
        "anew");
  const absl::StatusOr<FoundPlan> found = searchPlan(compile);
  if (!found.ok())
    return found.status();
  train.plan = {found->block, given};
  say(absl::StrFormat("the plan, chosen from %d that were compiled and simulated: a step takes %s; "
                      "none is faster than %s, bound by %s",
                      found->simulated, FormatSeconds(found->trial.seconds),
                      FormatSeconds(found->bound.seconds), found->bound.link));
  if (train.verbose)
    say(absl::StrCat("\n", found->block));
  appendPlan(train.plan, "the plan that was chosen", compile);
  return absl::OkStatus();
}

absl::Status useStoredPlan(CompileRequest &compile, const TrainerOptions &train) {
  if (compile.isModule())
    return absl::OkStatus();
  absl::StatusOr<std::optional<TrainingSpec>> spec = readSpec(compile, train);
  if (!spec.ok() || !*spec)
    return spec.status();
  const std::optional<ChosenPlan> stored = readStoredPlan((*spec)->state, train);
  if (!stored || stored->given != (*spec)->given())
    return absl::OkStatus();
  appendPlan(*stored, nameOf((*spec)->state), compile);
  compile.adviceOnMemory =
      absl::StrCat("the plan is the one in `", (*spec)->state,
                   "`; a plan block of your own replaces it, and so does --set plan.place=ssd");
  return absl::OkStatus();
}

} // namespace boa
