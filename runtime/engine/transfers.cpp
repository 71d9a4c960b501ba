//===- engine/transfers.cpp - To and from SSD ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A transfer is complete when its bytes are moved and summed: whatever is read is
// compared with the checksum of the extent that it stood in before anybody uses it.
// Sums are made on threads of their own, so that no disk waits for them. Transfers
// outside of a step (what the trainer reads and writes, commit, restore) are
// commands like all others.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/impl.h"

#include "runtime/state/checksum.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
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

/// One request for each run of chunks that lie one behind another in a file. What
/// is written is summed while it is under way: it does not change until then.
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
  const bool write = command->kind == Command::Kind::write;
  command->parts = runs.size();
  if (write) {
    std::unique_lock lock(mutex);
    AddSums(command, 0, command->count);
  }
  for (auto [first, count] : runs) {
    IoRequest request;
    request.write = write;
    request.file = command->extents[first].file;
    request.offset = command->extents[first].offset;
    request.bytes = count * bytes;
    request.data = Address(buffer, command->first + first);
    request.deadline = Deadline(*command);
    request.done = [this, command, first = first, count = count](absl::Status status) {
      TransferDone(command, first, count, std::move(status));
    };
    io->Submit(std::move(request));
  }
}

/// On the thread that completes I/O, which must not be kept: no byte is touched.
void Engine::Impl::TransferDone(const CommandRef &command, int32_t first, int32_t count,
                                absl::Status status) {
  const Storage &storage = program.storages[command->storage];
  int64_t bytes = count * ChunkBytes(command->storage);
  bool write = command->kind == Command::Kind::write;
  std::unique_lock lock(mutex);
  if (command->run != kNoRun) {
    Counters &counted = counters[command->run];
    (write ? counted.written : counted.read)[storage.role] += bytes;
    int32_t link = state->Files()[command->extents[first].file].link;
    Record(write ? TraceEvent::Row::write : TraceEvent::Row::read, *command, storage.name, Now(),
           bytes, link);
  }
  if (!write && status.ok())
    AddSums(command, first, count);
  PartDone(lock, command, std::move(status));
}

/// With the mutex held: a request or a sum of a transfer is done.
void Engine::Impl::PartDone(std::unique_lock<std::mutex> &lock, const CommandRef &command,
                            absl::Status status) {
  if (!status.ok())
    Fail(std::move(status));
  if (--command->parts > 0)
    return;
  Complete(command);
  Submit(lock);
  // Counted last: whoever waits for no transfers may free the engine's parts.
  --transfers;
  changed.notify_all();
}

//===----------------------------------------------------------------------===//
// Checksums
//===----------------------------------------------------------------------===//

// What one thread sums at a time: 0.1 ms.
static constexpr int64_t kSumBytes = 1 << 20;

/// With the mutex held: chunks, counted from the command's first, that are to be
/// summed.
void Engine::Impl::AddSums(const CommandRef &command, int32_t first, int32_t count) {
  int32_t most = std::max<int64_t>(1, kSumBytes / ChunkBytes(command->storage));
  for (int32_t c = 0; c < count; c += most) {
    sums.push_back({command, first + c, std::min(most, count - c)});
    ++command->parts;
    sums_added.notify_one();
  }
  if (options.scheduler)
    changed.notify_all(); // a backend that has threads
}

void Engine::Impl::SumLoop() {
  std::unique_lock lock(mutex);
  while (true) {
    sums_added.wait(lock, [&] { return !sums.empty() || transfers_over; });
    if (sums.empty())
      return;
    DoSum(lock, 0);
  }
}

/// Takes one of the sums that are to be made.
void Engine::Impl::DoSum(std::unique_lock<std::mutex> &lock, size_t which) {
  Sum sum = std::move(sums[which]);
  sums.erase(sums.begin() + which);
  lock.unlock();
  absl::Status status;
  for (int32_t c = sum.first; c < sum.first + sum.count && status.ok(); ++c)
    status = SumChunk(*sum.command, c);
  lock.lock();
  PartDone(lock, sum.command, std::move(status));
}

/// Notes the checksum of a chunk that is being written: nobody reads its extent
/// until the command is complete. Or compares what was read with what was noted.
absl::Status Engine::Impl::SumChunk(const Command &command, int32_t c) {
  const Buffer &buffer = *command.buffers[0];
  const Extent &extent = command.extents[c];
  int64_t bytes = ChunkBytes(command.storage);
  uint64_t sum = boa::Checksum(Address(buffer, command.first + c), bytes);
  if (command.kind == Command::Kind::write) {
    state->SetChecksum(extent, sum);
    return absl::OkStatus();
  }
  std::optional<uint64_t> expected = state->Checksum(extent);
  if (expected == sum)
    return absl::OkStatus();
  const Storage &storage = program.storages[command.storage];
  if (!expected)
    return NeverWritten(command, command.first + c);
  return DamagedChunk(storage.name, command.entry, command.first + c,
                      state->Files()[extent.file].path, extent.offset, storage.persistent);
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

absl::Status Engine::Impl::NeverWritten(const Command &command, int32_t chunk) const {
  return absl::InternalError(
      absl::StrCat("the program reads ", program.storages[command.storage].name, " entry ",
                   command.entry, " chunk ", chunk, ", which was never written"));
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
    why = NeverWritten(command, chunk);
  Fail(std::move(why));
}

absl::Status Engine::Impl::Access(int32_t storage, int64_t entry, int32_t chunk, void *data,
                                  bool write) {
  if (absl::Status status = Drain(); !status.ok())
    return status;
  int64_t bytes = ChunkBytes(storage);
  if (BufferRef lives = HomeOf(storage, entry, chunk)) {
    char *home = Address(*lives, chunk);
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
  BufferRef buffer = NewBuffer(storage, entry, chunk, 1, BOA_HOST);
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
        for (const BufferRef &home : places[s].homes)
          // What the state has in another form is not there to be read.
          if (write || state->Current(s, home->entry, home->first).file >= 0)
            IssueMove(write, home);
  }
  return Drain();
}

} // namespace boa
