//===- SlotPools.cpp ------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/storage/SlotPools.h"

using namespace mlir;

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

void SlotPools::take(SlotNeed &need) {
  SlotPool &pool = *need.pool;
  pool.peak = std::max(pool.peak, ++pool.live);
  if (!countsPairs)
    return;
  for (SlotPool &other : pools) {
    if (&other == &pool || other.needs.empty() || other.space() != pool.space())
      continue;
    const auto [lower, higher] = std::minmax(pool.number, other.number);
    std::vector<int64_t> &peaks = pools[lower].peakWith;
    if (peaks.size() <= higher)
      peaks.resize(pools.size());
    peaks[higher] = std::max(peaks[higher], pool.live + other.live);
  }
}

void SlotPools::forgetLive() {
  for (SlotPool &pool : pools)
    pool.live = 0;
}

void SlotPools::forgetPeaks(bool pairs) {
  countsPairs = pairs;
  for (SlotPool &pool : pools) {
    pool.peak = 0;
    pool.peakWith.clear();
  }
}

bool SlotPools::share(Space space) {
  SlotPool *into = nullptr, *from = nullptr;
  std::pair<int64_t, bool> most; // bytes saved, and whether both are of one role
  for (SlotPool &pool : pools)
    for (auto [number, peak] : llvm::enumerate(pool.peakWith)) {
      if (peak == 0)
        continue;
      SlotPool &other = pools[number];
      const int64_t together = std::max(pool.slotBytes(), other.slotBytes()) * peak;
      const std::pair saves(pool.peakBytes() + other.peakBytes() - together,
                            pool.role() == other.role());
      if (pool.space() != space || saves.first <= 0 || saves <= most)
        continue;
      most = saves;
      into = &pool;
      from = &other;
    }
  if (!into)
    return false;
  for (SlotNeed *need : from->needs) {
    need->pool = into;
    into->needs.push_back(need);
  }
  from->needs.clear();
  return true;
}

} // namespace boa
