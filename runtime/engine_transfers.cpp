//===- engine_transfers.cpp - To and from SSD ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Transfers complete on the backend's threads. Those outside of a step (what the
// trainer reads and writes, commit, restore) are commands like all others.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine_impl.h"

#include "runtime/state/checksum.h"

#include "absl/strings/str_cat.h"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace boa {

/// Hands ready transfers to the backend, without the mutex. Reads stay while the
/// driver may yet say what first uses them.
void Engine::Impl::Submit(std::unique_lock<std::mutex> &lock) {
  while (error.ok()) {
    std::vector<CommandRef> batch, held;
    for (CommandRef &command : to_submit) {
      bool early = issuing && command->kind == Command::Kind::read && command->first_use == 0;
      (early ? held : batch).push_back(std::move(command));
    }
    to_submit = std::move(held);
    if (batch.empty())
      return;
    transfers += batch.size();
    lock.unlock();
    for (const CommandRef &command : batch)
      Transfer(command);
    lock.lock();
  }
}

/// Reads: when what they bring is used. Writes: what the step itself reads again
/// (activations), then what the next one begins with (weights), then the rest, each
/// in the order of becoming ready.
int64_t Engine::Impl::Deadline(const Command &command) const {
  if (command.kind == Command::Kind::read)
    return command.first_use ? command.first_use : command.sequence;
  const Storage &storage = program.storages[command.storage];
  return !storage.persistent ? 0 : storage.role == "weights" ? 1 : 2;
}

/// One request for each run of chunks that lie one behind another in a file.
void Engine::Impl::Transfer(const CommandRef &command) {
  Buffer &buffer = *command->buffers[0];
  int64_t bytes = ChunkBytes(command->storage);
  command->begin_ns = Now();
  std::vector<std::pair<int32_t, int32_t>> runs; // first, count, relative
  for (int32_t c = 0; c < command->count; ++c) {
    const Extent &extent = command->extents[c];
    if (c > 0 && extent.file == command->extents[c - 1].file &&
        extent.offset == command->extents[c - 1].offset + bytes)
      ++runs.back().second;
    else
      runs.push_back({c, 1});
  }
  command->requests = runs.size();
  for (auto [first, count] : runs) {
    IoRequest request;
    request.write = command->kind == Command::Kind::write;
    request.file = command->extents[first].file;
    request.offset = command->extents[first].offset;
    request.bytes = count * bytes;
    request.data = buffer.base + (command->first + first - buffer.first) * bytes;
    request.deadline = Deadline(*command);
    request.done = [this, command, first = first, count = count](absl::Status status) {
      TransferDone(command, first, count, std::move(status));
    };
    io->Submit(std::move(request));
  }
}

void Engine::Impl::TransferDone(const CommandRef &command, int32_t first, int32_t count,
                                absl::Status status) {
  const Storage &storage = program.storages[command->storage];
  Buffer &buffer = *command->buffers[0];
  int64_t bytes = ChunkBytes(command->storage);
  bool write = command->kind == Command::Kind::write;
  // The buffer is unchanged until the command completes: check outside the lock.
  for (int32_t c = first; c < first + count && status.ok(); ++c) {
    const char *data = buffer.base + (command->first + c - buffer.first) * bytes;
    uint64_t sum = boa::Checksum(data, bytes);
    int32_t chunk = command->first + c;
    if (write)
      state->SetChecksum(command->extents[c], sum);
    else if (auto expected = state->Checksum(command->extents[c]); expected && *expected != sum)
      status = absl::DataLossError(absl::StrCat(
          "checksum of ", storage.name, " entry ", command->entry, " chunk ", chunk, " in ",
          state->Files()[command->extents[c].file].path, " at offset ", command->extents[c].offset,
          " does not match: the data on disk was damaged; restore the state directory from a "
          "copy"));
  }
  std::unique_lock lock(mutex);
  if (!status.ok())
    Fail(std::move(status));
  if (command->run != kNoRun) {
    Counters &counted = counters[command->run];
    (write ? counted.written : counted.read)[storage.role] += count * bytes;
  }
  if (options.trace && command->run != kNoRun) {
    int32_t link = state->Files()[command->extents[first].file].link;
    TraceEvent event{write ? TraceEvent::Row::write : TraceEvent::Row::read,
                     link,
                     storage.name,
                     command->begin_ns,
                     Now(),
                     count * bytes};
    if (trace.size() < size_t(options.trace_events))
      trace.push_back(std::move(event));
    else
      trace[trace_next++ % trace.size()] = std::move(event);
  }
  if (--command->requests == 0) {
    Complete(command);
    Submit(lock);
    // Counted last: whoever waits for no transfers may free the engine's parts.
    --transfers;
    changed.notify_all();
  }
}

//===----------------------------------------------------------------------===//
// Outside of a step
//===----------------------------------------------------------------------===//

/// Moves chunks between `buffer`, which holds them, and their extents, while
/// nothing else runs. With the mutex held; Drain waits for it.
void Engine::Impl::IssueMove(bool write, const BufferRef &buffer) {
  CommandRef command = New(write ? Command::Kind::write : Command::Kind::read);
  command->run = kNoRun;
  command->buffers = {buffer};
  command->storage = buffer->storage;
  command->entry = buffer->entry;
  command->first = buffer->first;
  command->count = buffer->count;
  for (int32_t c = 0; c < buffer->count; ++c)
    PlaceChunk(*command, buffer->first + c, write);
  Issue(command);
}

/// Where a chunk of a transfer stands, or will.
void Engine::Impl::PlaceChunk(Command &command, int32_t chunk, bool write) {
  Extent extent = write ? state->Next(command.storage, command.entry, chunk)
                        : state->Current(command.storage, command.entry, chunk);
  command.extents.push_back(extent);
  if (extent.file >= 0)
    return;
  absl::Status why = state->status();
  if (why.ok())
    why = absl::InternalError(absl::StrCat("entry ", command.entry, " chunk ", chunk, " of ",
                                           program.storages[command.storage].name,
                                           " is read and was never written"));
  Fail(std::move(why));
}

absl::Status Engine::Impl::Access(int32_t storage, int64_t entry, int32_t chunk, void *data,
                                  bool write) {
  if (absl::Status status = Drain(); !status.ok())
    return status;
  int64_t bytes = ChunkBytes(storage);
  if (IsResident(storage)) {
    char *home = homes[storage][entry]->base + chunk * bytes;
    std::memcpy(write ? home : data, write ? data : home, bytes);
    return absl::OkStatus();
  }
  std::unique_ptr<char, decltype(&std::free)> bounce(
      static_cast<char *>(std::aligned_alloc(kBlock, bytes)), &std::free);
  if (!bounce)
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", bytes >> 20, " MiB to move a chunk of ",
                     program.storages[storage].name, ": give the process more memory"));
  if (write)
    std::memcpy(bounce.get(), data, bytes);
  BufferRef buffer = NewBuffer(storage, entry, chunk, 1);
  buffer->base = bounce.get();
  {
    std::unique_lock lock(mutex);
    IssueMove(write, buffer);
  }
  absl::Status status = Drain();
  if (status.ok() && !write)
    std::memcpy(data, bounce.get(), bytes);
  return status;
}

/// All persistent chunks that live in memory, to or from their extents. Straight
/// from and to where they live: nothing runs meanwhile.
absl::Status Engine::Impl::MoveResident(bool write) {
  {
    std::unique_lock lock(mutex);
    for (size_t s = 0; s < program.storages.size(); ++s)
      if (program.storages[s].persistent)
        for (const BufferRef &home : homes[s])
          // What the state has in another form is not there to be read.
          if (write || state->Current(s, home->entry, 0).file >= 0)
            IssueMove(write, home);
  }
  return Drain();
}

} // namespace boa
