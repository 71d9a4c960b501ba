//===- slots.cpp - Homes, buffers and slots -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/slots.h"

#include <algorithm>
#include <map>
#include <utility>

namespace boa {

//===----------------------------------------------------------------------===//
// The arena
//===----------------------------------------------------------------------===//

Slots::Slots(const Program &program) : program(program), places(program.storages.size()) {
  int64_t most = 0;
  for (const Kernel &kernel : program.kernels)
    most = std::max(most, kernel.workspace);
  scratch = Take(BOA_DEVICE, boa_slot_stride(most));
  LayOutHomes();
  for (Space &space : spaces)
    space.fixed = space.bytes;
  LayOutPools();
}

Location Slots::Take(int32_t space, int64_t bytes) {
  if (!IsSeparate(program.machine))
    space = BOA_DEVICE;
  return {space, std::exchange(spaces[space].bytes, spaces[space].bytes + bytes)};
}

Slots::Layout Slots::MakeLayout(const std::vector<Home> &homes) const {
  Layout layout;
  int32_t first = 0;
  for (const Home &home : homes) {
    const bool memory = home.tier != Home::ssd;
    const int32_t space = home.tier == Home::host ? BOA_HOST : BOA_DEVICE;
    if (memory && first > 0 && layout.range_of.back() >= 0 &&
        (!IsSeparate(program.machine) || layout.ranges.back().space == space))
      layout.ranges.back().count += home.chunks;
    else if (memory)
      layout.ranges.push_back({first, home.chunks, space});
    layout.range_of.resize(first + home.chunks, memory ? int32_t(layout.ranges.size()) - 1 : -1);
    first += home.chunks;
  }
  return layout;
}

void Slots::LayOutHomes() {
  for (size_t s = 0; s < program.storages.size(); ++s) {
    Place &place = places[s];
    for (const EntryHomes &alike : program.storages[s].homes) {
      const int32_t number = int32_t(place.layouts.size());
      place.layouts.push_back(MakeLayout(alike.homes));
      for (int64_t i = 0; i < alike.entries; ++i) {
        const int64_t entry = int64_t(place.entries.size());
        place.entries.push_back({number, homes + 1});
        for (const Range &range : place.layouts.back().ranges) {
          homes = NewBuffer(s, entry, range.first, range.count, range.space);
          buffers[homes].home = true;
          buffers[homes].base = Take(range.space, boa_slot_stride(range.count * ChunkBytes(s)));
        }
      }
    }
  }
}

void Slots::LayOutPools() {
  std::map<int32_t, int32_t> shared; // pools, by the number that storages share
  std::vector<int32_t> slots;        // of each pool
  for (size_t s = 0; s < program.storages.size(); ++s) {
    std::vector<Member> &members = places[s].pools;
    for (const SlotPool &of : program.storages[s].pools) {
      int32_t number = int32_t(pools.size());
      if (of.shared)
        number = shared.try_emplace(of.shared, number).first->second;
      if (number == int32_t(pools.size())) {
        pools.emplace_back().space = of.space;
        slots.push_back(of.slots);
      }
      pools[number].stride =
          std::max(pools[number].stride, boa_slot_stride(of.chunks * ChunkBytes(s)));
      members.push_back({number, of.chunks});
    }
    std::sort(members.begin(), members.end(),
              [](const Member &a, const Member &b) { return a.chunks < b.chunks; });
  }
  for (size_t p = 0; p < pools.size(); ++p) {
    pools[p].base = Take(pools[p].space, slots[p] * pools[p].stride);
    for (int32_t slot = slots[p]; slot-- > 0;)
      pools[p].free.push_back(slot);
  }
}

int64_t Slots::PeakBytes(int32_t space) const {
  int64_t bytes = spaces[space].fixed;
  for (const Pool &pool : pools)
    if (pool.base.space == space)
      bytes += pool.most_used * pool.stride;
  return bytes;
}

bool Slots::HasChunks(int32_t storage, int64_t entry, int32_t first, int32_t count) const {
  if (storage < 0 || storage >= int32_t(program.storages.size()))
    return false;
  const Storage &of = program.storages[storage];
  return entry >= 0 && entry < of.entry_count() && first >= 0 && count > 0 &&
         first + count <= of.chunks;
}

//===----------------------------------------------------------------------===//
// Homes
//===----------------------------------------------------------------------===//

const Slots::Range *Slots::RangeOf(int32_t storage, int64_t entry, int32_t chunk) const {
  const Layout &layout = LayoutOf(storage, entry);
  const int32_t range = layout.range_of[chunk];
  return range < 0 ? nullptr : &layout.ranges[range];
}

int32_t Slots::EndOfRange(int32_t storage, int64_t entry, int32_t chunk, int32_t end) const {
  const std::vector<int32_t> &range_of = LayoutOf(storage, entry).range_of;
  int32_t next = chunk + 1;
  while (next < end && range_of[next] == range_of[chunk])
    ++next;
  return next;
}

uint32_t Slots::HomeBuffer(int32_t storage, int64_t entry, int32_t chunk) const {
  const int32_t range = LayoutOf(storage, entry).range_of[chunk];
  return range < 0 ? 0 : places[storage].entries[entry].first_home + range;
}

//===----------------------------------------------------------------------===//
// Buffers and their slots
//===----------------------------------------------------------------------===//

Location Slots::At(uint32_t id, int32_t chunk) const {
  const Buffer &buffer = buffers[id];
  return {buffer.base.space,
          buffer.base.offset + (chunk - buffer.first) * ChunkBytes(buffer.storage)};
}

int32_t Slots::PoolFor(int32_t storage, int32_t count, int32_t space) const {
  for (bool any : {false, true})
    for (const Member &member : places[storage].pools)
      if (member.chunks >= count &&
          (any ? !IsSeparate(program.machine) : pools[member.pool].space == space))
        return member.pool;
  return -1;
}

uint32_t Slots::NewBuffer(int32_t storage, int64_t entry, int32_t first, int32_t count,
                          int32_t space) {
  uint32_t id = uint32_t(buffers.size());
  if (unused.empty()) {
    buffers.emplace_back();
  } else {
    id = unused.back();
    unused.pop_back();
  }
  Buffer &buffer = buffers[id];
  buffer.storage = storage;
  buffer.entry = entry;
  buffer.first = first;
  buffer.count = count;
  buffer.space = space;
  buffer.base = {};
  return id;
}

uint32_t Slots::Open(int32_t storage, int64_t entry, int32_t first, int32_t count, int32_t space,
                     int32_t pool) {
  const uint32_t id = NewBuffer(storage, entry, first, count, space);
  buffers[id].pool = pool;
  return id;
}

bool Slots::Request(uint32_t id, uint32_t opener) {
  Pool &pool = pools[buffers[id].pool];
  // A slot that comes free goes to the first buffer that waits. So if one is free, none waits.
  if (!pool.free.empty()) {
    Grant(pool, id);
    return true;
  }
  buffers[id].opener = opener;
  pool.waiting.push_back(id);
  return false;
}

void Slots::Watch(Watcher new_watcher) {
  watcher = std::move(new_watcher);
  for (std::vector<int64_t> &bytes : in_use)
    bytes.assign(program.storages.size(), 0);
}

void Slots::Tell(const Pool &pool, uint32_t id, int64_t sign) {
  if (!watcher)
    return;
  const int32_t storage = buffers[id].storage, space = pool.base.space;
  watcher(storage, space, in_use[space][storage] += sign * pool.stride);
}

void Slots::Grant(Pool &pool, uint32_t id) {
  Buffer &buffer = buffers[id];
  buffer.slot = pool.free.back();
  pool.free.pop_back();
  pool.most_used = std::max(pool.most_used, ++pool.used);
  buffer.base = {pool.base.space, pool.base.offset + buffer.slot * pool.stride};
  Tell(pool, id, 1);
}

void Slots::GiveBack(uint32_t id) {
  Pool &pool = pools[buffers[id].pool];
  pool.free.push_back(buffers[id].slot);
  --pool.used;
  Tell(pool, id, -1);
  unused.push_back(id);
}

uint32_t Slots::GrantNext(int32_t number) {
  Pool &pool = pools[number];
  if (pool.free.empty() || pool.waiting.empty())
    return 0;
  const uint32_t next = pool.waiting.front();
  pool.waiting.pop_front();
  Grant(pool, next);
  return std::exchange(buffers[next].opener, 0);
}

} // namespace boa
