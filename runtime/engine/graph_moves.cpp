//===- graph_moves.cpp - Moves between memories and SSD -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/graph.h"

#include "absl/strings/str_cat.h"

#include <cstring>
#include <utility>

namespace boa {

using Kind = Work::Kind;

//===----------------------------------------------------------------------===//
// Between a buffer and homes
//===----------------------------------------------------------------------===//

/// Moves chunks from a buffer to their homes (home), or back. Each part of them that lives in
/// another range is a move of its own.
void Graph::Move(bool home, uint32_t buffer, int64_t entry, int32_t first, int32_t count) {
  const int32_t storage = slots.buffer(buffer).storage;
  for (int32_t c = first, next; c < first + count; c = next) {
    next = slots.EndOfRange(storage, entry, c, first + count);
    const uint32_t lives = slots.HomeBuffer(storage, entry, c);
    if (lives)
      CopyChunks(home ? buffer : lives, home ? lives : buffer, c, next - c);
    else if (PassesHost(slots.buffer(buffer).space))
      MoveStaged(home, buffer, entry, c, next - c);
    else
      MoveDisk(home, buffer, entry, c, next - c);
  }
}

/// Between SSD and the memory of a device that no SSD reaches: each chunk passes a slot of the
/// host's memory.
void Graph::MoveStaged(bool home, uint32_t buffer, int64_t entry, int32_t first, int32_t count) {
  const int32_t storage = slots.buffer(buffer).storage;
  const int32_t pool = slots.PoolFor(storage, 1, BOA_HOST);
  if (!Expect(pool >= 0, "moves chunks between SSD and device without a slot in host memory"))
    return;
  for (int32_t c = first; c < first + count; ++c) {
    const uint32_t stage = dispatcher.OpenBuffer(storage, entry, c, 1, BOA_HOST, pool);
    Command &opener = NewOpener(home ? Kind::create : KindOfRead(storage, entry, c), stage);
    dispatcher.RequestSlot(opener, stage);
    if (home) {
      dispatcher.Issue(opener);
      CopyChunks(buffer, stage, c, 1);
      MoveDisk(home, stage, entry, c, 1);
    } else {
      IssueMove(opener);
      CopyChunks(stage, buffer, c, 1);
    }
    dispatcher.ReleaseBuffer(stage);
  }
}

void Graph::CopyChunks(uint32_t from, uint32_t to, int32_t first, int32_t count) {
  if (from == to)
    return;
  const Slots::Buffer &target = slots.buffer(to);
  Command &command = dispatcher.New(Kind::copy, target.storage, target.entry, first, count);
  command.uses.push_back({from, first});
  command.uses.push_back({to, first});
  dispatcher.Reads(command, from, first, count);
  dispatcher.Writes(command, to, first, count);
  dispatcher.Issue(command);
}

//===----------------------------------------------------------------------===//
// SSD
//===----------------------------------------------------------------------===//

absl::Status NeverWritten(const Storage &storage, int64_t entry, int32_t chunk) {
  return absl::InternalError(absl::StrCat("the program reads ", storage.name, " entry ", entry,
                                          " chunk ", chunk, ", which was never written"));
}

/// The extents of a transfer's chunks: the current ones for a read, new ones for a write.
void Graph::FindExtents(Work &work) {
  for (int32_t c = work.first; c < work.first + work.count; ++c) {
    const Extent extent = work.kind == Kind::write ? extents->Next(work.storage, work.entry, c)
                                                   : extents->Current(work.storage, work.entry, c);
    work.extents.push_back(extent);
    if (extent.file >= 0)
      continue;
    absl::Status why = extents->Why();
    if (why.ok())
      why = NeverWritten(program.storages[work.storage], work.entry, c);
    Fail(std::move(why));
  }
}

/// The first chunk in (chunk, end] that is absent while this one is not, or the reverse.
int32_t Graph::EndOfAbsence(int32_t storage, int64_t entry, int32_t chunk, int32_t end) const {
  if (!zero_at_first[storage])
    return end;
  const bool absent = IsAbsent(storage, entry, chunk);
  while (++chunk < end && IsAbsent(storage, entry, chunk) == absent)
    ;
  return chunk;
}

/// An absent chunk is made, not read.
Kind Graph::KindOfRead(int32_t storage, int64_t entry, int32_t chunk) const {
  return IsAbsent(storage, entry, chunk) ? Kind::zero : Kind::read;
}

/// Issues a transfer behind those of the same chunks on SSD, or the fill that stands for it.
void Graph::IssueMove(Command &command) {
  Work &work = command.work;
  if (work.kind == Kind::zero)
    return dispatcher.Issue(command);
  FindExtents(work);
  const int32_t end = work.first + work.count;
  for (int32_t c = work.first; c < end && slots.LivesOnDisk(work.storage, work.entry, c); ++c)
    if (work.kind == Kind::write)
      dispatcher.WritesDisk(command, c);
    else
      dispatcher.ReadsDisk(command, c);
  dispatcher.Issue(command);
}

/// Between a buffer and SSD.
void Graph::MoveDisk(bool home, uint32_t buffer, int64_t entry, int32_t first, int32_t count) {
  const Slots::Buffer &of = slots.buffer(buffer);
  if (!Expect(!PassesHost(of.space),
              home ? "writes to SSD from device memory" : "reads from SSD into device memory"))
    return;
  const int32_t storage = of.storage;
  for (int32_t c = first, next; c < first + count; c = next) {
    next = home ? first + count : EndOfAbsence(storage, entry, c, first + count);
    const Kind kind = home ? Kind::write : KindOfRead(storage, entry, c);
    Command &command = dispatcher.New(kind, storage, entry, c, next - c);
    command.uses.push_back({buffer, c});
    if (home)
      dispatcher.Reads(command, buffer, c, next - c);
    else
      dispatcher.Writes(command, buffer, c, next - c);
    IssueMove(command);
  }
}

void Graph::MoveDisk(bool write, int32_t storage, int64_t entry, int32_t first, int32_t count,
                     void *outside) {
  Command &command = dispatcher.New(write ? Kind::write : Kind::read, storage, entry, first, count);
  command.work.run = kNoRun;
  command.work.outside = outside;
  if (!outside)
    command.uses.push_back({slots.HomeBuffer(storage, entry, first), first});
  IssueMove(command);
}

//===----------------------------------------------------------------------===//
// Memory of the caller
//===----------------------------------------------------------------------===//

void Graph::Exchange(bool write, int32_t storage, int64_t entry, int32_t first, int32_t count,
                     void *outside) {
  if (!status().ok() ||
      !Expect(slots.HasChunks(storage, entry, first, count), "has no such chunks"))
    return;
  for (int32_t c = first, next; c < first + count; c = next) {
    next = slots.EndOfRange(storage, entry, c, first + count);
    if (!write)
      next = EndOfAbsence(storage, entry, c, next);
    void *part = static_cast<char *>(outside) + (c - first) * slots.ChunkBytes(storage);
    const int64_t bytes = (next - c) * slots.ChunkBytes(storage);
    if (!write && IsAbsent(storage, entry, c))
      std::memset(part, 0, size_t(bytes)); // no command has it
    else if (slots.LivesOnDisk(storage, entry, c))
      MoveDisk(write, storage, entry, c, next - c, part);
    else
      CopyOutside(kNoRun, write, storage, entry, c, next - c, part, bytes);
  }
}

/// Between memory of the caller and chunks that live side by side in memory.
void Graph::CopyOutside(int64_t of_run, bool in, int32_t storage, int64_t entry, int32_t first,
                        int32_t count, void *outside, int64_t bytes) {
  const uint32_t home = slots.HomeBuffer(storage, entry, first);
  Command &command = dispatcher.New(in ? Kind::copy_in : Kind::copy_out);
  command.work.run = of_run;
  command.work.storage = storage;
  command.work.entry = entry;
  command.work.bytes = bytes;
  command.work.outside = outside;
  command.uses.push_back({home, first});
  if (in)
    dispatcher.Writes(command, home, first, count);
  else
    dispatcher.Reads(command, home, first, count);
  dispatcher.Issue(command);
}

} // namespace boa
