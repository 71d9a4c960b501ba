//===- Search.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/Search.h"

#include "tools/plan/Roles.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace boa {
namespace {

/// A plan that is faster by less is no better.
constexpr double kGain = 1e-3;
/// So near to its bound a plan is not improved.
constexpr double kNear = 5e-3;
/// A share of all memory that is not worth another trial.
constexpr double kWorth = 0.02;

class Searcher {
public:
  explicit Searcher(Trials &trials) : trials(trials), config(*trials.config()) {
    isFree = [&](const std::string &role) {
      return !trials.isGiven("plan.place") && !trials.isGiven("plan.place." + role);
    };
  }

  std::optional<Found> run(std::string &need) {
    for (Schedule order : orders())
      for (bool recompute : recomputes())
        walkMicroBatches(order, recompute);
    need = least;
    if (!found)
      return std::nullopt;
    noteLeastCompute();
    while (!isNear() && improve()) {
    }
    tidy();
    if (!confirm()) {
      need = found->trial.need;
      return std::nullopt;
    }
    found->tried = trials.count();
    found->bound = bound;
    return found;
  }

private:
  //===--------------------------------------------------------------------===//
  // What is free
  //===--------------------------------------------------------------------===//

  std::vector<Schedule> orders() const {
    if (trials.isGiven("plan.schedule"))
      return {config.plan.schedule};
    return {Schedule::vertical, Schedule::horizontal};
  }

  std::vector<bool> recomputes() const {
    if (trials.isGiven("plan.schedule.recompute") || trials.isGiven("plan.schedule.keep"))
      return {config.plan.recompute};
    return {true, false};
  }

  /// The largest first.
  std::vector<int64_t> microBatches() const {
    if (trials.isGiven("plan.micro_batch"))
      return {config.microBatch()};
    std::vector<int64_t> sizes;
    for (int64_t size = config.train.batch; size > 0; --size)
      if (config.train.batch % size == 0)
        sizes.push_back(size);
    return sizes;
  }

  std::vector<double> delays(Schedule order) const {
    if (trials.isGiven("plan.schedule.delay"))
      return {config.plan.delay};
    // The norm of all gradients comes before the first update.
    if (NeedsNorm(config.train))
      return order == Schedule::vertical ? std::vector<double>{1, 0} : std::vector<double>{0};
    return {0, 0.25, 0.5, 0.75, 1};
  }

  std::vector<int64_t> prefetches() const {
    if (trials.isGiven("plan.schedule.prefetch"))
      return {config.plan.prefetch};
    return {1, 2, 3};
  }

  /// How many layers may keep their activations, where the others compute them again.
  std::vector<int64_t> keeps(const Program &program) const {
    if (trials.isGiven("plan.schedule.keep"))
      return {config.plan.keep};
    int64_t layers = 0;
    for (const Group &group : program.groups)
      if (group.layer)
        layers = std::max(layers, group.count);
    std::vector<int64_t> counts = {0};
    for (int64_t eighth = 1; eighth < 8; ++eighth)
      if (int64_t count = layers * eighth / 8; count > counts.back())
        counts.push_back(count);
    return counts;
  }

  /// Everything that is free on SSD, which takes least memory.
  Choice smallest(Schedule order, bool recompute, int64_t microBatch) const {
    Choice choice;
    choice.order = order;
    choice.recompute = recompute;
    choice.microBatch = microBatch;
    choice.delay = delays(order).front();
    choice.prefetch = prefetches().front();
    choice.keep = recompute ? config.plan.keep : 0;
    for (const std::string &role : planRoles())
      if (isFree(role))
        choice.places[role] = {};
    return choice;
  }

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  /// Fills what memory is left with the roles that gain most; the best of a few trials.
  std::pair<Choice, const Trial *> fill(const Choice &base, const Trial &baseTrial) {
    std::pair<Choice, const Trial *> best(base, &baseTrial);
    if (base.places.empty())
      return best;
    const std::vector<RoleUse> roles = usesOf(baseTrial.program);
    Room room = roomLeft(baseTrial.program);
    for (int attempt = 0; attempt < 5; ++attempt) {
      const Choice choice = spread(base, roles, room, baseTrial.program.machine);
      const Trial &trial = trials.run(choice);
      if (!trial.fits) {
        room.device *= 0.85;
        room.host *= 0.85;
        continue;
      }
      if (trial.seconds < best.second->seconds)
        best = {choice, &trial};
      if (trial.seconds <= boundOf(baseTrial).seconds * (1 + kNear))
        break;
      // Homes need no slots: there may be more room than it seemed.
      const Room left = roomLeft(trial.program);
      const Room all = roomOf(trial.program.machine);
      if (left.device < kWorth * all.device && left.host < kWorth * all.host)
        break;
      if (llvm::all_of(choice.places, [](const auto &place) { return place.second.rest() == 0; }))
        break;
      room.device += left.device;
      room.host += left.host;
    }
    return best;
  }

  //===--------------------------------------------------------------------===//
  // The search
  //===--------------------------------------------------------------------===//

  /// Larger micro-batches come first. Smaller ones take less memory for kernels, which leaves
  /// more for the rest, at the cost of more traffic in horizontal order.
  void walkMicroBatches(Schedule order, bool recompute) {
    int worse = 0;
    double before = std::numeric_limits<double>::infinity(), boundBefore = 0;
    for (int64_t microBatch : microBatches()) {
      const Choice base = smallest(order, recompute, microBatch);
      const Trial &trial = trials.run(base);
      if (!trial.fits) {
        if (trial.possible && (recompute || least.empty()))
          least = trial.need;
        continue;
      }
      const Bound here = boundOf(trial);
      note(here);
      const bool hopeless = found && here.seconds > found->trial.seconds * (1 - kNear);
      if (hopeless && boundBefore > 0 && here.seconds >= boundBefore)
        return; // and smaller ones are no better
      boundBefore = here.seconds;
      if (hopeless)
        continue;
      const double seconds = consider(base, trial);
      worse = seconds < before * (1 - kGain) ? 0 : worse + 1;
      before = std::min(before, seconds);
      if (worse == 2)
        return;
    }
  }

  /// Within the machine's memory, if the trial was without limits, too.
  Bound boundOf(const Trial &trial) const {
    MachineSettings machine = trial.program.machine;
    machine.device_memory = config.machine.device_memory;
    machine.host_memory = config.machine.host_memory;
    return boa::boundOf(trial, machine);
  }

  void note(const Bound &here) {
    if (bound.seconds == 0 || here.seconds < bound.seconds)
      bound = here;
  }

  /// If no layer computes anything again, kernels take least. Where that does not fit, some layers
  /// may still do so: then the bound is that of all layers.
  void noteLeastCompute() {
    if (recomputes().size() == 1)
      return;
    for (Schedule order : orders()) {
      const Choice choice = smallest(order, /*recompute=*/false, microBatches().front());
      if (!trials.run(choice).fits)
        if (const Trial &trial = trials.runUnlimited(choice); trial.fits)
          note(boundOf(trial));
    }
  }

  /// The seconds of a filled plan, which may be the best so far.
  double consider(const Choice &base, const Trial &baseTrial) {
    auto [choice, trial] = fill(base, baseTrial);
    if (base.order == Schedule::horizontal && (horizontal == 0 || trial->seconds < horizontal))
      horizontal = trial->seconds;
    if (!found || trial->seconds < found->trial.seconds * (1 - kGain)) {
      found.emplace();
      found->choice = choice;
      found->trial = *trial;
      found->boundOfOrder = boundOf(baseTrial);
    }
    found->horizontal = horizontal;
    return trial->seconds;
  }

  bool isNear() const { return found->trial.seconds <= found->boundOfOrder.seconds * (1 + kNear); }

  void take(const Choice &choice, const Trial &trial) {
    if (!trial.fits || trial.seconds >= found->trial.seconds * (1 - kGain))
      return;
    found->choice = choice;
    found->trial = trial;
  }

  /// Tries each other value of one setting. Where memory does not suffice then, it is filled
  /// anew.
  bool improve() {
    const double before = found->trial.seconds;
    auto attempt = [&](auto change) {
      Choice choice = found->choice;
      change(choice);
      const Trial &same = trials.run(choice);
      take(choice, same);
      if (same.fits || !same.possible || isNear())
        return;
      for (auto &[role, shares] : choice.places)
        shares = {};
      const Trial &base = trials.run(choice);
      if (base.fits && boundOf(base).seconds < found->trial.seconds * (1 - kGain))
        consider(choice, base);
    };
    for (double delay : delays(found->choice.order))
      attempt([&](Choice &choice) { choice.delay = delay; });
    if (found->choice.recompute)
      for (int64_t keep : keeps(found->trial.program))
        attempt([&](Choice &choice) { choice.keep = keep; });
    for (int64_t prefetch : prefetches())
      attempt([&](Choice &choice) { choice.prefetch = prefetch; });
    improvePlaces();
    return found->trial.seconds < before * (1 - kGain);
  }

  /// Moves a tenth of a role to memory, or out of it, alone or in exchange.
  void improvePlaces() {
    constexpr int kStep = 10;
    const Choice start = found->choice;
    for (const auto &[role, shares] : start.places)
      for (int change : {kStep, -kStep}) {
        Choice choice = found->choice;
        Shares &moved = choice.places[role];
        moved.host = std::clamp(moved.host + change, 0, 100 - moved.device);
        take(choice, trials.run(choice));
      }
  }

  /// Of what moves nothing a reader expects that it lives in memory.
  void tidy() {
    Choice choice = found->choice;
    for (const RoleUse &use : usesOf(found->trial.program))
      if (auto place = choice.places.find(use.role);
          place != choice.places.end() && place->second.rest() == 100 &&
          use.read + use.written + use.toDevice + use.toHost == 0)
        place->second.host = 100;
    const Trial &trial = trials.run(choice);
    if (trial.fits && trial.seconds <= found->trial.seconds)
      found->choice = choice;
  }

  /// Buffers of a run may be of other sizes than those of the trials: then less stays in memory.
  bool confirm() {
    for (int attempt = 0; attempt < 8; ++attempt) {
      found->trial = trials.runWhole(found->choice);
      if (found->trial.fits)
        return true;
      for (auto &[role, shares] : found->choice.places) {
        shares.host = shares.host * 95 / 100;
        shares.device = shares.device * 95 / 100;
      }
    }
    return false;
  }

  Trials &trials;
  const Config config;
  std::function<bool(const std::string &)> isFree;
  std::optional<Found> found;
  Bound bound;
  double horizontal = 0;
  std::string least; // the memory that the smallest plan so far needs
};

} // namespace

std::optional<Found> findPlan(Trials &trials, std::string &need) {
  return Searcher(trials).run(need);
}

} // namespace boa
