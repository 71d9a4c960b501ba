//===- Search.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/Search.h"

#include "tools/MemoryAdvice.h"
#include "tools/plan/FillMemory.h"
#include "tools/plan/Neighbors.h"
#include "tools/plan/RoleTraffic.h"
#include "tools/plan/SearchSpace.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace boa {
namespace {

/// An order whose best plan takes so many times as long is not improved: no change of one setting
/// gains as much. Nor are smaller micro-batches tried behind plans of `kHopeless` times, unless
/// that is quick.
constexpr double kFar = 1.25, kHopeless = 1.5;

class Searcher {
public:
  Searcher(Trials &trials, const MachineSettings &machine)
      : trials(trials), config(*trials.config()), machine(machine), space(trials),
        vocabularyBlocks(config.plan.vocabulary_blocks) {}

  std::optional<FoundPlan> run(Shortage &shortage) {
    for (Schedule order : space.orders())
      search(order);
    shortage = least;
    if (!best && cutVocabulary())
      for (Schedule order : space.orders())
        search(order);
    if (!best)
      return std::nullopt;
    found = std::move(best);
    trials.prepare({});
    placeIdleRoles();
    if (!confirmWhole()) {
      shortage = {found->trial.need, found->choice};
      return std::nullopt;
    }
    found->compiled = trials.compiled();
    found->simulated = trials.simulated();
    found->bound = longest(limits);
    found->isHorizontalPlan = horizontal <= horizontalAtLeast;
    found->horizontal = std::min(horizontal, horizontalAtLeast);
    if (std::isinf(found->horizontal))
      found->horizontal = 0;
    return found;
  }

  double refillFrom(const Choice &start) {
    const Choice least = withoutPlaces(start);
    trials.prepare({start});
    const Trial &base = trials.run(least);
    if (!base.fits)
      return std::numeric_limits<double>::infinity();
    noteLimits(limitsOf(base));
    tryFilled(least, base);
    takeIfBetter(start, trials.run(start), boundOf(base));
    if (!isNear() && base.isQuick())
      improve();
    trials.prepare({});
    return found->trial.seconds;
  }

private:
  /// Nothing fits: takes the fewest blocks with which the smallest plan of some order does. Whether
  /// there are any.
  bool cutVocabulary() {
    if (trials.isGiven("plan.vocabulary_blocks"))
      return false;
    const std::vector<int64_t> counts = moreVocabularyBlocks(config.model.vocab, vocabularyBlocks);
    auto fits = [&](int64_t count) {
      vocabularyBlocks = count;
      return llvm::any_of(space.orders(), [&](Schedule order) {
        return compileSmallest(order, space.recomputes().front(), space.microBatches().back())
            .second->fits;
      });
    };
    // More blocks take less memory.
    auto fewest = llvm::partition_point(counts, [&](int64_t count) { return !fits(count); });
    if (fewest == counts.end())
      return false;
    vocabularyBlocks = *fewest;
    return true;
  }

  //===--------------------------------------------------------------------===//
  // Bounds
  //===--------------------------------------------------------------------===//

  /// The trial's machine with this one's memory: the trial may have been without limits.
  MachineSettings limited(const Trial &trial) const {
    MachineSettings limited = trial.program.machine;
    limited.device_memory = machine.device_memory;
    limited.host_memory = machine.host_memory;
    return limited;
  }
  Limits limitsOf(const Trial &trial, bool saved = true) const {
    return boa::limitsOf(trial, limited(trial), saved);
  }
  Bound boundOf(const Trial &trial) const { return longest(limitsOf(trial)); }

  static void takeMinimum(Limits &all, const Limits &here) {
    for (const auto &[link, seconds] : here) {
      auto [least, isNew] = all.emplace(link, seconds);
      if (!isNew)
        least->second = std::min(least->second, seconds);
    }
  }
  void noteLimits(const Limits &here) {
    takeMinimum(limits, here);
    takeMinimum(limitsOfOrder, here);
  }

  /// If no layer computes anything again, kernels take least. A plan whose last layers alone keep
  /// their activations moves fewer of these: maybe none goes to SSD.
  void noteLeastCompute(Schedule order) {
    if (!space.someLayersMayKeep())
      return;
    const Choice choice =
        space.smallest(order, /*recompute=*/false, space.microBatches().front(), vocabularyBlocks);
    const Trial *trial = &trials.run(choice);
    if (!trial->fits)
      trial = &trials.runUnlimited(choice);
    if (trial->fits)
      noteLimits(limitsOf(*trial, /*saved=*/false));
  }

  bool isNear() const {
    const bool isMixed = found->choice.recompute && space.someLayersMayKeep();
    const Bound near = isMixed ? longest(limitsOfOrder) : found->boundOfOrder;
    return found->trial.seconds <= near.seconds * (1 + kNear);
  }

  //===--------------------------------------------------------------------===//
  // The search
  //===--------------------------------------------------------------------===//

  /// The best plan of an order, which may be the best of all.
  void search(Schedule order) {
    found.reset();
    limitsOfOrder.clear();
    for (bool recompute : space.recomputes())
      walkMicroBatches(order, recompute);
    if (!found)
      return;
    noteLeastCompute(order);
    if (mayWin())
      climb();
    if (order == Schedule::horizontal)
      horizontal = found->trial.seconds;
    if (!best || found->trial.seconds < best->trial.seconds * (1 - kGain))
      best = found;
  }

  /// Whether improving it may make this order the best.
  bool mayWin() const {
    return !best || (longest(limitsOfOrder).seconds < best->trial.seconds * (1 - kGain) &&
                     found->trial.seconds < best->trial.seconds * kFar);
  }

  /// The plan that takes least memory, compiled. A step that clips may fit with another delay only.
  std::pair<Choice, const Trial *> compileSmallest(Schedule order, bool recompute,
                                                   int64_t microBatch) {
    Choice choice = space.smallest(order, recompute, microBatch, vocabularyBlocks);
    const Trial *trial = nullptr;
    for (double delay : space.delays(order)) {
      choice.delay = delay;
      trial = &trials.compile(choice);
      if (trial->fits || !trial->possible || !NeedsNorm(config.train))
        break;
    }
    return {choice, trial};
  }

  /// Larger micro-batches come first. Smaller ones take less memory for kernels, which leaves
  /// more for the rest. But no link has less to do then: each layer reads its weights more often
  /// in kernels, and in horizontal order from SSD, too. So plans that are left out lower no bound
  /// that is below the best plan's time.
  void walkMicroBatches(Schedule order, bool recompute) {
    int worse = 0;
    double before = std::numeric_limits<double>::infinity();
    for (int64_t microBatch : space.microBatches()) {
      std::vector<Choice> later;
      if (const int64_t smaller = space.nextMicroBatch(microBatch))
        later.push_back(space.smallest(order, recompute, smaller, vocabularyBlocks));
      trials.prepare(later, /*simulated=*/false);
      const auto [base, trial] = compileSmallest(order, recompute, microBatch);
      if (!trial->fits) {
        if (trial->possible && (recompute || !least.need))
          least = {trial->need, base};
        continue;
      }
      // Its transfers alone may take longer than the best plan. Then its kernels bound nothing, and
      // smaller ones are no better.
      if (isHopeless(order,
                     longest(limitsOfTransfers(trial->program, limited(*trial), /*saved=*/true)),
                     /*near=*/0))
        return;
      trials.run(base);
      noteLimits(limitsOf(*trial));
      const Bound here = boundOf(*trial);
      if (isHopeless(order, here, kNear))
        return;
      const double seconds = tryFilled(base, *trial, later);
      if (seconds <= here.seconds * (1 + kNear) ||
          (seconds > secondsOfBest() * kHopeless && !trial->isQuick()))
        return;
      worse = seconds < before * (1 - kGain) ? 0 : worse + 1;
      before = std::min(before, seconds);
      if (worse == 2)
        return;
    }
  }

  /// Whether a plan of this bound is no better than the best one, or by less than the part `near`.
  bool isHopeless(Schedule order, const Bound &bound, double near) {
    const bool hopeless = bound.seconds > secondsOfBest() * (1 - near);
    if (hopeless && order == Schedule::horizontal)
      horizontalAtLeast = std::min(horizontalAtLeast, bound.seconds);
    return hopeless;
  }

  /// The seconds of the best plan of all orders so far.
  double secondsOfBest() const {
    double seconds = std::numeric_limits<double>::infinity();
    for (const std::optional<FoundPlan> *plan : {&best, &found})
      if (*plan)
        seconds = std::min(seconds, (*plan)->trial.seconds);
    return seconds;
  }

  /// The seconds of a filled plan, which may be the best so far. `behind`: choices that may come
  /// next.
  double tryFilled(const Choice &base, const Trial &baseTrial,
                   const std::vector<Choice> &behind = {}, const Exclusion &without = {}) {
    auto [choice, trial] =
        fillMemory(trials, base, baseTrial, boundOf(baseTrial).seconds, behind, without);
    takeIfBetter(choice, *trial, boundOf(baseTrial));
    return trial->seconds;
  }

  void takeIfBetter(const Choice &choice, const Trial &trial, const Bound &boundOfOrder) {
    if (!trial.fits || (found && trial.seconds >= found->trial.seconds * (1 - kGain)))
      return;
    if (!found)
      found.emplace();
    found->choice = choice;
    found->trial = trial;
    found->boundOfOrder = boundOfOrder;
  }

  /// Tries a change, which moves no more and no less. Where memory does not suffice for it, memory
  /// is filled anew.
  void tryChange(const Choice &choice) {
    const Trial &same = trials.run(choice);
    takeIfBetter(choice, same, found->boundOfOrder);
    if (!same.fits && same.possible && !isNear())
      refill(choice);
  }

  /// The choice with all roles that are free on SSD.
  static Choice withoutPlaces(Choice choice) {
    for (auto &[role, shares] : choice.places)
      shares = {};
    return choice;
  }

  /// Whether it fits. `behind`: choices that may come next.
  bool refill(const Choice &full, const std::vector<Choice> &behind = {}) {
    const Choice choice = withoutPlaces(full);
    const Trial &base = trials.run(choice);
    if (base.fits && boundOf(base).seconds < found->trial.seconds * (1 - kGain))
      tryFilled(choice, base, behind);
    return base.fits;
  }

  /// Tries a change of the best plan for each value, while other threads try it for the next ones.
  template <typename Value>
  void tryEach(const std::vector<Value> &values, void (*change)(Choice &, const Value &),
               llvm::function_ref<void(const Choice &)> use) {
    for (size_t i = 0; i < values.size(); ++i) {
      std::vector<Choice> changed;
      for (const Value &value : llvm::ArrayRef<Value>(values).drop_front(i)) {
        changed.push_back(found->choice);
        change(changed.back(), value);
      }
      const Choice now = changed.front();
      changed.erase(changed.begin());
      trials.prepare(changed);
      use(now);
    }
  }

  /// Tries each other value of one setting.
  bool improve() {
    const double before = found->trial.seconds;
    // Delay, prefetch and places change nothing of this bound.
    if (before <= found->boundOfOrder.seconds * (1 + kNear)) {
      if (found->choice.recompute)
        improveKeep();
      return found->trial.seconds < before * (1 - kGain);
    }
    auto change = [&](const Choice &choice) { tryChange(choice); };
    tryEach<double>(
        space.delays(found->choice.order),
        [](Choice &choice, const double &delay) { choice.delay = delay; }, change);
    if (found->choice.recompute)
      improveKeep();
    tryEach<int64_t>(
        space.prefetches(),
        [](Choice &choice, const int64_t &prefetch) { choice.prefetch = prefetch; }, change);
    improvePlaces();
    return found->trial.seconds < before * (1 - kGain);
  }

  /// More layers that keep their activations, then fewer, until that is worse twice. These
  /// activations need memory, too, so memory is filled anew, or kernels take smaller
  /// micro-batches.
  void improveKeep() {
    std::vector<int64_t> more, fewer;
    for (int64_t keep : space.keeps(found->trial.program)) {
      if (keep > found->choice.keep)
        more.push_back(keep);
      if (keep < found->choice.keep)
        fewer.insert(fewer.begin(), keep);
    }
    for (const std::vector<int64_t> &counts : {more, fewer}) {
      int worse = 0;
      for (size_t i = 0; i < counts.size(); ++i) {
        const double before = found->trial.seconds;
        Choice choice = found->choice;
        std::vector<Choice> later;
        if (i + 1 < counts.size()) {
          choice.keep = counts[i + 1];
          later.push_back(withoutPlaces(choice));
          trials.prepare(later);
        }
        choice.keep = counts[i];
        if (!refill(choice, later))
          if (const int64_t smaller = space.nextMicroBatch(choice.microBatch)) {
            choice.microBatch = smaller;
            refill(choice);
          }
        worse = found->trial.seconds < before ? 0 : worse + 1;
        if (worse == 2 || isNear())
          break;
      }
    }
  }

  /// Improves the plan until no change gains anything. Where trials are quick, it also improves
  /// another filling of memory, places first. The better one stays.
  void climb() {
    const FoundPlan start = *found;
    auto climbFromHere = [&] {
      while (!isNear() && improve()) {
      }
    };
    climbFromHere();
    if (isNear() || !start.trial.isQuick())
      return;
    FoundPlan first = std::exchange(*found, start);
    refillWithoutEach();
    if (found->trial.seconds < start.trial.seconds) {
      while (!isNear() && improvePlaces()) {
      }
      climbFromHere();
    }
    if (found->trial.seconds >= first.trial.seconds * (1 - kGain))
      found = std::move(first);
  }

  /// Fills memory without a role, which others may use better, or without a memory.
  void refillWithoutEach() {
    const Choice before = found->choice, base = withoutPlaces(before);
    const Trial &trial = trials.run(base);
    if (!trial.fits)
      return;
    std::optional<Exclusion> best;
    auto attempt = [&](const Exclusion &without) {
      const double seconds = found->trial.seconds;
      tryFilled(base, trial, {}, without);
      if (found->trial.seconds < seconds)
        best = without;
    };
    std::vector<Space> memories;
    if (IsSeparate(machine))
      memories = {Space::device, Space::host};
    auto attemptRoles = [&](std::optional<Space> memory) {
      for (const auto &[role, shares] : before.places)
        attempt({role, memory});
    };
    attemptRoles(std::nullopt);
    for (Space memory : memories)
      attempt({"", memory});
    if (!best)
      return;
    if (best->memory)
      return attemptRoles(best->memory);
    for (Space memory : memories)
      attempt({best->role, memory});
  }

  void tryNeighbors(const std::vector<Neighbor> &all) {
    tryEach<Neighbor>(all, applyNeighbor, [&](const Choice &choice) {
      takeIfBetter(choice, trials.run(choice), found->boundOfOrder);
    });
  }

  /// Moves a tenth of a role to a memory, or out of it. If that gains nothing, a role makes way.
  /// Whether anything gained.
  bool improvePlaces() {
    const double before = found->trial.seconds;
    auto gained = [&] { return found->trial.seconds < before * (1 - kGain); };
    std::vector<Space> memories = {Space::host};
    if (IsSeparate(machine) && found->trial.isQuick())
      memories.push_back(Space::device);
    tryNeighbors(tenthNeighbors(found->choice, memories));
    if (!gained() && found->trial.isQuick())
      tryNeighbors(exchangeNeighbors(found->choice, trafficByRole(found->trial.program), memories));
    return gained();
  }

  /// Places roles that move nothing, or that the plan lacks, in memory, as a reader expects.
  void placeIdleRoles() {
    const std::vector<RoleTraffic> uses = trafficByRole(found->trial.program);
    const Choice before = found->choice;
    for (const auto &[role, shares] : before.places) {
      const std::string &name = role;
      auto use = llvm::find_if(uses, [&](const RoleTraffic &each) { return each.role == name; });
      const bool moves =
          use != uses.end() && use->read + use->written + use->toDevice + use->toHost > 0;
      if (shares.rest() < 100 || moves)
        continue;
      Choice choice = found->choice;
      choice.places[role].host = 100;
      const Trial &trial = trials.run(choice);
      if (!trial.fits || trial.seconds > found->trial.seconds)
        continue;
      found->choice = choice;
      found->trial = trial;
    }
  }

  /// Buffers of a run may be of other sizes than those of the trials: then less stays in memory.
  bool confirmWhole() {
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
  const MachineSettings machine; // for its limits of memory
  const SearchSpace space;
  int64_t vocabularyBlocks;
  std::optional<FoundPlan> best, found; // of all orders, and of one
  Limits limits, limitsOfOrder;
  double horizontal = std::numeric_limits<double>::infinity();
  double horizontalAtLeast = std::numeric_limits<double>::infinity(); // of those that were left out
  Shortage least;                                                     // of the smallest plan so far
};

} // namespace

std::optional<FoundPlan> findPlan(Trials &trials, Shortage &shortage) {
  return Searcher(trials, trials.config()->machine).run(shortage);
}

double refill(Trials &trials, const Choice &start, const MachineSettings &machine) {
  return Searcher(trials, machine).refillFrom(start);
}

} // namespace boa
