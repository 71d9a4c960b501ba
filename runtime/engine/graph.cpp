//===- graph.cpp - The driver's calls as commands -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves between memories and SSD are in graph_moves.cpp.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/graph.h"

#include "absl/strings/str_cat.h"

#include <utility>

namespace boa {

using Kind = Work::Kind;

Graph::Graph(const Program &program, ChunkExtents *extents, bool device_orders)
    : program(program), zero_at_first(StatesOfOptimizer(program)), extents(extents), slots(program),
      dispatcher(program, slots, device_orders), handles(IsSeparate(program.machine)) {}

Location Graph::HomeOf(int32_t storage, int64_t entry, int32_t chunk) const {
  const uint32_t home = slots.HomeBuffer(storage, entry, chunk);
  return home ? slots.At(home, chunk) : Location();
}

bool Graph::IsAbsent(int32_t storage, int64_t entry, int32_t chunk) const {
  if (!zero_at_first[storage] || !extents || extents->Current(storage, entry, chunk).file >= 0)
    return false;
  const uint32_t home = slots.HomeBuffer(storage, entry, chunk);
  return !home || !dispatcher.IsWritten(home);
}

//===----------------------------------------------------------------------===//
// The rules
//===----------------------------------------------------------------------===//

/// Compiled code keeps these rules. A violation is an error of the compiler, and no command runs
/// after it.
bool Graph::Expect(bool holds, const char *rule) {
  if (!holds)
    Fail(absl::InternalError(absl::StrCat("the program ", rule)));
  return holds;
}

/// Of separate memories, each command reaches only one.
bool Graph::Reachable(uint32_t buffer, int32_t space, const char *rule) {
  return Expect(!Separate() || slots.buffer(buffer).space == space, rule);
}

/// Null after an error. A handle that was dropped is an error.
const Graph::View *Graph::Lookup(boa_buffer handle) {
  const View *view = status().ok() ? handles.Lookup(handle) : nullptr;
  Expect(view, "used a buffer after its release");
  return view;
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// The first command on a buffer: it writes all chunks.
Command &Graph::NewOpener(Kind kind, uint32_t buffer) {
  const Slots::Buffer &of = slots.buffer(buffer);
  Command &command = dispatcher.New(kind, of.storage, of.entry, of.first, of.count);
  command.uses.push_back({buffer, of.first});
  dispatcher.Writes(command, buffer, of.first, of.count);
  return command;
}

/// Prefetch and create: a buffer, and the commands that first write it.
boa_buffer Graph::Open(int32_t storage, int64_t entry, int32_t first, int32_t count, int32_t space,
                       bool bring, bool zero) {
  if (!status().ok() || entry < 0)
    return 0;
  if (!Expect(slots.HasChunks(storage, entry, first, count) &&
                  (space == BOA_DEVICE || space == BOA_HOST),
              "asks for chunks that do not exist"))
    return 0;
  if (const Slots::Range *range = slots.RangeOf(storage, entry, first);
      range && first + count <= range->first + range->count &&
      (!Separate() || range->space == space)) {
    const uint32_t home = slots.HomeBuffer(storage, entry, first);
    if (zero) {
      Command &command = dispatcher.New(Kind::zero, storage, entry, first, count);
      command.uses.push_back({home, first});
      dispatcher.Writes(command, home, first, count);
      dispatcher.Issue(command);
    }
    return handles.New(home, first, count);
  }
  const bool read = bring && !zero;
  if (!read) // the copies that are retained become stale
    DropRetained(storage, entry, first, count);
  else if (boa_buffer handle = handles.TakeRetained(storage, entry, first, count, space))
    return handle;
  const int32_t pool = slots.PoolFor(storage, count, space);
  if (!Expect(pool >= 0, "asks for chunks that no slot can hold"))
    return 0;
  const uint32_t buffer = dispatcher.OpenBuffer(storage, entry, first, count, space, pool);
  // A read that brings all chunks, and not by way of the host, opens the buffer itself.
  bool one = read && !PassesHost(space);
  for (int32_t c = first; c < first + count; ++c)
    one = one && slots.LivesOnDisk(storage, entry, c);
  one = one && EndOfAbsence(storage, entry, first, first + count) == first + count;
  Command &opener = NewOpener(zero  ? Kind::zero
                              : one ? KindOfRead(storage, entry, first)
                                    : Kind::create,
                              buffer);
  dispatcher.RequestSlot(opener, buffer);
  if (one) {
    IssueMove(opener);
  } else {
    dispatcher.Issue(opener);
    if (read)
      Move(/*home=*/false, buffer, entry, first, count);
  }
  return handles.New(buffer, first, count);
}

void Graph::Offload(boa_buffer handle, int32_t storage, int64_t entry, int32_t first,
                    int32_t count) {
  const View *view = status().ok() && handle ? Lookup(handle) : nullptr;
  if (!view ||
      !Expect(storage == slots.buffer(view->buffer).storage &&
                  slots.HasChunks(storage, entry, first, count) && view->Holds(first, count),
              "offloads chunks that the buffer does not hold"))
    return;
  const uint32_t buffer = view->buffer;
  DropRetained(storage, entry, first, count);
  Move(/*home=*/true, buffer, entry, first, count);
}

void Graph::Copy(boa_buffer from, boa_buffer to, int32_t first, int32_t count) {
  const View *source = status().ok() && from && to ? Lookup(from) : nullptr;
  const View *target = source ? Lookup(to) : nullptr;
  if (target &&
      Expect(slots.buffer(source->buffer).storage == slots.buffer(target->buffer).storage &&
                 source->Holds(first, count) && target->Holds(first, count),
             "copies chunks that a buffer does not hold"))
    CopyChunks(source->buffer, target->buffer, first, count);
}

void Graph::Release(boa_buffer handle, bool retain) {
  const View *view = status().ok() && handle ? Lookup(handle) : nullptr;
  if (!view)
    return;
  const uint32_t id = view->buffer;
  const Slots::Buffer &buffer = slots.buffer(id);
  if (buffer.home)
    return handles.Drop(handle);
  if (retain) {
    DropRetained(buffer.storage, buffer.entry, buffer.first, buffer.count, buffer.space);
    return handles.Retain(handle, buffer.storage, buffer.entry, buffer.first, buffer.count,
                          buffer.space);
  }
  handles.Drop(handle);
  dispatcher.ReleaseBuffer(id);
}

void Graph::Release(const std::vector<boa_buffer> &released) {
  for (boa_buffer handle : released)
    Release(handle, /*retain=*/false);
}

void Graph::DropRetained() { Release(handles.TakeAll()); }

/// Gives up the retained copies that share a chunk with these: they become stale. `space`: see
/// BufferHandles::TakeOverlapping.
void Graph::DropRetained(int32_t storage, int64_t entry, int32_t first, int32_t count,
                         int32_t space) {
  Release(handles.TakeOverlapping(storage, entry, first, count, space));
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

void Graph::CopyPort(bool in, int32_t storage, int64_t entry, void *outside, int64_t bytes) {
  if (!status().ok())
    return;
  const Slots::Range *range =
      slots.HasChunks(storage, entry, 0, 1) ? slots.RangeOf(storage, entry, 0) : nullptr;
  if (Expect(range && bytes <= range->count * slots.ChunkBytes(storage),
             "has no such entry in memory to copy to or from"))
    CopyOutside(dispatcher.accounting().run(), in, storage, entry, 0, range->count, outside, bytes);
}

void Graph::Launch(int32_t kernel, int32_t count, const boa_buffer *buffers) {
  if (!status().ok() || !Expect(kernel >= 0 && kernel < int32_t(program.kernels.size()) &&
                                    count == int32_t(program.kernels[kernel].buffers.size()),
                                "launches a kernel that the descriptor does not have"))
    return;
  // Every buffer is checked before the first dependence is made.
  for (int32_t i = 0; i < count; ++i) {
    const View *view = buffers[i] ? Lookup(buffers[i]) : nullptr;
    if (view)
      Reachable(view->buffer, BOA_DEVICE, "runs a kernel on a buffer in host memory");
    if (!status().ok())
      return;
  }
  Command &command = dispatcher.New(Kind::kernel);
  command.work.index = kernel;
  for (int32_t i = 0; i < count; ++i) {
    // A null buffer reaches the kernel as null.
    const View *view = buffers[i] ? Lookup(buffers[i]) : nullptr;
    command.uses.push_back(view ? BufferUse{view->buffer, view->first} : BufferUse{});
    if (view && program.kernels[kernel].buffers[i].write)
      dispatcher.Writes(command, view->buffer, view->first, view->count);
    else if (view)
      dispatcher.Reads(command, view->buffer, view->first, view->count);
  }
  dispatcher.Issue(command);
}

void Graph::Update(int32_t group, int32_t chunk, int64_t step,
                   const std::vector<boa_buffer> &buffers) {
  if (!status().ok() || step == 0 ||
      !Expect(group >= 0 && group < int32_t(program.groups.size()) && buffers[0] && buffers[2],
              "updates without weights or a gradient") ||
      !Expect(buffers.size() == 3 + program.optimizer.states.size(),
              "updates other states than the optimizer has"))
    return;
  for (boa_buffer handle : buffers) {
    const View *view = handle ? Lookup(handle) : nullptr;
    if (view && Reachable(view->buffer, program.UpdateSpace(),
                          program.UpdatesOnDevice() ? "updates a buffer in host memory"
                                                    : "updates a buffer in device memory"))
      Expect(view->Holds(chunk, 1), "updates a chunk that a buffer does not hold");
    if (!status().ok())
      return;
  }
  Command &command = dispatcher.New(Kind::update);
  command.work.index = group;
  command.work.step = step;
  command.work.first = chunk;
  command.work.count = 1;
  command.work.entry = slots.buffer(Lookup(buffers[0])->buffer).entry;
  for (const boa_buffer &handle : buffers) {
    const View *view = handle ? Lookup(handle) : nullptr;
    command.uses.push_back(view ? BufferUse{view->buffer, chunk} : BufferUse{});
    if (view && &handle == &buffers[2])
      dispatcher.Reads(command, view->buffer, chunk, 1);
    else if (view)
      dispatcher.Writes(command, view->buffer, chunk, 1);
  }
  dispatcher.Issue(command);
}

void Graph::Norm(int32_t group, boa_buffer gradient) {
  const View *view = status().ok() ? Lookup(gradient) : nullptr;
  if (!view ||
      !Expect(group >= 0 && group < int32_t(program.groups.size()),
              "takes the norm of a group that it does not have") ||
      !Reachable(view->buffer, program.UpdateSpace(),
                 program.UpdatesOnDevice() ? "takes the norm of a buffer in host memory"
                                           : "takes the norm of a buffer in device memory"))
    return;
  Command &command = dispatcher.New(Kind::norm);
  command.work.index = group;
  command.work.storage = slots.buffer(view->buffer).storage;
  command.work.entry = slots.buffer(view->buffer).entry;
  command.work.first = view->first;
  command.work.count = view->count;
  command.work.bytes = view->count * slots.ChunkBytes(command.work.storage);
  command.uses.push_back({view->buffer, view->first});
  dispatcher.Reads(command, view->buffer, view->first, view->count);
  dispatcher.Issue(command);
}

void Graph::NormDone(int64_t step) {
  if (!status().ok())
    return;
  Command &command = dispatcher.New(Kind::norm_done);
  command.work.step = step;
  dispatcher.Issue(command);
}

} // namespace boa
