//===- engine.cpp - Memory, and what the trainer asks for -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Begin at engine.h; how commands are ordered is in engine/graph.cpp, how they
// run in engine/queues.cpp.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/impl.h"

#include "runtime/thread_pool.h"

#include "absl/strings/str_cat.h"

#include <sys/mman.h>
#include <time.h>

#include <cstring>
#include <new>
#include <system_error>
#include <utility>

namespace boa {

int64_t Engine::Now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static int64_t WorkspaceBytes(const Program &program) {
  int64_t bytes = 0;
  for (const Kernel &kernel : program.kernels)
    bytes = std::max(bytes, kernel.workspace);
  return bytes;
}

/// What the rest relies on: chunks are whole blocks, homes are for all of them, and
/// the arena, but for the gaps between slots, is no larger than was planned.
absl::Status Engine::Impl::CheckProgram() const {
  int64_t needed = WorkspaceBytes(program);
  for (const Storage &storage : program.storages) {
    if (storage.chunks < 1 || storage.bytes < 0 || storage.bytes % (kBlock * storage.chunks) != 0)
      return absl::InvalidArgumentError(
          absl::StrCat(storage.name, " has entries of ", storage.bytes, " bytes in ",
                       storage.chunks, " chunks: expected a multiple of ", kBlock, " in each"));
    int64_t housed = 0, chunks = 0;
    for (const Home &home : storage.homes) {
      housed += home.chunks;
      if (home.tier != Tier::ssd)
        chunks += storage.entry_count() * home.chunks;
    }
    if (housed != storage.chunks)
      return absl::InvalidArgumentError(
          absl::StrCat(storage.name, " has homes for ", housed, " of ", storage.chunks, " chunks"));
    if (storage.LivesOn(Tier::ssd) && !state)
      return absl::InvalidArgumentError(
          absl::StrCat(storage.name, " lives on ssd but there is no state directory"));
    for (const SlotPool &pool : storage.pools)
      chunks += int64_t{pool.slots} * pool.chunks;
    needed += chunks * storage.chunk_bytes();
  }
  int64_t planned = program.arena_device + program.arena_host;
  if (planned > 0 && needed > planned)
    return absl::InternalError(absl::StrCat("the program needs ", needed,
                                            " bytes of memory but was planned for ", planned));
  return absl::OkStatus();
}

/// What each storage has in which memory; addresses are offsets until there is one.
void Engine::Impl::LayOut() {
  auto take = [&](int32_t space, int64_t bytes) {
    int64_t &end = arenas[Separate() ? space : 0].bytes;
    return reinterpret_cast<char *>(std::exchange(end, end + bytes));
  };
  workspace = take(BOA_DEVICE, boa_slot_stride(WorkspaceBytes(program)));
  places.resize(program.storages.size());
  for (size_t s = 0; s < program.storages.size(); ++s) {
    const Storage &storage = program.storages[s];
    Place &place = places[s];
    int32_t first = 0;
    for (const Home &home : storage.homes) {
      const bool memory = home.tier != Tier::ssd;
      const int32_t space = home.tier == Tier::host ? BOA_HOST : BOA_DEVICE;
      if (memory && first > 0 && place.range_of.back() >= 0 &&
          (!Separate() || place.ranges.back().space == space))
        place.ranges.back().count += home.chunks;
      else if (memory)
        place.ranges.push_back({first, home.chunks, space});
      place.range_of.resize(first + home.chunks, memory ? int32_t(place.ranges.size()) - 1 : -1);
      first += home.chunks;
    }
    for (int64_t entry = 0; entry < storage.entry_count(); ++entry)
      for (const MemoryRange &range : place.ranges) {
        BufferRef home = NewBuffer(s, entry, range.first, range.count, range.space);
        home->home = true;
        home->base = take(range.space, boa_slot_stride(range.count * ChunkBytes(s)));
        place.homes.push_back(std::move(home));
      }
  }
  for (Arena &arena : arenas)
    arena.fixed = arena.bytes;
  for (size_t s = 0; s < program.storages.size(); ++s) {
    for (const SlotPool &pool : program.storages[s].pools) {
      SlotList &slots = places[s].slots.emplace_back();
      slots.space = pool.space;
      slots.chunks = pool.chunks;
      slots.stride = boa_slot_stride(pool.chunks * ChunkBytes(s));
      slots.base = take(pool.space, pool.slots * slots.stride);
      for (int32_t slot = pool.slots; slot-- > 0;)
        slots.free.push_back(slot);
    }
    std::stable_sort(places[s].slots.begin(), places[s].slots.end(),
                     [](const SlotList &a, const SlotList &b) { return a.chunks < b.chunks; });
  }
}

absl::Status Engine::Impl::Allocate() {
  LayOut();
  for (Arena &arena : arenas) {
    if (arena.bytes == 0)
      continue;
    void *memory =
        mmap(nullptr, arena.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot allocate the arena of ", arena.bytes >> 20,
                       " MiB: give the process more memory or the program less"));
    arena.base = static_cast<char *>(memory);
    madvise(memory, arena.bytes, MADV_HUGEPAGE);
    // First touch is slow; it must not happen in the first step.
    ParallelFor(
        arena.bytes, 2 << 20,
        [](void *data, int64_t begin, int64_t end) {
          std::memset(static_cast<char *>(data) + begin, 0, end - begin);
        },
        memory);
  }
  auto place_in = [&](int32_t space, char *&address) {
    address = arenas[Separate() ? space : 0].base + reinterpret_cast<intptr_t>(address);
  };
  place_in(BOA_DEVICE, workspace);
  for (Place &place : places) {
    for (const BufferRef &home : place.homes)
      place_in(home->space, home->base);
    for (SlotList &slots : place.slots)
      place_in(slots.space, slots.base);
  }
  return absl::OkStatus();
}

void Engine::Impl::PrepareDecay() {
  for (const Group &group : program.groups) {
    std::vector<DecayRange> ranges;
    for (const Parameter &parameter : group.parameters) {
      if (!ranges.empty())
        ranges.back().end = parameter.offset;
      if (ranges.empty() || ranges.back().decay != parameter.decay)
        ranges.push_back({parameter.offset, group.elements, parameter.decay});
      ranges.back().end = group.elements;
    }
    decay.push_back(std::move(ranges));
  }
}

absl::Status Engine::Impl::Start() {
  if (absl::Status status = CheckProgram(); !status.ok())
    return status;
  SetThreads(options.scheduler ? 1 : program.machine.threads);
  if (absl::Status status = Allocate(); !status.ok())
    return status;
  PrepareDecay();
  size_t most_buffers = 0;
  for (const Kernel &kernel : program.kernels)
    most_buffers = std::max(most_buffers, kernel.buffers.size());
  kernel_buffers.resize(most_buffers);
  if (state) {
    // What SSDs reach.
    const Arena &arena = arenas[Separate() ? BOA_HOST : BOA_DEVICE];
    auto backend =
        state->Disk().CreateIo(state->Files(), state->Links(), arena.base, arena.bytes, options.io);
    if (!backend.ok())
      return backend.status();
    io = std::move(*backend);
  }
  if (options.scheduler)
    return absl::OkStatus();
  try {
    compute_thread = std::thread([this] { ComputeLoop(); });
    optimizer_thread = std::thread([this] { OptimizerLoop(); });
    // One sums what a fast disk moves.
    if (state)
      for (int64_t i = 0; i < (Threads() + 7) / 8; ++i)
        sum_threads.emplace_back([this] { SumLoop(); });
  } catch (const std::system_error &error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start the engine's threads: ", error.code().message(),
                     ": allow the process more threads (ulimit -u) or more memory"));
  }
  return absl::OkStatus();
}

Engine::Impl::~Impl() {
  Stop();
  io.reset();
  // After an error commands are left that hold the buffers that hold them.
  for (const CommandRef &command : incomplete) {
    command->buffers.clear();
    command->dependents.clear();
  }
  for (Arena &arena : arenas)
    if (arena.base)
      munmap(arena.base, arena.bytes);
}

//===----------------------------------------------------------------------===//
// What the trainer asks between steps
//===----------------------------------------------------------------------===//

Engine::Engine(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Engine::~Engine() = default;

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(const Program &program,
                                                       const boa_kernel *kernels, StateStore *state,
                                                       const EngineOptions &options) {
  try {
    auto impl = std::make_unique<Impl>(program, kernels, state, options);
    if (absl::Status status = impl->Start(); !status.ok())
      return status;
    return std::unique_ptr<Engine>(new Engine(std::move(impl)));
  } catch (const std::bad_alloc &) {
    return absl::ResourceExhaustedError(
        "cannot allocate what the engine needs beside its arena: give the process more memory "
        "or the program less");
  }
}

int64_t Engine::Enqueue(boa_entry_point entry, int64_t step, int64_t pending,
                        const std::vector<Port> &in, const std::vector<Port> &out) {
  std::unique_lock lock(impl->mutex);
  int64_t run = ++impl->run;
  if (!impl->error.ok())
    return run; // Wait says which
  if (std::exchange(impl->previous, entry) != entry)
    impl->DropRetained();
  impl->issuing = true;
  for (const Port &port : in)
    impl->IssueCopy(Command::Kind::copy_in, port);
  lock.unlock();
  entry(impl.get(), step, pending);
  lock.lock();
  for (const Port &port : out)
    impl->IssueCopy(Command::Kind::copy_out, port);
  impl->issuing = false;
  impl->Submit(lock);
  return run;
}

absl::Status Engine::Drain() { return impl->Drain(); }

absl::Status Engine::status() const {
  std::unique_lock lock(impl->mutex);
  return impl->error;
}

absl::Status Engine::ReadChunk(int32_t storage, int64_t entry, int32_t chunk, void *data) {
  return impl->Access(storage, entry, chunk, data, /*write=*/false);
}
absl::Status Engine::WriteChunk(int32_t storage, int64_t entry, int32_t chunk, const void *data) {
  {
    std::unique_lock lock(impl->mutex);
    impl->DropRetained();
  }
  return impl->Access(storage, entry, chunk, const_cast<void *>(data), /*write=*/true);
}

absl::Status Engine::Commit(CommitRecord record) {
  if (absl::Status status = Drain(); !status.ok())
    return status;
  // The manifest names what was written only once all of it is.
  if (absl::Status status = impl->MoveResident(/*write=*/true); !status.ok())
    return status;
  return impl->state->Commit(record);
}

absl::Status Engine::Restore() { return impl->MoveResident(/*write=*/false); }

void Counters::Add(const Counters &other) {
  for (const auto &[role, bytes] : other.read)
    read[role] += bytes;
  for (const auto &[role, bytes] : other.written)
    written[role] += bytes;
  for (const auto &[role, bytes] : other.to_device)
    to_device[role] += bytes;
  for (const auto &[role, bytes] : other.to_host)
    to_host[role] += bytes;
  compute_seconds += other.compute_seconds;
  optimizer_seconds += other.optimizer_seconds;
  waited_read += other.waited_read;
  waited_write += other.waited_write;
  waited_optimizer += other.waited_optimizer;
}

Counters Engine::TakeCounters(int64_t run) {
  std::unique_lock lock(impl->mutex);
  Counters taken;
  auto &counters = impl->counters;
  for (; !counters.empty() && counters.begin()->first <= run; counters.erase(counters.begin()))
    taken.Add(counters.begin()->second);
  return taken;
}
std::vector<TraceEvent> Engine::TakeTrace() {
  std::unique_lock lock(impl->mutex);
  // Once full, the oldest event stands where the next would go.
  if (impl->trace_next > 0)
    std::rotate(impl->trace.begin(), impl->trace.begin() + impl->trace_next % impl->trace.size(),
                impl->trace.end());
  impl->trace_next = 0;
  return std::exchange(impl->trace, {});
}
std::vector<int64_t> Engine::TakeSkipped() {
  std::unique_lock lock(impl->mutex);
  return std::exchange(impl->left_out, {});
}
int64_t Engine::ArenaBytes() const {
  return impl->arenas[BOA_DEVICE].bytes + impl->arenas[BOA_HOST].bytes;
}
int64_t Engine::PeakBytes(int32_t space) const {
  std::unique_lock lock(impl->mutex);
  int64_t bytes = impl->arenas[space].fixed;
  for (const Place &place : impl->places)
    for (const SlotList &slots : place.slots)
      if ((impl->Separate() ? slots.space : BOA_DEVICE) == space)
        bytes += slots.most_used * slots.stride;
  return bytes;
}
std::string Engine::DescribeIo() const { return impl->io ? impl->io->Describe() : "memory only"; }

} // namespace boa
