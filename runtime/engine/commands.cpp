//===- commands.cpp - The table of commands -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/commands.h"

namespace boa {

using Kind = Work::Kind;

bool SameQueue(Kind a, Kind b) {
  auto optimizer = [](Kind kind) {
    return kind == Kind::update || kind == Kind::norm || kind == Kind::norm_done;
  };
  return (a == Kind::kernel && b == Kind::kernel) || (optimizer(a) && optimizer(b));
}

uint32_t CommandTable::Add(Kind kind, int64_t run) {
  uint32_t id = uint32_t(commands.size());
  if (unused.empty()) {
    commands.emplace_back();
  } else {
    id = unused.back();
    unused.pop_back();
  }
  Command &command = commands[id];
  command.work.kind = kind;
  command.work.id = id;
  command.work.run = run;
  command.work.storage = command.work.first = command.work.count = command.work.index = 0;
  command.work.entry = command.work.step = command.work.bytes = command.work.priority = 0;
  command.work.outside = nullptr;
  command.sequence = ++sequence;
  command.unmet = 1;
  command.touched = 0;
  command.reason = {};
  command.first_use = 0;
  command.given = false;
  command.fills_device = false;
  return id;
}

void CommandTable::DependOn(uint32_t id, CommandRef on) {
  if (IsOver(on) || on.id == id || SameQueue(commands[id].work.kind, commands[on.id].work.kind))
    return;
  Command &before = commands[on.id], &command = commands[id];
  // Only kernels: a copy that waited on the device would hold up all copies behind it.
  if (command.work.kind == Kind::kernel && before.fills_device) {
    if (!command.after.empty() && command.after.back().id == on.id)
      return;
    command.after.push_back(on);
    before.followers.push_back({id, command.generation});
    command.unmet += !before.given;
    return;
  }
  // One edge is enough for all chunks of a command.
  if (!before.dependents.empty() && before.dependents.back() == id)
    return;
  before.dependents.push_back(id);
  ++command.unmet;
}

/// Keeps the memory of a short list for its next use, and frees that of a long one.
template <typename T> static void Empty(std::vector<T> &list) {
  list.clear();
  if (list.capacity() > 16)
    list.shrink_to_fit();
}

void CommandTable::Recycle(uint32_t id) {
  Command &command = commands[id];
  Empty(command.followers);
  Empty(command.after);
  Empty(command.work.after);
  Empty(command.dependents);
  Empty(command.uses);
  Empty(command.work.buffers);
  Empty(command.work.extents);
  unused.push_back(id);
}

} // namespace boa
