//===- graph_memory.cpp - Homes, buffers and slots ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which bytes of which space a storage has, and who has which slot when.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/graph.h"

#include <algorithm>
#include <utility>

namespace boa {

Location Graph::Take(int32_t space, int64_t bytes) {
  if (!Separate())
    space = BOA_DEVICE;
  return {space, std::exchange(spaces[space].bytes, spaces[space].bytes + bytes)};
}

/// Homes and the workspace first, then slots.
void Graph::LayOut() {
  int64_t most = 0;
  for (const Kernel &kernel : program.kernels)
    most = std::max(most, kernel.workspace);
  workspace = Take(BOA_DEVICE, boa_slot_stride(most));
  places.resize(program.storages.size());
  for (size_t s = 0; s < program.storages.size(); ++s) {
    const Storage &storage = program.storages[s];
    Place &place = places[s];
    int32_t first = 0;
    for (const Home &home : storage.homes) {
      const bool memory = home.tier != Home::ssd;
      const int32_t space = home.tier == Home::host ? BOA_HOST : BOA_DEVICE;
      if (memory && first > 0 && place.range_of.back() >= 0 &&
          (!Separate() || place.ranges.back().space == space))
        place.ranges.back().count += home.chunks;
      else if (memory)
        place.ranges.push_back({first, home.chunks, space});
      place.range_of.resize(first + home.chunks, memory ? int32_t(place.ranges.size()) - 1 : -1);
      first += home.chunks;
    }
    if (storage.LivesOn(Home::ssd))
      place.hazards.resize(storage.entry_count() * storage.chunks);
    for (int64_t entry = 0; entry < storage.entry_count(); ++entry)
      for (const Range &range : place.ranges) {
        const uint32_t home = NewBuffer(s, entry, range.first, range.count, range.space);
        buffers[home].home = true;
        buffers[home].base = Take(range.space, boa_slot_stride(range.count * ChunkBytes(s)));
        place.homes.push_back(home);
      }
  }
  for (Space &space : spaces)
    space.fixed = space.bytes;
  for (size_t s = 0; s < program.storages.size(); ++s) {
    for (const SlotPool &slots : program.storages[s].pools) {
      places[s].pools.push_back(int32_t(pools.size()));
      Pool &pool = pools.emplace_back();
      pool.space = slots.space;
      pool.chunks = slots.chunks;
      pool.stride = boa_slot_stride(slots.chunks * ChunkBytes(s));
      pool.base = Take(slots.space, slots.slots * pool.stride);
      for (int32_t slot = slots.slots; slot-- > 0;)
        pool.free.push_back(slot);
    }
    std::stable_sort(places[s].pools.begin(), places[s].pools.end(),
                     [&](int32_t a, int32_t b) { return pools[a].chunks < pools[b].chunks; });
  }
}

int64_t Graph::PeakBytes(int32_t space) const {
  int64_t bytes = spaces[space].fixed;
  for (const Pool &pool : pools)
    if (pool.base.space == space)
      bytes += pool.most_used * pool.stride;
  return bytes;
}

//===----------------------------------------------------------------------===//
// Homes
//===----------------------------------------------------------------------===//

const Graph::Range *Graph::RangeOf(int32_t storage, int32_t chunk) const {
  const Place &place = places[storage];
  const int32_t range = place.range_of[chunk];
  return range < 0 ? nullptr : &place.ranges[range];
}

/// 0: it lives on SSD.
uint32_t Graph::HomeBuffer(int32_t storage, int64_t entry, int32_t chunk) const {
  const Place &place = places[storage];
  const int32_t range = place.range_of[chunk];
  return range < 0 ? 0 : place.homes[entry * place.ranges.size() + range];
}

Location Graph::HomeOf(int32_t storage, int64_t entry, int32_t chunk) const {
  const uint32_t home = HomeBuffer(storage, entry, chunk);
  return home ? At(buffers[home], chunk) : Location();
}

Location Graph::At(const Buffer &buffer, int32_t chunk) const {
  return {buffer.base.space,
          buffer.base.offset + (chunk - buffer.first) * ChunkBytes(buffer.storage)};
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

uint32_t Graph::NewBuffer(int32_t storage, int64_t entry, int32_t first, int32_t count,
                          int32_t space) {
  uint32_t id = uint32_t(buffers.size());
  if (free_buffers.empty()) {
    buffers.emplace_back();
  } else {
    id = free_buffers.back();
    free_buffers.pop_back();
  }
  Buffer &buffer = buffers[id];
  buffer.storage = storage;
  buffer.entry = entry;
  buffer.first = first;
  buffer.count = count;
  buffer.space = space;
  buffer.base = {};
  buffer.hazards.resize(count);
  for (Hazard &hazard : buffer.hazards) {
    hazard.writer = {};
    hazard.readers.clear();
  }
  return id;
}

/// The smallest that can hold it: of the space, or, where memory is one, of the other.
int32_t Graph::PoolFor(int32_t storage, int32_t count, int32_t space) const {
  for (bool any : {false, true})
    for (int32_t pool : places[storage].pools)
      if (pools[pool].chunks >= count && (any ? !Separate() : pools[pool].space == space))
        return pool;
  return -1;
}

void Graph::RequestSlot(uint32_t id, uint32_t opener) {
  Buffer &buffer = buffers[id];
  buffer.opener = {opener, commands[opener].generation};
  ++commands[opener].unmet;
  Pool &pool = pools[buffer.pool];
  // A release hands its slot to the first that waits: where one is free, nobody does.
  if (!pool.free.empty())
    Grant(pool, id, Cause::none);
  else
    pool.waiting.push_back(id);
}

void Graph::Grant(Pool &pool, uint32_t id, Cause cause) {
  Buffer &buffer = buffers[id];
  buffer.slot = pool.free.back();
  pool.free.pop_back();
  pool.most_used = std::max(pool.most_used, ++pool.used);
  buffer.base = {pool.base.space, pool.base.offset + buffer.slot * pool.stride};
  Satisfy(std::exchange(buffer.opener, {}).id, cause);
}

/// Nothing uses the buffer any more: its slot goes to who waits longest.
void Graph::GiveBack(uint32_t id, Cause cause) {
  Pool &pool = pools[buffers[id].pool];
  pool.free.push_back(buffers[id].slot);
  std::vector<Hazard>().swap(buffers[id].hazards);
  --pool.used;
  free_buffers.push_back(id);
  while (!pool.free.empty() && !pool.waiting.empty()) {
    const uint32_t next = pool.waiting.front();
    pool.waiting.pop_front();
    Grant(pool, next, cause);
  }
}

//===----------------------------------------------------------------------===//
// Handles
//===----------------------------------------------------------------------===//

boa_buffer Graph::NewHandle(uint32_t buffer, int32_t first, int32_t count) {
  uint32_t id = uint32_t(views.size());
  if (free_views.empty()) {
    views.emplace_back();
  } else {
    id = free_views.back();
    free_views.pop_back();
  }
  View &view = views[id];
  view.buffer = buffer;
  view.first = first;
  view.count = count;
  return int64_t{view.generation} << 32 | id;
}

void Graph::DropHandle(boa_buffer handle) {
  const uint32_t id = uint32_t(handle);
  views[id].generation = (views[id].generation + 1) & 0x7fffffff;
  free_views.push_back(id);
}

/// What the handle stands for; null after an error, which an old handle is.
Graph::View *Graph::Lookup(boa_buffer handle) {
  const uint32_t id = uint32_t(handle);
  if (error.ok() && id > 0 && id < views.size() && views[id].generation == uint32_t(handle >> 32))
    return &views[id];
  Fail(absl::InternalError("the program used a buffer after its release"));
  return nullptr;
}

void Graph::Release(boa_buffer handle, bool retain) {
  const View *view = error.ok() && handle ? Lookup(handle) : nullptr;
  if (!view)
    return;
  const uint32_t id = view->buffer;
  const Buffer &buffer = buffers[id];
  if (buffer.home)
    return DropHandle(handle);
  if (retain) {
    DropRetained(buffer.storage, buffer.entry, buffer.first, buffer.count, buffer.space);
    retained[{buffer.storage, buffer.entry, buffer.first, buffer.count,
              Separate() ? buffer.space : 0}] = handle;
    return;
  }
  DropHandle(handle);
  GiveUp(id);
}

/// Once all that was issued on it is over, the slot is free.
void Graph::GiveUp(uint32_t id) {
  const uint32_t command = New(Kind::release);
  commands[command].uses.push_back({id, buffers[id].first});
  Writes(command, id, buffers[id].first, buffers[id].count);
  Issue(command);
}

void Graph::DropRetained() {
  for (auto &[key, handle] : std::exchange(retained, {}))
    Release(handle, false);
}

/// Forgets retained copies that share a chunk with these: they are stale. Of separate
/// memories in that space alone, if one is given.
void Graph::DropRetained(int32_t storage, int64_t entry, int32_t first, int32_t count,
                         int32_t space) {
  std::vector<boa_buffer> stale;
  auto it = retained.lower_bound({storage, entry, 0, 0, 0});
  while (it != retained.end() && std::get<0>(it->first) == storage &&
         std::get<1>(it->first) == entry) {
    const int32_t other_first = std::get<2>(it->first), other_count = std::get<3>(it->first);
    const bool there = space < 0 || !Separate() || std::get<4>(it->first) == space;
    if (there && other_first < first + count && first < other_first + other_count) {
      stale.push_back(it->second);
      it = retained.erase(it);
    } else {
      ++it;
    }
  }
  for (boa_buffer handle : stale)
    Release(handle, false);
}

} // namespace boa
