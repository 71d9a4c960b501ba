//===- Search.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/Search.h"

#include "tools/MemoryAdvice.h"
#include "tools/plan/Fill.h"
#include "tools/plan/Roles.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace boa {
namespace {

/// An order whose best plan takes so many times as long is not improved: no change of one setting
/// gains as much. Nor are smaller micro-batches tried behind plans of `kHopeless` times.
constexpr double kFar = 1.25, kHopeless = 1.5;

class Searcher {
public:
  Searcher(Trials &trials, const MachineSettings &machine)
      : trials(trials), config(*trials.config()), machine(machine),
        vocabularyBlocks(config.plan.vocabulary_blocks) {
    isFree = [&](const std::string &role) {
      return !trials.isGiven("plan.place") && !trials.isGiven("plan.place." + role);
    };
  }

  std::optional<Found> run(Shortage &shortage) {
    for (Schedule order : orders())
      search(order);
    shortage = least;
    if (!best && cutVocabulary())
      for (Schedule order : orders())
        search(order);
    if (!best)
      return std::nullopt;
    found = std::move(best);
    tidy();
    if (!confirm()) {
      shortage = {found->trial.need, found->choice};
      return std::nullopt;
    }
    found->tried = trials.count();
    found->bound = longest(limits);
    found->isHorizontalPlan = horizontal <= horizontalAtLeast;
    found->horizontal = std::min(horizontal, horizontalAtLeast);
    if (std::isinf(found->horizontal))
      found->horizontal = 0;
    return found;
  }

  double refillFrom(const Choice &start) {
    Choice least = start;
    for (auto &[role, shares] : least.places)
      shares = {};
    const Trial &base = trials.run(least);
    if (!base.fits)
      return std::numeric_limits<double>::infinity();
    note(limitsOf(base));
    consider(least, base);
    take(start, trials.run(start), boundOf(base));
    if (!isNear() && isQuick(base))
      improve();
    return found->trial.seconds;
  }

private:
  /// Whether a trial takes a fraction of a second.
  static bool isQuick(const Trial &trial) {
    constexpr int64_t kFewChunks = 4096;
    int64_t chunks = 0;
    for (const Storage &storage : trial.program.storages)
      chunks += storage.entry_count() * storage.chunks;
    return chunks <= kFewChunks;
  }

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

  /// Whether some layers may keep their activations where the others compute them again.
  bool someLayersMayKeep() const {
    return !trials.isGiven("plan.schedule.keep") &&
           (config.plan.recompute || !trials.isGiven("plan.schedule.recompute"));
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
    choice.vocabularyBlocks = vocabularyBlocks;
    for (const std::string &role : planRoles())
      if (isFree(role))
        choice.places[role] = {};
    return choice;
  }

  /// Nothing fits: takes the fewest blocks with which the smallest plan of some order does. Whether
  /// there are any.
  bool cutVocabulary() {
    if (trials.isGiven("plan.vocabulary_blocks"))
      return false;
    const std::vector<int64_t> counts = moreVocabularyBlocks(config.model.vocab, vocabularyBlocks);
    auto fits = [&](int64_t count) {
      vocabularyBlocks = count;
      return llvm::any_of(orders(), [&](Schedule order) {
        return begin(order, recomputes().front(), microBatches().back()).second->fits;
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

  /// Within the machine's memory, if the trial was without limits, too.
  Limits limitsOf(const Trial &trial, bool saved = true) const {
    MachineSettings limited = trial.program.machine;
    limited.device_memory = machine.device_memory;
    limited.host_memory = machine.host_memory;
    return boa::limitsOf(trial, limited, saved);
  }
  Bound boundOf(const Trial &trial) const { return longest(limitsOf(trial)); }

  static void takeLess(Limits &all, const Limits &here) {
    for (const auto &[link, seconds] : here) {
      auto [least, isNew] = all.emplace(link, seconds);
      if (!isNew)
        least->second = std::min(least->second, seconds);
    }
  }
  void note(const Limits &here) {
    takeLess(limits, here);
    takeLess(limitsOfOrder, here);
  }

  /// If no layer computes anything again, kernels take least. A plan whose last layers alone keep
  /// their activations moves fewer of these: maybe none goes to SSD.
  void noteLeastCompute(Schedule order) {
    if (!someLayersMayKeep())
      return;
    const Choice choice = smallest(order, /*recompute=*/false, microBatches().front());
    const Trial *trial = &trials.run(choice);
    if (!trial->fits)
      trial = &trials.runUnlimited(choice);
    if (trial->fits)
      note(limitsOf(*trial, /*saved=*/false));
  }

  bool isNear() const {
    const bool isMixed = found->choice.recompute && someLayersMayKeep();
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
    for (bool recompute : recomputes())
      walkMicroBatches(order, recompute);
    if (!found)
      return;
    noteLeastCompute(order);
    if (mayWin())
      while (!isNear() && improve()) {
      }
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

  /// The plan that takes least memory. A step that clips may fit with another delay only.
  std::pair<Choice, const Trial *> begin(Schedule order, bool recompute, int64_t microBatch) {
    Choice choice = smallest(order, recompute, microBatch);
    const Trial *trial = nullptr;
    for (double delay : delays(order)) {
      choice.delay = delay;
      trial = &trials.run(choice);
      if (trial->fits || !trial->possible || !NeedsNorm(config.train))
        break;
    }
    return {choice, trial};
  }

  /// Larger micro-batches come first. Smaller ones take less memory for kernels, which leaves
  /// more for the rest. But no link has less to do then: each layer reads its weights more often
  /// in kernels, and in horizontal order from SSD, too. So what is left out lowers no bound.
  void walkMicroBatches(Schedule order, bool recompute) {
    int worse = 0;
    double before = std::numeric_limits<double>::infinity();
    for (int64_t microBatch : microBatches()) {
      const auto [base, trial] = begin(order, recompute, microBatch);
      if (!trial->fits) {
        if (trial->possible && (recompute || least.need.empty()))
          least = {trial->need, base};
        continue;
      }
      note(limitsOf(*trial));
      const Bound here = boundOf(*trial);
      const bool hopeless = here.seconds > secondsOfBest() * (1 - kNear);
      if (hopeless && order == Schedule::horizontal)
        horizontalAtLeast = std::min(horizontalAtLeast, here.seconds);
      // And smaller ones are no better.
      if (hopeless)
        return;
      const double seconds = consider(base, *trial);
      if (seconds <= here.seconds * (1 + kNear) || seconds > secondsOfBest() * kHopeless)
        return;
      worse = seconds < before * (1 - kGain) ? 0 : worse + 1;
      before = std::min(before, seconds);
      if (worse == 2)
        return;
    }
  }

  /// Of all orders so far.
  double secondsOfBest() const {
    double seconds = std::numeric_limits<double>::infinity();
    for (const std::optional<Found> *plan : {&best, &found})
      if (*plan)
        seconds = std::min(seconds, (*plan)->trial.seconds);
    return seconds;
  }

  /// The seconds of a filled plan, which may be the best so far.
  double consider(const Choice &base, const Trial &baseTrial) {
    auto [choice, trial] = fill(trials, base, baseTrial, boundOf(baseTrial).seconds);
    take(choice, *trial, boundOf(baseTrial));
    return trial->seconds;
  }

  void take(const Choice &choice, const Trial &trial, const Bound &boundOfOrder) {
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
  void attempt(const Choice &choice) {
    const Trial &same = trials.run(choice);
    take(choice, same, found->boundOfOrder);
    if (!same.fits && same.possible && !isNear())
      refill(choice);
  }

  /// Whether it fits.
  bool refill(Choice choice) {
    for (auto &[role, shares] : choice.places)
      shares = {};
    const Trial &base = trials.run(choice);
    if (base.fits && boundOf(base).seconds < found->trial.seconds * (1 - kGain))
      consider(choice, base);
    return base.fits;
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
    for (double delay : delays(found->choice.order)) {
      Choice choice = found->choice;
      choice.delay = delay;
      attempt(choice);
    }
    if (found->choice.recompute)
      improveKeep();
    for (int64_t prefetch : prefetches()) {
      Choice choice = found->choice;
      choice.prefetch = prefetch;
      attempt(choice);
    }
    improvePlaces();
    return found->trial.seconds < before * (1 - kGain);
  }

  /// The largest that is smaller; 0: none.
  int64_t nextMicroBatch(int64_t size) const {
    for (int64_t smaller : microBatches())
      if (smaller < size)
        return smaller;
    return 0;
  }

  /// More layers that keep their activations, then fewer, until that is worse twice. These
  /// activations need memory, too, so memory is filled anew, or kernels take smaller
  /// micro-batches.
  void improveKeep() {
    std::vector<int64_t> more, fewer;
    for (int64_t keep : keeps(found->trial.program)) {
      if (keep > found->choice.keep)
        more.push_back(keep);
      if (keep < found->choice.keep)
        fewer.insert(fewer.begin(), keep);
    }
    for (const std::vector<int64_t> &counts : {more, fewer}) {
      int worse = 0;
      for (int64_t keep : counts) {
        const double before = found->trial.seconds;
        Choice choice = found->choice;
        choice.keep = keep;
        if (!refill(choice))
          if (const int64_t smaller = nextMicroBatch(choice.microBatch)) {
            choice.microBatch = smaller;
            refill(choice);
          }
        worse = found->trial.seconds < before ? 0 : worse + 1;
        if (worse == 2 || isNear())
          break;
      }
    }
  }

  /// Moves a tenth of a role to the host's memory, or out of it.
  void improvePlaces() {
    constexpr int kStep = 10;
    const Choice start = found->choice;
    for (const auto &[role, shares] : start.places)
      for (int change : {kStep, -kStep}) {
        Choice choice = found->choice;
        Shares &moved = choice.places[role];
        moved.host = std::clamp(moved.host + change, 0, 100 - moved.device);
        take(choice, trials.run(choice), found->boundOfOrder);
      }
  }

  /// Places roles that move nothing, or that the plan lacks, in memory, as a reader expects.
  void tidy() {
    const std::vector<RoleUse> uses = usesOf(found->trial.program);
    const Choice before = found->choice;
    for (const auto &[role, shares] : before.places) {
      const std::string &name = role;
      auto use = llvm::find_if(uses, [&](const RoleUse &each) { return each.role == name; });
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
  const MachineSettings machine; // for its limits of memory
  int64_t vocabularyBlocks;
  std::function<bool(const std::string &)> isFree;
  std::optional<Found> best, found; // of all orders, and of one
  Limits limits, limitsOfOrder;
  double horizontal = std::numeric_limits<double>::infinity();
  double horizontalAtLeast = std::numeric_limits<double>::infinity(); // of those that were left out
  Shortage least;                                                     // of the smallest plan so far
};

} // namespace

std::optional<Found> findPlan(Trials &trials, Shortage &shortage) {
  return Searcher(trials, trials.config()->machine).run(shortage);
}

double refill(Trials &trials, const Choice &start, const MachineSettings &machine) {
  return Searcher(trials, machine).refillFrom(start);
}

} // namespace boa
