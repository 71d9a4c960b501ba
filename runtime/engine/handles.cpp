//===- handles.cpp - The program's handles, and retained copies -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/handles.h"

#include <utility>

namespace boa {

boa_buffer BufferHandles::New(uint32_t buffer, int32_t first, int32_t count) {
  uint32_t id = uint32_t(views.size());
  if (unused.empty()) {
    views.emplace_back();
  } else {
    id = unused.back();
    unused.pop_back();
  }
  View &view = views[id];
  view.buffer = buffer;
  view.first = first;
  view.count = count;
  return int64_t{view.generation} << 32 | id;
}

void BufferHandles::Drop(boa_buffer handle) {
  const uint32_t id = uint32_t(handle);
  views[id].generation = (views[id].generation + 1) & 0x7fffffff;
  unused.push_back(id);
}

const BufferHandles::View *BufferHandles::Lookup(boa_buffer handle) const {
  const uint32_t id = uint32_t(handle);
  const bool holds = id > 0 && id < views.size() && views[id].generation == uint32_t(handle >> 32);
  return holds ? &views[id] : nullptr;
}

void BufferHandles::Retain(boa_buffer handle, int32_t storage, int64_t entry, int32_t first,
                           int32_t count, int32_t space) {
  retained[{storage, entry, first, count, separate ? space : 0}] = handle;
}

boa_buffer BufferHandles::TakeRetained(int32_t storage, int64_t entry, int32_t first, int32_t count,
                                       int32_t space) {
  auto it = retained.find({storage, entry, first, count, separate ? space : 0});
  if (it == retained.end())
    return 0;
  const boa_buffer handle = it->second;
  retained.erase(it);
  return handle;
}

std::vector<boa_buffer> BufferHandles::TakeOverlapping(int32_t storage, int64_t entry,
                                                       int32_t first, int32_t count,
                                                       int32_t space) {
  std::vector<boa_buffer> taken;
  auto it = retained.lower_bound({storage, entry, 0, 0, 0});
  while (it != retained.end() && std::get<0>(it->first) == storage &&
         std::get<1>(it->first) == entry) {
    const int32_t other_first = std::get<2>(it->first), other_count = std::get<3>(it->first);
    const bool there = space < 0 || !separate || std::get<4>(it->first) == space;
    if (there && other_first < first + count && first < other_first + other_count) {
      taken.push_back(it->second);
      it = retained.erase(it);
    } else {
      ++it;
    }
  }
  return taken;
}

std::vector<boa_buffer> BufferHandles::TakeAll() {
  std::vector<boa_buffer> taken;
  for (const auto &[key, handle] : std::exchange(retained, {}))
    taken.push_back(handle);
  return taken;
}

} // namespace boa
