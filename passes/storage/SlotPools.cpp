//===- SlotPools.cpp ------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/storage/SlotPools.h"

#include "passes/analysis/ValueNumber.h"

#include <utility>

using namespace mlir;
using namespace boa::value_number;

namespace boa {

int64_t SlotPool::slotBytes() const {
  int64_t most = 0;
  for (SlotNeed *need : needs)
    most = std::max(most, need->slotBytes());
  return most;
}

SlotNeed &SlotPools::get(StorageOp storage, Space space, int64_t chunks) {
  SlotNeed &need = all[storage][{int(space), chunks}];
  if (need.pool)
    return need;
  need.storage = storage;
  need.space = space;
  need.chunks = chunks;
  need.pool = &pools.emplace_back();
  need.pool->number = pools.size() - 1;
  need.pool->needs.push_back(&need);
  return need;
}

SmallVector<SlotNeed *> SlotPools::of(StorageOp storage) {
  SmallVector<SlotNeed *> list;
  for (auto &[key, need] : all[storage])
    list.push_back(&need);
  return list;
}

void SlotPools::count(SlotPool &pool, int64_t change) {
  auto hashOf = [&] { return pool.live == 0 ? 0 : term(mix(term(pool.number), pool.live)); };
  if (pool.live == 0) {
    pool.place = live.size();
    live.push_back(&pool);
  }
  liveHash -= hashOf();
  pool.live += change;
  liveHash += hashOf();
  if (pool.live == 0) {
    live.back()->place = pool.place;
    live[pool.place] = live.back();
    live.pop_back();
  }
}

void SlotPools::take(SlotNeed &need) {
  SlotPool &pool = *need.pool;
  count(pool, 1);
  pool.peak = std::max(pool.peak, pool.live);
  rises = true;
}

void SlotPools::giveBack(SlotNeed &need) {
  noteMoment();
  count(*need.pool, -1);
}

/// Notes a moment. Between two of them no pool, and no two together, have more live slots.
void SlotPools::noteMoment() {
  if (!std::exchange(rises, false) || !known.insert(liveHash).second)
    return;
  Moment &moment = moments.emplace_back();
  for (SlotPool *pool : live)
    moment.push_back({pool->number, pool->live});
}

void SlotPools::forgetLive() {
  noteMoment();
  for (SlotPool *pool : live)
    pool->live = 0;
  live.clear();
  liveHash = 0;
}

//===----------------------------------------------------------------------===//
// Sharing
//===----------------------------------------------------------------------===//

/// Decides which pools of a space save memory as one. Its time is proportional to the number of
/// moments: one for each layer that differs from the others.
class SlotSharing {
public:
  SlotSharing(SlotPools &slots, Space space)
      : pools(slots.pools), moments(slots.moments), together(pools.size()), at(pools.size()),
        bytes(pools.size()), best(pools.size()) {
    for (SlotPool &pool : pools)
      if (!pool.needs.empty() && pool.space() == space) {
        members.push_back(pool.number);
        bytes[pool.number] = pool.slotBytes();
      }
    for (auto [i, moment] : llvm::enumerate(moments)) {
      llvm::erase_if(moment, [&](auto each) { return !isMember(each.first); });
      for (auto [pool, slots] : moment)
        at[pool].push_back(i);
    }
    for (size_t pool : members)
      countTogether(pool);
    for (size_t pool : members)
      findBest(pool);
  }

  /// Makes one of two pools. Returns false if no two save any memory.
  bool shareTwo() {
    Gain most;
    size_t into = 0;
    for (size_t pool : members)
      if (best[pool].gain > most) {
        most = best[pool].gain;
        into = pool;
      }
    if (most == Gain())
      return false;
    merge(into, best[into].other);
    return true;
  }

private:
  using Gain = std::pair<int64_t, bool>; // bytes saved, and whether both are of one role

  /// The first of the pools of a higher number that gain most with this one.
  struct Partner {
    size_t other = 0;
    Gain gain;
  };

  bool isMember(size_t pool) const { return bytes[pool] != 0; }

  /// The gain of two pools as one; zero if they save nothing.
  Gain gainOf(size_t one, size_t two) {
    int64_t peak = std::max(pools[one].peak, pools[two].peak);
    if (auto it = together[one].find(two); it != together[one].end())
      peak = std::max(peak, it->second);
    const int64_t saved = pools[one].peak * bytes[one] + pools[two].peak * bytes[two] -
                          peak * std::max(bytes[one], bytes[two]);
    return peak > 0 && saved > 0 ? Gain(saved, pools[one].role() == pools[two].role()) : Gain();
  }

  void findBest(size_t pool) {
    best[pool] = Partner();
    for (size_t other : members)
      if (Gain gain = other > pool ? gainOf(pool, other) : Gain(); gain > best[pool].gain)
        best[pool] = {other, gain};
  }

  /// The most slots that the pool and another have at one moment.
  void countTogether(size_t pool) {
    for (size_t i : at[pool]) {
      const SlotPools::Moment &moment = moments[i];
      const int64_t own =
          llvm::find_if(moment, [&](auto each) { return each.first == pool; })->second;
      pools[pool].peak = std::max(pools[pool].peak, own);
      for (auto [other, slots] : moment)
        if (other != pool) {
          int64_t &most = together[pool][other];
          most = std::max(most, own + slots);
          together[other][pool] = most;
        }
    }
  }

  void merge(size_t into, size_t from) {
    for (SlotNeed *need : pools[from].needs) {
      need->pool = &pools[into];
      pools[into].needs.push_back(need);
    }
    pools[from].needs.clear();
    bytes[into] = std::max(bytes[into], bytes[from]);
    bytes[from] = 0;
    llvm::erase(members, from);
    for (size_t i : at[from])
      if (!addTo(moments[i], into, from))
        at[into].push_back(i);
    for (size_t pool : {into, from}) {
      for (auto [other, slots] : together[pool])
        together[other].erase(pool);
      together[pool].clear();
    }
    countTogether(into);
    for (size_t pool : members) {
      const size_t partner = best[pool].other;
      if (pool == into || partner == into || partner == from) {
        findBest(pool);
      } else if (pool < into) {
        const Gain gain = gainOf(pool, into);
        if (gain > best[pool].gain || (gain == best[pool].gain && gain != Gain() && into < partner))
          best[pool] = {into, gain};
      }
    }
  }

  /// Adds the slots of `from` to `into`. Returns whether `into` has slots there, too.
  static bool addTo(SlotPools::Moment &moment, size_t into, size_t from) {
    auto isOf = [](size_t pool) { return [=](auto each) { return each.first == pool; }; };
    auto source = llvm::find_if(moment, isOf(from)), target = llvm::find_if(moment, isOf(into));
    if (target == moment.end()) {
      source->first = into;
      return false;
    }
    target->second += source->second;
    moment.erase(source);
    return true;
  }

  std::deque<SlotPool> &pools;
  std::vector<SlotPools::Moment> moments;
  std::vector<llvm::DenseMap<size_t, int64_t>> together; // by pool: live slots here and in another
  std::vector<std::vector<size_t>> at;                   // by pool: moments that it has slots at
  std::vector<int64_t> bytes;                            // of a slot, by pool; 0: not of the space
  std::vector<Partner> best;                             // by pool
  std::vector<size_t> members;                           // in their order
};

bool SlotPools::shareUntil(Space space, llvm::function_ref<bool()> fits) {
  noteMoment();
  SlotSharing sharing(*this, space);
  while (!fits())
    if (!sharing.shareTwo())
      return false;
  return true;
}

} // namespace boa
