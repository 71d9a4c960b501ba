//===- ChoosePlan.cpp -----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/ChoosePlan.h"

#include "runtime/device/simulated.h"
#include "runtime/support/threads.h"
#include "tools/MemoryAdvice.h"

#include "absl/strings/str_cat.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Threading.h"

#include <algorithm>
#include <cstdio>

namespace boa {
namespace {

/// Looks for changes that make the smallest plan fit.
class FittingChanges {
public:
  FittingChanges(Trials &trials, const Shortage &shortage)
      : trials(trials), config(*trials.config()), shortage(shortage) {}

  std::string run() {
    std::string lines;
    for (const std::vector<std::string> &change : {moreMemory(), fewerConstraints(), vocabulary()})
      for (const std::string &line : change)
        absl::StrAppend(&lines, "\n    --set ", line);
    for (const char *type : {"train.weights=bf16", "train.compute=bf16"})
      if (isF32(type) && fits({type}))
        absl::StrAppend(&lines, "\n    --set ", type);
    if (lines.empty())
      return "";
    const bool several = llvm::StringRef(lines).count("--set") > memories;
    return absl::StrCat("\n  it fits with",
                        several        ? " any of"
                        : memories > 1 ? " both of"
                                       : "",
                        lines);
  }

private:
  bool fits(std::vector<std::string> changes) {
    Choice choice = shortage.choice;
    choice.changes = std::move(changes);
    return trials.compileWhole(choice).fits;
  }

  bool isF32(llvm::StringRef change) const {
    return change.contains("weights") ? config.train.weights == WeightType::f32
                                      : config.train.compute == ComputeType::f32;
  }

  std::vector<std::string> moreMemory() {
    Choice choice = shortage.choice;
    std::vector<std::string> enough =
        findMemory(config.machine, *shortage.need, [&](const std::vector<std::string> &changes) {
          choice.changes = changes;
          const Trial &trial = trials.compileWhole(choice);
          return FitResult{trial.possible, trial.need};
        });
    memories = std::max<size_t>(enough.size(), 1);
    if (enough.size() > 1)
      enough = {enough[0] + " --set " + enough[1]};
    return enough;
  }

  /// Values that the plan block gives, and that take more memory than others.
  std::vector<std::string> fewerConstraints() {
    std::vector<std::string> changes;
    auto consider = [&](const char *path, bool takesMore, const std::string &change) {
      if (takesMore && trials.isGiven(path) && fits({change}))
        changes.push_back(change);
    };
    const PlanSettings &plan = config.plan;
    consider("plan.micro_batch", config.microBatch() > 1, "plan.micro_batch=1");
    consider("plan.schedule.recompute", !plan.recompute, "plan.schedule.recompute=true");
    consider("plan.schedule.keep", plan.keep > 0, "plan.schedule.keep=0");
    consider("plan.schedule.delay", plan.delay > 0, "plan.schedule.delay=0");
    const bool onSsd = HasSsdRates(config.machine);
    consider("plan.place", onSsd, "plan.place=ssd");
    return changes;
  }

  /// The fewest blocks of the last matrix that fit.
  std::vector<std::string> vocabulary() {
    if (trials.isGiven("plan.vocabulary_blocks"))
      return {};
    for (int64_t blocks = 2; blocks <= 64; blocks *= 2)
      if (config.model.vocab % blocks == 0)
        if (std::string change = absl::StrCat("plan.vocabulary_blocks=", blocks); fits({change}))
          return {change};
    return {};
  }

  Trials &trials;
  const Config &config;
  const Shortage &shortage;
  size_t memories = 1; // that must be larger together
};

} // namespace

absl::StatusOr<FoundPlan> choosePlan(Trials &trials) {
  // LLVM's pools abort where a thread cannot start.
  if (absl::Status status = CheckThreads("the threads of the search",
                                         llvm::hardware_concurrency().compute_thread_count());
      !status.ok())
    return status;
  const Config &config = *trials.config();
  const bool onDevice = IsSeparate(config.machine) && config.updateSpace() == Space::device;
  if (absl::Status status = CheckSimulatedRates(config.machine, onDevice, /*on_ssd=*/false);
      !status.ok())
    return status;
  Shortage shortage;
  std::optional<FoundPlan> found = findPlan(trials, shortage);
  // A plan that is possible and does not fit has a need.
  if (!found && !shortage.need && trials.firstFailure()) {
    std::fputs(trials.firstFailure()->diagnostics.c_str(), stderr);
    return trials.firstFailure()->status;
  }
  if (!found)
    return absl::ResourceExhaustedError(absl::StrCat("no plan fits: ", shortage.need->text,
                                                     FittingChanges(trials, shortage).run()));
  found->block = trials.block(found->choice);
  return *std::move(found);
}

} // namespace boa
