//===- dispatcher.cpp - Commands from issue to completion -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/dispatcher.h"

#include <algorithm>
#include <utility>

namespace boa {

using Kind = Work::Kind;

Dispatcher::Dispatcher(const Program &program, Slots &slots, bool device_orders)
    : program(program), slots(slots), device_orders(device_orders && IsSeparate(program.machine)),
      written(slots.home_count() + 1), hazards(program, commands), queues(commands),
      counts(program) {
  for (uint32_t home = 1; home <= slots.home_count(); ++home)
    hazards.Open(home, slots.buffer(home).count);
}

//===----------------------------------------------------------------------===//
// Before a command is issued
//===----------------------------------------------------------------------===//

Command &Dispatcher::New(Kind kind) {
  counts.Added();
  return commands[commands.Add(kind, counts.run())];
}

Command &Dispatcher::New(Kind kind, int32_t storage, int64_t entry, int32_t first, int32_t count) {
  Command &command = New(kind);
  command.work.storage = storage;
  command.work.entry = entry;
  command.work.first = first;
  command.work.count = count;
  command.work.bytes = count * slots.ChunkBytes(storage);
  return command;
}

void Dispatcher::Reads(Command &command, uint32_t buffer, int32_t first, int32_t count) {
  hazards.Reads(command.work.id, buffer, first - slots.buffer(buffer).first, count);
}

void Dispatcher::Writes(Command &command, uint32_t buffer, int32_t first, int32_t count) {
  if (buffer < written.size())
    written[buffer] = true;
  hazards.Writes(command.work.id, buffer, first - slots.buffer(buffer).first, count);
}

void Dispatcher::ReadsDisk(Command &command, int32_t chunk) {
  hazards.ReadsDisk(command.work.id, command.work.storage, command.work.entry, chunk);
}

void Dispatcher::WritesDisk(Command &command, int32_t chunk) {
  hazards.WritesDisk(command.work.id, command.work.storage, command.work.entry, chunk);
}

void Dispatcher::RequestSlot(Command &opener, uint32_t buffer) {
  if (!slots.Request(buffer, opener.work.id))
    ++opener.unmet;
}

void Dispatcher::Issue(Command &command) {
  command.fills_device = device_orders && command.work.IsFill() &&
                         std::any_of(command.uses.begin(), command.uses.end(), [&](BufferUse use) {
                           return slots.buffer(use.buffer).space == BOA_DEVICE;
                         });
  counts.Issued(command);
  queues.Issued(command.work.id);
  Satisfy(command.work.id, {});
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

uint32_t Dispatcher::OpenBuffer(int32_t storage, int64_t entry, int32_t first, int32_t count,
                                int32_t space, int32_t pool) {
  const uint32_t buffer = slots.Open(storage, entry, first, count, space, pool);
  hazards.Open(buffer, count);
  return buffer;
}

void Dispatcher::ReleaseBuffer(uint32_t buffer) {
  const Slots::Buffer &released = slots.buffer(buffer);
  Command &command = New(Kind::release);
  command.uses.push_back({buffer, released.first});
  Writes(command, buffer, released.first, released.count);
  Issue(command);
}

/// No command uses the buffer any more. Its slot goes to the buffer that waits longest.
void Dispatcher::GiveBack(uint32_t buffer, const Reason &reason) {
  const int32_t pool = slots.buffer(buffer).pool;
  hazards.Close(buffer);
  slots.GiveBack(buffer);
  while (const uint32_t opener = slots.GrantNext(pool))
    Satisfy(opener, reason);
}

//===----------------------------------------------------------------------===//
// From ready to over
//===----------------------------------------------------------------------===//

void Dispatcher::Satisfy(uint32_t id, const Reason &reason) {
  Command &command = commands[id];
  if (reason.cause != Cause::none)
    command.reason = reason;
  if (--command.unmet == 0)
    Ready(id);
}

void Dispatcher::Ready(uint32_t id) {
  Command &command = commands[id];
  command.ready_ns = counts.now_ns();
  if (command.work.kind == Kind::create) {
    Finish(id, command.reason);
  } else if (command.work.kind == Kind::release) {
    GiveBack(command.uses[0].buffer, command.reason);
    Finish(id, command.reason);
  } else {
    queues.Ready(id);
  }
}

/// Ends the command. `reason`: why its dependents waited; a copy of it, since they may be this
/// command's.
void Dispatcher::Finish(uint32_t id, Reason reason) {
  Command &command = commands[id];
  commands.End(id);
  counts.Finished(command);
  // Another command may take this number only at the end: Satisfy may add one.
  std::vector<uint32_t> dependents;
  dependents.swap(command.dependents);
  for (uint32_t dependent : dependents)
    Satisfy(dependent, reason);
  command.dependents.swap(dependents);
  // Given out or not, a follower could begin only now.
  for (CommandRef follower : command.followers)
    if (!commands.IsOver(follower)) {
      commands[follower.id].ready_ns = counts.now_ns();
      if (reason.cause != Cause::none)
        commands[follower.id].reason = reason;
    }
  commands.Recycle(id);
}

/// The smallest goes first. Reads: in the order of their users. Writes: first those that the step
/// reads again (activations), then those that the next step begins with (weights), then the rest.
int64_t Dispatcher::PriorityOf(const Command &command) const {
  if (command.work.kind == Kind::read)
    return command.first_use ? command.first_use : command.sequence;
  const Storage &storage = program.storages[command.work.storage];
  return !storage.persistent ? 0 : storage.role == "weights" ? 1 : 2;
}

Work *Dispatcher::GiveOut(uint32_t id) {
  Command &command = commands[id];
  Work &work = command.work;
  work.buffers.clear();
  for (const BufferUse &use : command.uses)
    work.buffers.push_back(use.buffer ? slots.At(use.buffer, use.first) : Location());
  if (work.IsTransfer())
    work.priority = PriorityOf(command);
  work.sequence = command.sequence;
  for (CommandRef before : command.after)
    if (!commands.IsOver(before))
      work.after.push_back(commands[before.id].sequence);
  command.given = true;
  counts.GivenOut();
  for (CommandRef follower : command.followers)
    Satisfy(follower.id, {});
  return &work;
}

void Dispatcher::TakeReady(std::vector<Work *> &out, bool driver_waits) {
  if (!error.ok())
    return;
  auto give = [&](uint32_t id) { out.push_back(GiveOut(id)); };
  auto hold = [&](uint32_t id) {
    const Command &command = commands[id];
    return counts.is_issuing() && !driver_waits && command.work.kind == Kind::read &&
           command.first_use == 0;
  };
  queues.TakeOrdered(give);
  queues.TakeTransfers(hold, give);
}

void Dispatcher::Complete(const Work &work, int64_t begin_ns, int64_t end_ns) {
  const Command &command = commands[work.id];
  counts.Completed(work, command, begin_ns, end_ns);
  Reason reason = command.reason; // zeros and copies pass on the reason of their own wait
  if (work.kind == Kind::kernel)
    reason = {Cause::compute};
  else if (work.kind == Kind::read)
    reason = {Cause::read};
  else if (work.kind == Kind::write)
    reason = {Cause::write};
  else if (SameQueue(work.kind, Kind::update))
    reason = {Cause::optimizer};
  else if (work.kind == Kind::copy && work.buffers[0].space != work.buffers[1].space)
    reason = {Cause::copy, reason.cause, command.ready_ns};
  Finish(work.id, reason);
}

void Dispatcher::Fail(absl::Status status) {
  if (!error.ok())
    return;
  error = std::move(status);
  queues.Clear();
}

} // namespace boa
