//===- engine/graph.cpp - Commands, hazards, slots --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which command waits for which. Everything here runs with the mutex held.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/impl.h"

#include "absl/strings/str_cat.h"

#include <utility>

namespace boa {

CommandRef Engine::Impl::New(Command::Kind kind) {
  auto command = std::make_shared<Command>();
  command->kind = kind;
  command->run = run;
  command->sequence = ++sequence;
  incomplete.insert(command);
  return command;
}

/// Null for commands that a run need not wait for: transfers, and slots.
RunProgress *Engine::Impl::Progress(const CommandRef &command) {
  switch (command->kind) {
  case Command::Kind::create:
  case Command::Kind::release:
  case Command::Kind::read:
  case Command::Kind::write:
    return nullptr;
  default:
    return &progress[command->run];
  }
}

void Engine::Impl::DependOn(const CommandRef &command, const CommandRef &on) {
  if (!on || on->done || on == command)
    return;
  on->dependents.push_back(command);
  ++command->unmet;
}

/// What a read brings is used in program order: by `command` first of all.
static void NoteUse(const CommandRef &writer, const CommandRef &command) {
  if (writer && writer->kind == Command::Kind::read && writer->first_use == 0)
    writer->first_use = command->sequence;
}

void Engine::Impl::Reads(const CommandRef &command, Buffer &buffer, int32_t first, int32_t count) {
  for (int32_t c = first - buffer.first; c < first - buffer.first + count; ++c) {
    Hazard &hazard = buffer.hazards[c];
    NoteUse(hazard.writer, command);
    DependOn(command, hazard.writer);
    hazard.AddReader(command);
  }
}

void Engine::Impl::Writes(const CommandRef &command, Buffer &buffer, int32_t first, int32_t count) {
  for (int32_t c = first - buffer.first; c < first - buffer.first + count; ++c) {
    Hazard &hazard = buffer.hazards[c];
    NoteUse(hazard.writer, command);
    DependOn(command, hazard.writer);
    for (const CommandRef &reader : hazard.readers)
      DependOn(command, reader);
    hazard.readers.clear();
    hazard.writer = command;
  }
}

/// All dependences are known: the command may run.
void Engine::Impl::Issue(const CommandRef &command) {
  bool kernel = command->kind == Command::Kind::kernel;
  if (RunProgress *progress = Progress(command)) {
    ++(kernel ? progress->kernels_left : progress->others_left);
    progress->kernels += kernel;
  }
  if (kernel)
    compute.push_back(command);
  if (command->kind == Command::Kind::update || command->kind == Command::Kind::norm ||
      command->kind == Command::Kind::norm_done)
    optimizer.push_back(command);
  Satisfy(command, Cause::none);
}

void Engine::Impl::IssueCopy(Command::Kind kind, const Port &port) {
  if (!error.ok() ||
      !Expect(HasChunks(port.storage, port.entry, 0, 1) && RangeOf(port.storage, 0) &&
                  port.bytes <= RangeOf(port.storage, 0)->count * ChunkBytes(port.storage),
              "has no such entry in memory to copy to or from"))
    return;
  BufferRef home = HomeOf(port.storage, port.entry, 0);
  CommandRef command = New(kind);
  command->buffers = {home};
  command->port = port;
  if (kind == Command::Kind::copy_in)
    Writes(command, *home, home->first, home->count);
  else
    Reads(command, *home, home->first, home->count);
  Issue(command);
}

void Engine::Impl::Satisfy(const CommandRef &command, Cause cause) {
  if (cause != Cause::none)
    command->cause = cause;
  if (--command->unmet == 0)
    Ready(command);
}

void Engine::Impl::Ready(const CommandRef &command) {
  switch (command->kind) {
  case Command::Kind::kernel:
  case Command::Kind::update:
  case Command::Kind::norm:
  case Command::Kind::norm_done:
    changed.notify_all();
    break;
  case Command::Kind::zero:
  case Command::Kind::copy:
  case Command::Kind::copy_in:
  case Command::Kind::copy_out:
    fills.push_back(command);
    changed.notify_all();
    break;
  case Command::Kind::read:
  case Command::Kind::write:
    to_submit.push_back(command);
    break;
  case Command::Kind::create:
    Complete(command);
    break;
  case Command::Kind::release: {
    Buffer &buffer = *command->buffers[0];
    SlotList &pool = *buffer.slots;
    pool.free.push_back(buffer.slot);
    --pool.used;
    while (!pool.free.empty() && !pool.waiting.empty()) {
      BufferRef next = pool.waiting.front();
      pool.waiting.pop_front();
      Grant(pool, next, command->cause);
    }
    Complete(command);
    break;
  }
  }
}

void Engine::Impl::Complete(const CommandRef &command) {
  Cause cause = command->cause;
  switch (command->kind) {
  case Command::Kind::kernel:
    cause = Cause::compute;
    break;
  case Command::Kind::read:
    cause = Cause::read;
    break;
  case Command::Kind::write:
    cause = Cause::write;
    break;
  case Command::Kind::update:
  case Command::Kind::norm:
  case Command::Kind::norm_done:
    cause = Cause::optimizer;
    break;
  default: // passes on what it waited for itself
    break;
  }
  command->done = true;
  incomplete.erase(command);
  if (RunProgress *progress = Progress(command))
    --(command->kind == Command::Kind::kernel ? progress->kernels_left : progress->others_left);
  std::vector<CommandRef> dependents = std::move(command->dependents);
  command->buffers.clear();
  for (const CommandRef &dependent : dependents)
    Satisfy(dependent, cause);
}

void Engine::Impl::Grant(SlotList &pool, const BufferRef &buffer, Cause cause) {
  buffer->slot = pool.free.back();
  pool.free.pop_back();
  pool.most_used = std::max(pool.most_used, ++pool.used);
  buffer->base = pool.base + buffer->slot * pool.stride;
  Satisfy(std::exchange(buffer->opener, nullptr), cause);
}

void Engine::Impl::RequestSlot(const BufferRef &buffer, const CommandRef &opener) {
  buffer->opener = opener;
  ++opener->unmet;
  SlotList &pool = *buffer->slots;
  if (pool.waiting.empty() && !pool.free.empty())
    Grant(pool, buffer, Cause::none);
  else
    pool.waiting.push_back(buffer);
}

void Engine::Impl::Fail(absl::Status status) {
  if (error.ok())
    error = std::move(status);
  changed.notify_all();
}

/// What compiled code must keep to; if it does not, that is a compiler's error
/// and nothing more is run.
bool Engine::Impl::Expect(bool holds, const char *what) {
  if (!holds)
    Fail(absl::InternalError(absl::StrCat("the program ", what)));
  return holds;
}

bool Engine::Impl::HasChunks(int32_t storage, int64_t entry, int32_t first, int32_t count) const {
  if (storage < 0 || storage >= int32_t(program.storages.size()))
    return false;
  const Storage &home = program.storages[storage];
  return entry >= 0 && entry < home.entry_count() && first >= 0 && count > 0 &&
         first + count <= home.chunks;
}

const MemoryRange *Engine::Impl::RangeOf(int32_t storage, int32_t chunk) const {
  const Place &place = places[storage];
  int32_t range = place.range_of[chunk];
  return range < 0 ? nullptr : &place.ranges[range];
}

BufferRef Engine::Impl::HomeOf(int32_t storage, int64_t entry, int32_t chunk) const {
  const Place &place = places[storage];
  int32_t range = place.range_of[chunk];
  return range < 0 ? nullptr : place.homes[entry * place.ranges.size() + range];
}

const View *Engine::Impl::Lookup(boa_buffer handle) {
  auto it = views.find(handle);
  if (it != views.end())
    return &it->second;
  Fail(absl::InternalError("the program used a buffer after its release"));
  return nullptr;
}

/// Of separate memories only one is in reach.
bool Engine::Impl::Reachable(const View &view, int32_t space, const char *what) {
  return Expect(!Separate() || view.buffer->space == space, what);
}

boa_buffer Engine::Impl::NewHandle(BufferRef buffer, int32_t first, int32_t count) {
  views[next_handle] = {std::move(buffer), first, count};
  return next_handle++;
}

BufferRef Engine::Impl::NewBuffer(int32_t storage, int64_t entry, int32_t first, int32_t count,
                                  int32_t space) {
  auto buffer = std::make_shared<Buffer>();
  buffer->storage = storage;
  buffer->entry = entry;
  buffer->first = first;
  buffer->count = count;
  buffer->space = space;
  buffer->hazards.resize(count);
  return buffer;
}

/// What prefetch and create have in common: a buffer, and the commands that first
/// write it.
boa_buffer Engine::Impl::Open(int32_t storage, int64_t entry, int32_t first, int32_t count,
                              int32_t space, bool bring, bool zero) {
  if (!error.ok() || entry < 0)
    return 0;
  if (!Expect(HasChunks(storage, entry, first, count) && (space == BOA_DEVICE || space == BOA_HOST),
              "asks for chunks that there are not"))
    return 0;
  if (const MemoryRange *range = RangeOf(storage, first);
      range && first + count <= range->first + range->count &&
      (!Separate() || range->space == space)) {
    BufferRef home = HomeOf(storage, entry, first);
    if (zero) {
      CommandRef command = New(Command::Kind::zero);
      command->buffers = {home};
      command->first = first;
      command->count = count;
      Writes(command, *home, first, count);
      Issue(command);
    }
    return NewHandle(home, first, count);
  }
  if (!bring || zero) {
    DropRetained(storage, entry, first, count); // about to be overwritten
  } else if (auto it = retained.find({storage, entry, first, count, Separate() ? space : 0});
             it != retained.end()) {
    boa_buffer handle = it->second;
    retained.erase(it);
    return handle;
  }
  BufferRef buffer = NewBuffer(storage, entry, first, count, space);
  for (SlotList &slots : places[storage].slots)
    if (slots.chunks >= count && slots.space == space && !buffer->slots)
      buffer->slots = &slots;
  for (SlotList &slots : places[storage].slots)
    if (slots.chunks >= count && !Separate() && !buffer->slots)
      buffer->slots = &slots;
  if (!Expect(buffer->slots, "asks for chunks that no slot can hold"))
    return 0;
  const bool read = bring && !zero;
  // Read whole from SSD it needs nothing before the read.
  bool one = read;
  for (int32_t c = first; c < first + count; ++c)
    one = one && !RangeOf(storage, c);
  CommandRef command = New(zero  ? Command::Kind::zero
                           : one ? Command::Kind::read
                                 : Command::Kind::create);
  command->buffers = {buffer};
  command->first = first;
  command->count = count;
  Writes(command, *buffer, first, count);
  RequestSlot(buffer, command);
  if (one) {
    MoveDisk(/*home=*/false, buffer, entry, first, count, command);
  } else {
    Issue(command);
    if (read)
      Move(/*home=*/false, buffer, entry, first, count);
  }
  return NewHandle(buffer, first, count);
}

/// Between a buffer and where its chunks live, or will: each part as it lives.
void Engine::Impl::Move(bool home, const BufferRef &buffer, int64_t entry, int32_t first,
                        int32_t count) {
  const Place &place = places[buffer->storage];
  for (int32_t c = first, end = first + count; c < end;) {
    int32_t range = place.range_of[c], next = c + 1;
    while (next < end && place.range_of[next] == range)
      ++next;
    if (range < 0) {
      MoveDisk(home, buffer, entry, c, next - c, nullptr);
    } else {
      BufferRef lives = HomeOf(buffer->storage, entry, c);
      CopyChunks(home ? buffer : lives, home ? lives : buffer, c, next - c);
    }
    c = next;
  }
}

/// Orders and issues a transfer of chunks that live on SSD. `command`: the read
/// that opens the buffer, whose place in it is known.
void Engine::Impl::MoveDisk(bool home, const BufferRef &buffer, int64_t entry, int32_t first,
                            int32_t count, CommandRef command) {
  const int32_t storage = buffer->storage;
  if (!Expect(!Separate() || buffer->space == BOA_HOST,
              home ? "writes to SSD from device memory" : "reads from SSD into device memory"))
    return;
  if (!command) {
    command = New(home ? Command::Kind::write : Command::Kind::read);
    command->buffers = {buffer};
    if (home)
      Reads(command, *buffer, first, count);
    else
      Writes(command, *buffer, first, count);
  }
  command->storage = storage;
  command->entry = entry;
  command->first = first;
  command->count = count;
  for (int32_t c = first; c < first + count; ++c) {
    PlaceChunk(*command, c, /*write=*/home);
    Hazard &hazard = storage_hazards[{storage, entry, c}];
    DependOn(command, hazard.writer);
    if (!home) {
      hazard.AddReader(command);
      continue;
    }
    for (const CommandRef &reader : hazard.readers)
      DependOn(command, reader);
    hazard.readers.clear();
    hazard.writer = command;
  }
  Issue(command);
}

void Engine::Impl::CopyChunks(const BufferRef &from, const BufferRef &to, int32_t first,
                              int32_t count) {
  if (from == to)
    return;
  CommandRef command = New(Command::Kind::copy);
  command->buffers = {from, to};
  command->first = first;
  command->count = count;
  Reads(command, *from, first, count);
  Writes(command, *to, first, count);
  Issue(command);
}

void Engine::Impl::Release(boa_buffer handle, bool retain) {
  const View *view = Lookup(handle);
  if (!view)
    return;
  BufferRef buffer = view->buffer;
  if (buffer->home) {
    views.erase(handle);
    return;
  }
  if (retain) {
    DropRetained(buffer->storage, buffer->entry, buffer->first, buffer->count, buffer->space);
    retained[{buffer->storage, buffer->entry, buffer->first, buffer->count,
              Separate() ? buffer->space : 0}] = handle;
    return;
  }
  views.erase(handle);
  CommandRef command = New(Command::Kind::release);
  command->buffers = {buffer};
  Writes(command, *buffer, buffer->first, buffer->count);
  Issue(command);
}

/// Gives up all retained copies.
void Engine::Impl::DropRetained() {
  for (auto &[key, handle] : std::exchange(retained, {}))
    Release(handle, false);
}

/// Forgets retained copies that share a chunk with these: they are stale. Of separate
/// memories in that space alone, if one is given.
void Engine::Impl::DropRetained(int32_t storage, int64_t entry, int32_t first, int32_t count,
                                int32_t space) {
  std::vector<boa_buffer> stale;
  auto it = retained.lower_bound({storage, entry, 0, 0, 0});
  while (it != retained.end() && std::get<0>(it->first) == storage &&
         std::get<1>(it->first) == entry) {
    int32_t other_first = std::get<2>(it->first), other_count = std::get<3>(it->first);
    bool there = space < 0 || !Separate() || std::get<4>(it->first) == space;
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
