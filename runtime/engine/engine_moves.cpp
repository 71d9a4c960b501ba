//===- engine_moves.cpp - What moves outside of a step ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chunks that the trainer reads and writes, and the storages in memory that a commit
// saves. Nothing else runs meanwhile.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/impl.h"

#include "absl/strings/str_cat.h"
#include "runtime/abi/abi.h"

#include <cstdlib>
#include <memory>

namespace boa {
namespace {

/// Memory that SSDs reach, of the caller.
using Bounce = std::unique_ptr<char, decltype(&std::free)>;
Bounce MakeBounce(int64_t bytes) {
  return Bounce(static_cast<char *>(std::aligned_alloc(BOA_BLOCK_BYTES, bytes)), &std::free);
}

absl::Status NoMemory(int64_t bytes, const std::string &what) {
  return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes >> 20,
                                                   " MiB to move a chunk of ", what,
                                                   ": give the process more memory"));
}

} // namespace

void Engine::Impl::Exchange(bool write, int32_t storage, int64_t entry, int32_t first,
                            int32_t count, void *data) {
  MutexLock lock(mutex);
  if (write)
    graph.DropRetained();
  graph.Exchange(write, storage, entry, first, count, data);
  Pump();
}

/// Moves chunks that live side by side in memory to or from their extents. If no SSD reaches that
/// memory, they pass other memory on the way.
absl::Status Engine::Impl::MoveHome(int32_t storage, int64_t entry, int32_t first, int32_t count,
                                    bool write) {
  {
    MutexLock lock(mutex);
    const Location home = graph.HomeOf(storage, entry, first);
    const bool reached = !IsSeparate(program.machine) || home.space == BOA_HOST;
    if (reached) {
      graph.MoveDisk(write, storage, entry, first, count, nullptr);
      Pump();
      return absl::OkStatus();
    }
  }
  const int64_t bytes = count * program.storages[storage].chunk_bytes();
  Bounce bounce = MakeBounce(bytes);
  if (!bounce)
    return NoMemory(bytes, program.storages[storage].name);
  for (bool disk : {!write, write}) {
    if (disk) {
      MutexLock lock(mutex);
      graph.MoveDisk(write, storage, entry, first, count, bounce.get());
    } else {
      Exchange(/*write=*/!write, storage, entry, first, count, bounce.get());
    }
    if (absl::Status status = Drain(); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

/// Of all its chunks.
bool Engine::Impl::IsAbsent(int32_t storage) const {
  MutexLock lock(mutex);
  const Storage &of = program.storages[storage];
  for (int64_t entry = 0; entry < of.entry_count(); ++entry)
    for (int32_t chunk = 0; chunk < of.chunks; ++chunk)
      if (!graph.IsAbsent(storage, entry, chunk))
        return false;
  return true;
}

/// The home of a chunk. The chunks from it to `end` lie side by side.
Location Engine::Impl::HomeOf(int32_t storage, int64_t entry, int32_t chunk, int32_t &end) const {
  const Storage &of = program.storages[storage];
  MutexLock lock(mutex);
  const Location home = graph.HomeOf(storage, entry, chunk);
  for (end = chunk + 1; home.space >= 0 && end < of.chunks; ++end) {
    const Location other = graph.HomeOf(storage, entry, end);
    if (other.space != home.space || other.offset != home.offset + (end - chunk) * of.chunk_bytes())
      break;
  }
  return home;
}

/// Moves all persistent chunks that live in memory to or from their extents. A storage that is
/// absent stays so.
absl::Status Engine::Impl::MoveResident(bool write) {
  // Submitted transfers end also after a signal, so only some are submitted at once.
  constexpr int64_t kAtOnce = int64_t{256} << 20;
  int64_t moving = 0;
  for (size_t s = 0; s < program.storages.size(); ++s) {
    const Storage &storage = program.storages[s];
    if (!storage.persistent || IsAbsent(int32_t(s)))
      continue;
    for (int64_t entry = 0; entry < storage.entry_count(); ++entry)
      for (int32_t chunk = 0, next; chunk < storage.chunks; chunk = next) {
        const Location home = HomeOf(int32_t(s), entry, chunk, next);
        // The state may have the chunk in another place. Then it has no extent to read.
        // Frozen chunks are written once.
        const bool stored = state->Current(s, entry, chunk).file >= 0;
        if (home.space < 0 || (write ? stored && IsFrozen(storage) : !stored))
          continue;
        absl::Status status = MoveHome(s, entry, chunk, next - chunk, write);
        moving += (next - chunk) * storage.chunk_bytes();
        if (status.ok() && moving >= kAtOnce) {
          status = Drain();
          moving = 0;
        }
        if (!status.ok())
          return status;
      }
  }
  return Drain();
}

std::map<std::string, int64_t> Engine::AbsentBytes() const {
  std::map<std::string, int64_t> bytes;
  MutexLock lock(impl->mutex);
  for (size_t s = 0; s < impl->program.storages.size(); ++s) {
    const Storage &storage = impl->program.storages[s];
    for (int64_t entry = 0; entry < storage.entry_count(); ++entry)
      for (int32_t chunk = 0; chunk < storage.chunks; ++chunk)
        if (storage.TierOf(entry, chunk) == Home::ssd &&
            impl->graph.IsAbsent(int32_t(s), entry, chunk))
          bytes[storage.role] += storage.chunk_bytes();
  }
  return bytes;
}

} // namespace boa
