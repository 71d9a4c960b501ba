//===- graph_commands.cpp - What the driver asks for ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The calls of runtime/abi/abi.h as commands.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/graph.h"

#include "absl/strings/str_cat.h"

#include <utility>

namespace boa {

bool Graph::HasChunks(int32_t storage, int64_t entry, int32_t first, int32_t count) const {
  if (storage < 0 || storage >= int32_t(program.storages.size()))
    return false;
  const Storage &of = program.storages[storage];
  return entry >= 0 && entry < of.entry_count() && first >= 0 && count > 0 &&
         first + count <= of.chunks;
}

/// Of separate memories only one is in reach.
bool Graph::Reachable(uint32_t buffer, int32_t space, const char *what) {
  return Expect(!Separate() || buffers[buffer].space == space, what);
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// What prefetch and create have in common: a buffer, and the commands that first
/// write it.
boa_buffer Graph::Open(int32_t storage, int64_t entry, int32_t first, int32_t count, int32_t space,
                       bool bring, bool zero) {
  if (!error.ok() || entry < 0)
    return 0;
  if (!Expect(HasChunks(storage, entry, first, count) && (space == BOA_DEVICE || space == BOA_HOST),
              "asks for chunks that there are not"))
    return 0;
  auto opener = [&](Kind kind, uint32_t buffer) {
    const uint32_t id = New(kind);
    Command &command = commands[id];
    command.work.storage = storage;
    command.work.entry = entry;
    command.work.first = first;
    command.work.count = count;
    command.work.bytes = count * ChunkBytes(storage);
    command.uses.push_back({buffer, first});
    Writes(id, buffer, first, count);
    return id;
  };
  if (const Range *range = RangeOf(storage, first); range &&
                                                    first + count <= range->first + range->count &&
                                                    (!Separate() || range->space == space)) {
    const uint32_t home = HomeBuffer(storage, entry, first);
    if (zero)
      Issue(opener(Kind::zero, home));
    return NewHandle(home, first, count);
  }
  if (!bring || zero) {
    DropRetained(storage, entry, first, count); // about to be overwritten
  } else if (auto it = retained.find({storage, entry, first, count, Separate() ? space : 0});
             it != retained.end()) {
    const boa_buffer handle = it->second;
    retained.erase(it);
    return handle;
  }
  const int32_t pool = PoolFor(storage, count, space);
  if (!Expect(pool >= 0, "asks for chunks that no slot can hold"))
    return 0;
  const uint32_t buffer = NewBuffer(storage, entry, first, count, space);
  buffers[buffer].home = false;
  buffers[buffer].pool = pool;
  const bool read = bring && !zero;
  // Read whole from SSD, and not by way of the host, it needs nothing before the read.
  bool one = read && !PassesHost(space);
  for (int32_t c = first; c < first + count; ++c)
    one = one && places[storage].range_of[c] < 0;
  const uint32_t id = opener(zero ? Kind::zero : one ? Kind::read : Kind::create, buffer);
  RequestSlot(buffer, id);
  if (one) {
    MoveDisk(/*home=*/false, buffer, entry, first, count, id);
  } else {
    Issue(id);
    if (read)
      Move(/*home=*/false, buffer, entry, first, count);
  }
  return NewHandle(buffer, first, count);
}

void Graph::Offload(boa_buffer handle, int32_t storage, int64_t entry, int32_t first,
                    int32_t count) {
  const View *view = error.ok() && handle ? Lookup(handle) : nullptr;
  if (!view || !Expect(storage == buffers[view->buffer].storage &&
                           HasChunks(storage, entry, first, count) && view->Holds(first, count),
                       "offloads chunks that the buffer does not hold"))
    return;
  const uint32_t buffer = view->buffer;
  DropRetained(storage, entry, first, count);
  Move(/*home=*/true, buffer, entry, first, count);
}

void Graph::Copy(boa_buffer from, boa_buffer to, int32_t first, int32_t count) {
  const View *source = error.ok() && from && to ? Lookup(from) : nullptr;
  const View *target = source ? Lookup(to) : nullptr;
  if (target && Expect(buffers[source->buffer].storage == buffers[target->buffer].storage &&
                           source->Holds(first, count) && target->Holds(first, count),
                       "copies chunks that a buffer does not hold"))
    CopyChunks(source->buffer, target->buffer, first, count);
}

/// Between a buffer and where its chunks live, or will: each part as it lives.
void Graph::Move(bool home, uint32_t buffer, int64_t entry, int32_t first, int32_t count) {
  const int32_t storage = buffers[buffer].storage;
  const std::vector<int32_t> &range_of = places[storage].range_of;
  for (int32_t c = first, end = first + count; c < end;) {
    int32_t next = c + 1;
    while (next < end && range_of[next] == range_of[c])
      ++next;
    const uint32_t lives = HomeBuffer(storage, entry, c);
    if (!lives && PassesHost(buffers[buffer].space))
      MoveStaged(home, buffer, entry, c, next - c);
    else if (!lives)
      MoveDisk(home, buffer, entry, c, next - c, 0);
    else
      CopyChunks(home ? buffer : lives, home ? lives : buffer, c, next - c);
    c = next;
  }
}

/// Between SSD and a device of its own memory: each chunk through a slot of the host's.
void Graph::MoveStaged(bool home, uint32_t buffer, int64_t entry, int32_t first, int32_t count) {
  const int32_t storage = buffers[buffer].storage;
  const int32_t pool = PoolFor(storage, 1, BOA_HOST);
  if (!Expect(pool >= 0, "moves chunks between SSD and device without a slot in host memory"))
    return;
  for (int32_t c = first; c < first + count; ++c) {
    const uint32_t stage = NewBuffer(storage, entry, c, 1, BOA_HOST);
    buffers[stage].home = false;
    buffers[stage].pool = pool;
    const uint32_t id = New(home ? Kind::create : Kind::read);
    Work &work = commands[id].work;
    work.storage = storage;
    work.entry = entry;
    work.first = c;
    work.count = 1;
    work.bytes = ChunkBytes(storage);
    commands[id].uses.push_back({stage, c});
    Writes(id, stage, c, 1);
    RequestSlot(stage, id);
    if (home) {
      Issue(id);
      CopyChunks(buffer, stage, c, 1);
      MoveDisk(home, stage, entry, c, 1, 0);
    } else {
      MoveDisk(home, stage, entry, c, 1, id);
      CopyChunks(stage, buffer, c, 1);
    }
    GiveUp(stage);
  }
}

void Graph::CopyChunks(uint32_t from, uint32_t to, int32_t first, int32_t count) {
  if (from == to)
    return;
  const uint32_t id = New(Kind::copy);
  Command &command = commands[id];
  command.work.storage = buffers[to].storage;
  command.work.entry = buffers[to].entry;
  command.work.first = first;
  command.work.count = count;
  command.work.bytes = count * ChunkBytes(buffers[to].storage);
  command.uses.push_back({from, first});
  command.uses.push_back({to, first});
  Reads(id, from, first, count);
  Writes(id, to, first, count);
  Issue(id);
}

//===----------------------------------------------------------------------===//
// SSD
//===----------------------------------------------------------------------===//

absl::Status NeverWritten(const Storage &storage, int64_t entry, int32_t chunk) {
  return absl::InternalError(absl::StrCat("the program reads ", storage.name, " entry ", entry,
                                          " chunk ", chunk, ", which was never written"));
}

/// Where the chunks of a transfer stand, or will.
void Graph::PlaceChunks(Work &work, bool write) {
  for (int32_t c = work.first; c < work.first + work.count; ++c) {
    const Extent extent = write ? places_on_ssd->Next(work.storage, work.entry, c)
                                : places_on_ssd->Current(work.storage, work.entry, c);
    work.extents.push_back(extent);
    if (extent.file >= 0)
      continue;
    absl::Status why = places_on_ssd->Why();
    if (why.ok())
      why = NeverWritten(program.storages[work.storage], work.entry, c);
    Fail(std::move(why));
  }
}

/// A transfer after those of the same chunk on SSD that it has to follow.
void Graph::Order(uint32_t id, bool write, int32_t storage, int64_t entry, int32_t chunk) {
  Hazard &hazard = places[storage].hazards[entry * program.storages[storage].chunks + chunk];
  if (write)
    Write(id, hazard);
  else
    Read(id, hazard);
}

/// Orders and issues a transfer of chunks that live on SSD. `id`: the read that opens
/// the buffer, whose place in it is known; or 0.
void Graph::MoveDisk(bool home, uint32_t buffer, int64_t entry, int32_t first, int32_t count,
                     uint32_t id) {
  const int32_t storage = buffers[buffer].storage;
  if (!Expect(!PassesHost(buffers[buffer].space),
              home ? "writes to SSD from device memory" : "reads from SSD into device memory"))
    return;
  if (!id) {
    id = New(home ? Kind::write : Kind::read);
    Work &work = commands[id].work;
    work.storage = storage;
    work.entry = entry;
    work.first = first;
    work.count = count;
    work.bytes = count * ChunkBytes(storage);
    commands[id].uses.push_back({buffer, first});
    if (home)
      Reads(id, buffer, first, count);
    else
      Writes(id, buffer, first, count);
  }
  PlaceChunks(commands[id].work, /*write=*/home);
  for (int32_t c = first; c < first + count; ++c)
    Order(id, home, storage, entry, c);
  Issue(id);
}

void Graph::MoveDisk(bool write, int32_t storage, int64_t entry, int32_t first, int32_t count,
                     void *outside) {
  const uint32_t id = New(write ? Kind::write : Kind::read);
  Command &command = commands[id];
  Work &work = command.work;
  work.run = kNoRun;
  work.storage = storage;
  work.entry = entry;
  work.first = first;
  work.count = count;
  work.bytes = count * ChunkBytes(storage);
  work.outside = outside;
  if (!outside)
    command.uses.push_back({HomeBuffer(storage, entry, first), first});
  PlaceChunks(work, write);
  for (int32_t c = first; c < first + count && !HomeBuffer(storage, entry, c); ++c)
    Order(id, write, storage, entry, c);
  Issue(id);
}

void Graph::Exchange(bool write, int32_t storage, int64_t entry, int32_t first, int32_t count,
                     void *outside) {
  if (!error.ok() || !Expect(HasChunks(storage, entry, first, count), "has no such chunks"))
    return;
  const std::vector<int32_t> &range_of = places[storage].range_of;
  for (int32_t c = first, next; c < first + count; c = next) {
    for (next = c + 1; next < first + count && range_of[next] == range_of[c];)
      ++next;
    void *part = static_cast<char *>(outside) + (c - first) * ChunkBytes(storage);
    if (HomeBuffer(storage, entry, c))
      CopyOutside(kNoRun, write, storage, entry, c, next - c, part,
                  (next - c) * ChunkBytes(storage));
    else
      MoveDisk(write, storage, entry, c, next - c, part);
  }
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

void Graph::CopyPort(bool in, int32_t storage, int64_t entry, void *outside, int64_t bytes) {
  if (!error.ok() || !Expect(HasChunks(storage, entry, 0, 1) && RangeOf(storage, 0) &&
                                 bytes <= RangeOf(storage, 0)->count * ChunkBytes(storage),
                             "has no such entry in memory to copy to or from"))
    return;
  CopyOutside(run, in, storage, entry, 0, RangeOf(storage, 0)->count, outside, bytes);
}

/// Between memory of the caller and chunks that live side by side in memory.
void Graph::CopyOutside(int64_t of_run, bool in, int32_t storage, int64_t entry, int32_t first,
                        int32_t count, void *outside, int64_t bytes) {
  const uint32_t home = HomeBuffer(storage, entry, first);
  const uint32_t id = New(in ? Kind::copy_in : Kind::copy_out);
  Command &command = commands[id];
  command.work.run = of_run;
  command.work.storage = storage;
  command.work.entry = entry;
  command.work.bytes = bytes;
  command.work.outside = outside;
  command.uses.push_back({home, first});
  if (in)
    Writes(id, home, first, count);
  else
    Reads(id, home, first, count);
  Issue(id);
}

void Graph::Launch(int32_t kernel, int32_t count, const boa_buffer *handles) {
  if (!error.ok() || !Expect(kernel >= 0 && kernel < int32_t(program.kernels.size()) &&
                                 count == int32_t(program.kernels[kernel].buffers.size()),
                             "launches a kernel that the descriptor does not have"))
    return;
  // All that could be refused is looked at before anything is ordered.
  for (int32_t i = 0; i < count; ++i) {
    const View *view = handles[i] ? Lookup(handles[i]) : nullptr;
    if (view)
      Reachable(view->buffer, BOA_DEVICE, "runs a kernel on a buffer in host memory");
    if (!error.ok())
      return;
  }
  const uint32_t id = New(Kind::kernel);
  commands[id].work.index = kernel;
  for (int32_t i = 0; i < count; ++i) {
    // A null buffer reaches the kernel as null.
    const View *view = handles[i] ? Lookup(handles[i]) : nullptr;
    commands[id].uses.push_back(view ? Use{view->buffer, view->first} : Use{});
    if (view && program.kernels[kernel].buffers[i].write)
      Writes(id, view->buffer, view->first, view->count);
    else if (view)
      Reads(id, view->buffer, view->first, view->count);
  }
  Issue(id);
}

void Graph::Update(int32_t group, int32_t chunk, int64_t step, const boa_buffer (&handles)[5]) {
  if (!error.ok() || step == 0 ||
      !Expect(group >= 0 && group < int32_t(program.groups.size()) && handles[0] && handles[4],
              "updates without weights or a gradient"))
    return;
  for (boa_buffer handle : handles) {
    const View *view = handle ? Lookup(handle) : nullptr;
    if (view && Reachable(view->buffer, program.UpdateSpace(),
                          program.UpdatesOnDevice() ? "updates a buffer in host memory"
                                                    : "updates a buffer in device memory"))
      Expect(view->Holds(chunk, 1), "updates a chunk that a buffer does not hold");
    if (!error.ok())
      return;
  }
  const uint32_t id = New(Kind::update);
  Command &command = commands[id];
  command.work.index = group;
  command.work.step = step;
  command.work.first = chunk;
  command.work.count = 1;
  command.work.entry = buffers[Lookup(handles[0])->buffer].entry;
  for (const boa_buffer &handle : handles) {
    const View *view = handle ? Lookup(handle) : nullptr;
    command.uses.push_back(view ? Use{view->buffer, chunk} : Use{});
    if (view && &handle == &handles[4])
      Reads(id, view->buffer, chunk, 1);
    else if (view)
      Writes(id, view->buffer, chunk, 1);
  }
  Issue(id);
}

void Graph::Norm(int32_t group, boa_buffer gradient) {
  const View *view = error.ok() ? Lookup(gradient) : nullptr;
  if (!view ||
      !Expect(group >= 0 && group < int32_t(program.groups.size()),
              "takes the norm of a group that it does not have") ||
      !Reachable(view->buffer, program.UpdateSpace(),
                 program.UpdatesOnDevice() ? "takes the norm of a buffer in host memory"
                                           : "takes the norm of a buffer in device memory"))
    return;
  const uint32_t id = New(Kind::norm);
  Command &command = commands[id];
  command.work.index = group;
  command.work.storage = buffers[view->buffer].storage;
  command.work.entry = buffers[view->buffer].entry;
  command.work.first = view->first;
  command.work.count = view->count;
  command.work.bytes = view->count * ChunkBytes(command.work.storage);
  command.uses.push_back({view->buffer, view->first});
  Reads(id, view->buffer, view->first, view->count);
  Issue(id);
}

void Graph::NormDone(int64_t step) {
  if (!error.ok())
    return;
  const uint32_t id = New(Kind::norm_done);
  commands[id].work.step = step;
  Issue(id);
}

} // namespace boa
