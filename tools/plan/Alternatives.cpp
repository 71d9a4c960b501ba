//===- Alternatives.cpp - What other plans would take ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/Alternatives.h"

#include "runtime/support/units.h"
#include "runtime/view/report.h"
#include "tools/plan/RoleTraffic.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cmath>

namespace boa {
namespace {

class Alternatives {
public:
  Alternatives(Trials &trials, const FoundPlan &found)
      : trials(trials), found(found), choice(found.choice), base(trials.run(found.choice)) {}

  std::vector<SettingReason> run() {
    addMicroBatch();
    addOrder();
    addSchedule();
    addPlaces();
    return std::move(list);
  }

private:
  /// The time of a step with another value. Trials have fewer chunks than a run: only they are
  /// compared.
  std::string compare(const std::string &name, const Choice &other) {
    const Trial &trial = trials.run(other);
    if (!trial.possible)
      return absl::StrCat(name, " is not possible");
    if (!trial.fits)
      return absl::StrCat(name, " does not fit: ", trial.need->text);
    const double change = 100 * (trial.seconds / base.seconds - 1);
    if (std::abs(change) < 0.1)
      return absl::StrCat(name, " takes as long");
    return absl::StrFormat("%s takes %.1f%% %s", name, std::abs(change),
                           change > 0 ? "longer" : "less");
  }

  void add(const std::string &path, const std::string &value, const std::string &why) {
    list.push_back({path, value, trials.isGiven("plan." + path) ? "given in the spec" : why});
  }

  void addMicroBatch() {
    std::vector<std::string> parts;
    const int64_t batch = trials.config()->train.batch;
    if (!trials.isGiven("plan.micro_batch"))
      for (int direction : {1, -1}) {
        Choice other = choice;
        do
          other.microBatch += direction;
        while (other.microBatch > 0 && other.microBatch <= batch && batch % other.microBatch != 0);
        if (other.microBatch > 0 && other.microBatch <= batch)
          parts.push_back(compare(absl::StrCat(other.microBatch), other));
      }
    add("micro_batch", absl::StrCat(choice.microBatch),
        parts.empty() ? "the batch has one sequence" : absl::StrJoin(parts, "; "));
  }

  void addOrder() {
    std::string why;
    if (choice.order == Schedule::vertical) {
      why = found.horizontal <= 0 ? "no horizontal plan fits"
            : found.isHorizontalPlan
                ? absl::StrFormat("the best horizontal plan takes %.2f times as long",
                                  found.horizontal / found.trial.seconds)
                : absl::StrFormat("no horizontal plan is faster than %.2f times this",
                                  found.horizontal / found.trial.seconds);
    } else if (!trials.isGiven("plan.schedule")) {
      Choice other = choice;
      other.order = Schedule::vertical;
      why = compare("vertical", other);
    }
    add("schedule", WordOf(choice.order), why);
  }

  void addSchedule() {
    const bool clips = NeedsNorm(trials.config()->train);
    std::vector<std::string> parts;
    for (double delay : clips ? std::vector<double>{0, 1} : std::vector<double>{0, 0.5, 1}) {
      if (delay == choice.delay || trials.isGiven("plan.schedule.delay") ||
          (clips && choice.order == Schedule::horizontal))
        continue;
      Choice other = choice;
      other.delay = delay;
      parts.push_back(compare(absl::StrCat(delay), other));
    }
    add("schedule.delay", absl::StrCat(choice.delay), absl::StrJoin(parts, "; "));
    parts.clear();
    for (int64_t prefetch : {choice.prefetch - 1, choice.prefetch + 1}) {
      if (prefetch < 1 || trials.isGiven("plan.schedule.prefetch"))
        continue;
      Choice other = choice;
      other.prefetch = prefetch;
      parts.push_back(compare(absl::StrCat(prefetch), other));
    }
    add("schedule.prefetch", absl::StrCat(choice.prefetch), absl::StrJoin(parts, "; "));
    std::string why;
    if (!trials.isGiven("plan.schedule.recompute") && !trials.isGiven("plan.schedule.keep")) {
      Choice other = choice;
      other.recompute = !choice.recompute;
      other.keep = 0;
      why = compare(choice.recompute ? "keeping all activations" : "computing them again", other);
    }
    add("schedule.recompute", choice.recompute ? "true" : "false", why);
    if (choice.keep > 0) {
      Choice other = choice;
      other.keep = 0;
      add("schedule.keep", absl::StrCat(choice.keep, " layers"),
          trials.isGiven("plan.schedule.keep") ? "" : compare("none", other));
    }
  }

  static std::string print(const Shares &shares, bool onSsd) {
    std::vector<std::string> parts;
    const int host = shares.host + (onSsd ? 0 : shares.rest());
    if (shares.device > 0)
      parts.push_back(absl::StrCat("device ", shares.device, "%"));
    if (host > 0)
      parts.push_back(absl::StrCat("host ", host, "%"));
    if (onSsd && shares.rest() > 0)
      parts.push_back(absl::StrCat("ssd ", shares.rest(), "%"));
    return absl::StrJoin(parts, ", ");
  }

  void addPlaces() {
    const bool onSsd = HasSsdRates(trials.config()->machine);
    std::map<std::string, RoleTraffic> uses;
    for (const RoleTraffic &use : trafficByRole(base.program))
      uses[use.role] = use;
    for (const std::string &role : planRoles()) {
      if (!uses.count(role))
        continue;
      const std::string path = absl::StrCat("place.", role);
      auto chosen = choice.places.find(role);
      if (chosen == choice.places.end()) {
        list.push_back({path, "", "given in the spec"});
        continue;
      }
      const Shares &shares = chosen->second;
      std::vector<std::string> parts;
      auto consider = [&](const char *name, Shares other) {
        if (other.device == shares.device && other.host == shares.host)
          return;
        Choice changed = choice;
        changed.places[role] = other;
        parts.push_back(compare(name, changed));
      };
      if (onSsd && IsSeparate(base.program.machine))
        consider("all on the device", {100, 0});
      if (onSsd) {
        consider("all in host memory", {0, 100});
        consider("all on SSD", {0, 0});
      }
      list.push_back({path, print(shares, onSsd),
                      parts.empty() ? "the machine has no SSD" : absl::StrJoin(parts, "; ")});
    }
  }

  Trials &trials;
  const FoundPlan &found;
  const Choice &choice;
  const Trial &base;
  std::vector<SettingReason> list;
};

/// Takes less memory until the choice fits. Null if it does not.
const Trial *fit(Trials &trials, Choice choice) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    const Trial &trial = trials.run(choice);
    if (trial.fits)
      return &trial;
    if (!trial.possible || choice.places.empty())
      return nullptr;
    for (auto &[role, shares] : choice.places) {
      shares.host = attempt == 6 ? 0 : shares.host * 8 / 10;
      shares.device = attempt == 6 ? 0 : shares.device * 8 / 10;
    }
  }
  return nullptr;
}

} // namespace

std::vector<SettingReason> compareAlternatives(Trials &trials, const FoundPlan &found) {
  return Alternatives(trials, found).run();
}

std::vector<BatchPoint> throughputByBatch(Trials &trials, const Choice &choice) {
  std::vector<BatchPoint> curve;
  constexpr int64_t kMostMicroBatches = 64;
  const int64_t batch = trials.config()->train.batch;
  std::vector<int64_t> batches = {batch};
  for (int64_t times = 1; times <= kMostMicroBatches; times *= 2)
    if (times * choice.microBatch <= std::max(4 * batch, 8 * choice.microBatch))
      batches.push_back(times * choice.microBatch);
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  for (Schedule order : {Schedule::vertical, Schedule::horizontal})
    for (int64_t each : batches) {
      Choice changed = choice;
      changed.order = order;
      changed.batch = each;
      // A horizontal step that clips has no delay.
      if (order == Schedule::horizontal && NeedsNorm(trials.config()->train))
        changed.delay = 0;
      const Trial *trial = fit(trials, changed);
      if (!trial)
        continue;
      const double tokens = double(each) * double(trial->program.model.context);
      StepRun run;
      run.uses = trial->uses;
      BatchPoint point;
      point.order = WordOf(order);
      point.batch = each;
      point.tokens_per_second = tokens / trial->seconds;
      for (const auto &[link, seconds] : AloneSeconds(trial->program, run)) {
        if (absl::StartsWith(link, "compute"))
          point.compute_roof = tokens / seconds;
        else if (point.traffic_roof == 0)
          point.traffic_roof = tokens / seconds;
      }
      curve.push_back(point);
    }
  return curve;
}

} // namespace boa
