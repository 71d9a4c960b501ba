//===- Memory.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Memory.h"

#include "dialect/Config.h"

using namespace mlir;

namespace boa {

Memory::Memory(ModuleOp module)
    : separate(IsSeparate(Config(module).machine)), direct(Config(module).machine.direct) {}

static Space spaceOf(Tier tier) { return tier == Tier::device ? Space::device : Space::host; }

static SmallVector<StorageOp::HomeRange, 2> rangesOf(Memory::Chunks chunks) {
  return chunks.storage.getHomeRanges(chunks.entry, chunks.first, chunks.count);
}

SmallVector<Memory::Piece, 2> Memory::getPieces(Chunks chunks) const {
  SmallVector<Piece, 2> pieces;
  for (const StorageOp::HomeRange &range : rangesOf(chunks)) {
    if (range.tier == Tier::ssd)
      continue;
    Space space = spaceOf(range.tier);
    if (!pieces.empty() && pieces.back().first + pieces.back().count == range.first &&
        (!separate || pieces.back().space == space))
      pieces.back().count += range.count;
    else
      pieces.push_back({space, range.first, range.count});
  }
  return pieces;
}

bool Memory::isHome(Chunks chunks, Space space) const {
  auto pieces = getPieces(chunks);
  return pieces.size() == 1 && pieces[0].count == chunks.count &&
         (!separate || pieces[0].space == space);
}

bool Memory::isHomeInAllEntries(StorageOp storage, int64_t first, int64_t count,
                                Space space) const {
  return llvm::all_of(storage.getEntryRanges(), [&](const StorageOp::EntryRange &range) {
    return isHome({storage, range.first, first, count}, space);
  });
}

PoolAttr Memory::getPool(StorageOp storage, Space space, int64_t chunks) const {
  PoolAttr found;
  auto isOwn = [&](PoolAttr pool) { return pool && pool.getSpace() == space; };
  for (PoolAttr pool : storage.getPoolsAttr().getAsRange<PoolAttr>()) {
    if (pool.getChunks() < chunks || (separate && !isOwn(pool)))
      continue;
    if (!found || (isOwn(pool) && !isOwn(found)) ||
        (isOwn(pool) == isOwn(found) && pool.getChunks() < found.getChunks()))
      found = pool;
  }
  return found;
}

bool Memory::isStaged(Chunks chunks, Space space) const {
  return passesHost(space) && llvm::any_of(rangesOf(chunks), [](const StorageOp::HomeRange &range) {
           return range.tier == Tier::ssd;
         });
}

void Memory::copy(StorageOp storage, int64_t count, Space from, Space to, Move move) const {
  if (separate && from != to)
    move(to == Space::device ? Link::toDevice : Link::toHost, storage.getChunkBytes() * count);
}

void Memory::transfer(Chunks chunks, Space space, bool home, Move move) const {
  StorageOp storage = chunks.storage;
  if (isHome(chunks, space))
    return;
  for (const StorageOp::HomeRange &range : rangesOf(chunks)) {
    const Space other = spaceOf(range.tier);
    if (range.tier == Tier::ssd)
      move(home ? Link::ssdWrite : Link::ssdRead, storage.getChunkBytes() * range.count);
    if (range.tier != Tier::ssd || passesHost(space))
      copy(storage, range.count, home ? space : other, home ? other : space, move);
  }
}

} // namespace boa
