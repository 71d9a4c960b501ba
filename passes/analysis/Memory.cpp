//===- Memory.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Memory.h"

#include "passes/Config.h"

using namespace mlir;

namespace boa {

Memory::Memory(ModuleOp module)
    : separate(Config::machine(module).string("memory", "unified") == "separate") {}

static Space spaceOf(Tier tier) { return tier == Tier::device ? Space::device : Space::host; }

bool Memory::isHome(StorageOp storage, int64_t first, int64_t count, Space space) const {
  auto ranges = storage.getHomeRanges(first, count);
  return ranges.size() == 1 && ranges[0].tier != Tier::ssd &&
         (!separate || spaceOf(ranges[0].tier) == space);
}

bool Memory::isStaged(StorageOp storage, int64_t first, int64_t count, Space space) const {
  return separate && space == Space::device &&
         llvm::any_of(storage.getHomeRanges(first, count),
                      [](const StorageOp::HomeRange &range) { return range.tier == Tier::ssd; });
}

void Memory::copy(StorageOp storage, int64_t count, Space from, Space to, Move move) const {
  if (separate && from != to)
    move(to == Space::device ? Link::toDevice : Link::toHost, storage.getChunkBytes() * count);
}

void Memory::fetch(StorageOp storage, int64_t first, int64_t count, Space space, Move move) const {
  if (isHome(storage, first, count, space))
    return;
  for (const StorageOp::HomeRange &range : storage.getHomeRanges(first, count)) {
    if (range.tier == Tier::ssd)
      move(Link::ssdRead, storage.getChunkBytes() * range.count);
    copy(storage, range.count, spaceOf(range.tier), space, move);
  }
}

void Memory::offload(StorageOp storage, int64_t first, int64_t count, Space space,
                     Move move) const {
  if (isHome(storage, first, count, space))
    return;
  for (const StorageOp::HomeRange &range : storage.getHomeRanges(first, count)) {
    copy(storage, range.count, space, spaceOf(range.tier), move);
    if (range.tier == Tier::ssd)
      move(Link::ssdWrite, storage.getChunkBytes() * range.count);
  }
}

} // namespace boa
