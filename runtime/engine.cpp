//===- engine.cpp - The command graph -------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads in three parts: the graph (commands, hazards, slots), the queues that
// run commands, and what the trainer asks between steps.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine.h"

#include "runtime/optimizer.h"
#include "runtime/thread_pool.h"

#include "absl/strings/str_cat.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <unordered_set>

struct boa_context {};

namespace boa {
namespace {

constexpr int64_t kBlock = 4096;

/// Why a command became ready when it did: what compute waited for.
enum class Cause { none, read, write, optimizer, compute };

struct Buffer;

struct Command {
  enum class Kind { kernel, update, norm, norm_done, zero, create, release, read, write };
  Kind kind;
  int unmet = 1;                    // dependences left; 1 while being issued
  bool done = false;
  Cause cause = Cause::none;
  std::vector<std::shared_ptr<Command>> dependents;

  std::vector<std::shared_ptr<Buffer>> buffers;
  int32_t index = 0;                // kernel, or group
  int32_t chunk = 0;
  int64_t step = 0;
  // Transfers: the chunks, and how many requests are under way.
  int32_t storage = 0, first = 0, count = 0;
  int64_t entry = 0;
  std::vector<Extent> extents;
  int requests = 0;
  int64_t begin_ns = 0;
};
using CommandRef = std::shared_ptr<Command>;

/// The commands on one chunk that later ones must wait for.
struct Hazard {
  CommandRef writer;
  std::vector<CommandRef> readers;

  /// Entries that are only ever read must not gather readers for ever.
  void AddReader(const CommandRef &command) {
    if (readers.size() >= 8)
      readers.erase(std::remove_if(readers.begin(), readers.end(),
                                   [](const CommandRef &reader) { return reader->done; }),
                    readers.end());
    readers.push_back(command);
  }
};

/// Chunks [first, first + count) of an entry, in a slot or at home in memory.
struct Buffer {
  int32_t storage = 0, first = 0, count = 0;
  int64_t entry = 0;
  char *base = nullptr;             // null until a slot is granted
  int32_t slot = -1;
  bool home = false;                // lives in memory: never released
  CommandRef opener;                // waits for the slot
  std::vector<Hazard> hazards;      // by chunk
};
using BufferRef = std::shared_ptr<Buffer>;

/// The slots of one storage.
struct Pool {
  char *base = nullptr;
  int64_t stride = 0;
  std::vector<int32_t> free;
  std::deque<BufferRef> waiting;    // in program order
};

/// Elements with the same weight decay.
struct DecayRange {
  int64_t begin, end;
  bool decay;
};

int64_t Elements(const Parameter &parameter) {
  int64_t elements = 1;
  for (int64_t dimension : parameter.shape)
    elements *= dimension;
  return elements;
}

using Key = std::tuple<int32_t, int64_t, int32_t, int32_t>;

} // namespace

struct Engine::Impl : boa_context {
  Impl(const Program &program, const boa_kernel *kernels, StateStore *state,
       const EngineOptions &options)
      : program(program), kernels(kernels), state(state), options(options) {}
  ~Impl();

  const Program &program;
  const boa_kernel *kernels;
  StateStore *state;
  EngineOptions options;

  // Memory.
  char *arena = nullptr;
  int64_t arena_bytes = 0;
  char *workspace = nullptr;
  std::vector<Pool> pools;                        // by storage
  std::vector<std::vector<BufferRef>> homes;      // by storage and entry
  std::vector<std::vector<DecayRange>> decay;     // by group
  std::vector<void *> kernel_buffers;             // the compute thread's

  // The graph, guarded by `mutex`.
  mutable std::mutex mutex;
  std::condition_variable changed;
  absl::Status error;
  std::unordered_map<int64_t, BufferRef> buffers; // by handle
  int64_t next_handle = 1;
  std::map<Key, int64_t> retained;                // handle
  std::map<std::tuple<int32_t, int64_t, int32_t>, Hazard> storage_hazards;
  std::unordered_set<CommandRef> incomplete;      // commands issued and not done
  int64_t transfers = 0;                          // submitted and not done
  std::deque<CommandRef> compute, optimizer, zeros;
  bool computing = false, updating = false, stopping = false;
  std::vector<CommandRef> to_submit;
  Counters counters;
  std::vector<TraceEvent> trace;
  size_t trace_next = 0;
  // Sums of squares of this step's gradients, by group, entry and first chunk.
  std::map<std::tuple<int32_t, int64_t, int32_t>, double> squares;
  std::map<int64_t, double> clip_factors;         // by step

  std::unique_ptr<IoBackend> io;
  std::thread compute_thread, optimizer_thread;

  absl::Status Start();
  absl::Status CheckProgram() const;
  absl::Status Allocate();
  void PrepareDecay();

  // Graph.
  CommandRef New(Command::Kind kind);
  void DependOn(const CommandRef &command, const CommandRef &on);
  void Reads(const CommandRef &command, Buffer &buffer, int32_t first, int32_t count);
  void Writes(const CommandRef &command, Buffer &buffer, int32_t first, int32_t count);
  void Issue(const CommandRef &command);
  void Satisfy(const CommandRef &command, Cause cause);
  void Ready(const CommandRef &command);
  void Complete(const CommandRef &command);
  void Grant(Pool &pool, const BufferRef &buffer, Cause cause);
  void RequestSlot(const BufferRef &buffer, const CommandRef &opener);
  void Fail(absl::Status status);
  BufferRef Lookup(boa_buffer handle);
  boa_buffer NewHandle(BufferRef buffer);
  BufferRef NewBuffer(int32_t storage, int64_t entry, int32_t first, int32_t count);
  boa_buffer Open(int32_t storage, int64_t entry, int32_t first, int32_t count, bool read,
                  bool zero);
  void Release(boa_buffer handle, bool retain);
  void DropRetained(int32_t storage, int64_t entry, int32_t first, int32_t count);
  bool Expect(bool holds, const char *what);
  bool HasChunks(int32_t storage, int64_t entry, int32_t first, int32_t count) const;
  bool IsResident(int32_t storage) const { return program.storages[storage].tier != "ssd"; }
  int64_t ChunkBytes(int32_t storage) const {
    return program.storages[storage].bytes / program.storages[storage].chunks;
  }

  // Queues.
  void Submit(std::unique_lock<std::mutex> &lock);
  void Transfer(const CommandRef &command);
  void TransferDone(const CommandRef &command, int32_t first, int32_t count, absl::Status status);
  void ComputeLoop();
  void OptimizerLoop();
  void RunKernel(const Command &command);
  void RunUpdate(const Command &command, double clip);
  double SumGradient(const Command &command) const;
  void FinishNorm(int64_t step);
  void Record(TraceEvent::Row row, const Command &command, const std::string &name,
              int64_t end_ns, int64_t bytes);
  bool Stuck() const;
  absl::Status Wait(bool transfers_too);
  absl::Status Access(int32_t storage, int64_t entry, int32_t chunk, void *data, bool write);
  absl::Status Move(bool write, const Extent &extent, void *data, int64_t bytes);
};

int64_t Engine::Now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Slots spaced by powers of two would fall on the same cache sets.
static int64_t Stride(int64_t bytes) {
  int64_t rounded = (bytes + kBlock - 1) / kBlock * kBlock;
  return rounded % (16 * kBlock) == 0 ? rounded + kBlock : rounded;
}

static int64_t WorkspaceBytes(const Program &program) {
  int64_t bytes = 0;
  for (const Kernel &kernel : program.kernels)
    bytes = std::max(bytes, kernel.workspace);
  return bytes;
}

/// What the rest relies on: chunks are whole blocks, slots hold whole chunks,
/// and the arena, but for the gaps of Stride, is no larger than was planned.
absl::Status Engine::Impl::CheckProgram() const {
  int64_t needed = WorkspaceBytes(program);
  for (const Storage &storage : program.storages) {
    if (storage.chunks < 1 || storage.bytes < 0 || storage.bytes % (kBlock * storage.chunks) != 0)
      return absl::InvalidArgumentError(
          absl::StrCat(storage.name, " has entries of ", storage.bytes, " bytes in ",
                       storage.chunks, " chunks: expected a multiple of ", kBlock, " in each"));
    if (storage.tier != "ssd") {
      needed += storage.entry_count() * storage.bytes;
      continue;
    }
    if (!state)
      return absl::InvalidArgumentError(
          absl::StrCat(storage.name, " lives on ssd but there is no state directory"));
    needed += storage.slots * storage.slot_bytes;
  }
  int64_t planned = program.arena_device + program.arena_host;
  if (planned > 0 && needed > planned)
    return absl::InternalError(absl::StrCat("the program needs ", needed,
                                            " bytes of memory but was planned for ", planned));
  return absl::OkStatus();
}

absl::Status Engine::Impl::Allocate() {
  int64_t workspace_bytes = WorkspaceBytes(program);
  arena_bytes = Stride(workspace_bytes);
  for (const Storage &storage : program.storages)
    arena_bytes += storage.tier == "ssd" ? storage.slots * Stride(storage.slot_bytes)
                                         : storage.entry_count() * Stride(storage.bytes);
  void *memory = mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
  if (memory == MAP_FAILED)
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate the arena of ", arena_bytes >> 20,
                     " MiB: give the process more memory or the program less"));
  arena = static_cast<char *>(memory);
  madvise(memory, arena_bytes, MADV_HUGEPAGE);
  // First touch is slow; it must not happen in the first step.
  ParallelFor(arena_bytes, 2 << 20,
              [](void *data, int64_t begin, int64_t end) {
                std::memset(static_cast<char *>(data) + begin, 0, end - begin);
              },
              memory);
  char *next = arena;
  auto take = [&](int64_t bytes) { return std::exchange(next, next + bytes); };
  workspace = take(Stride(workspace_bytes));
  pools.resize(program.storages.size());
  homes.resize(program.storages.size());
  for (size_t s = 0; s < program.storages.size(); ++s) {
    const Storage &storage = program.storages[s];
    if (storage.tier == "ssd") {
      Pool &pool = pools[s];
      pool.stride = Stride(storage.slot_bytes);
      pool.base = take(storage.slots * pool.stride);
      for (int32_t slot = storage.slots; slot-- > 0;)
        pool.free.push_back(slot);
      continue;
    }
    for (int64_t entry = 0; entry < storage.entry_count(); ++entry) {
      BufferRef home = NewBuffer(s, entry, 0, storage.chunks);
      home->home = true;
      home->base = take(Stride(storage.bytes));
      homes[s].push_back(home);
    }
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
  SetThreads(program.machine.threads);
  if (absl::Status status = Allocate(); !status.ok())
    return status;
  PrepareDecay();
  size_t most_buffers = 0;
  for (const Kernel &kernel : program.kernels)
    most_buffers = std::max(most_buffers, kernel.buffers.size());
  kernel_buffers.resize(most_buffers);
  if (state) {
    auto backend = CreateIoBackend(state->Files(), state->Links(), arena, arena_bytes, options.io);
    if (!backend.ok())
      return backend.status();
    io = std::move(*backend);
  }
  compute_thread = std::thread([this] { ComputeLoop(); });
  optimizer_thread = std::thread([this] { OptimizerLoop(); });
  return absl::OkStatus();
}

Engine::Impl::~Impl() {
  {
    std::unique_lock lock(mutex);
    stopping = true;
    changed.notify_all();
    changed.wait(lock, [&] { return transfers == 0; });
  }
  if (compute_thread.joinable())
    compute_thread.join();
  if (optimizer_thread.joinable())
    optimizer_thread.join();
  io.reset();
  // After an error commands are left that hold the buffers that hold them.
  for (const CommandRef &command : incomplete) {
    command->buffers.clear();
    command->dependents.clear();
  }
  if (arena)
    munmap(arena, arena_bytes);
}

//===----------------------------------------------------------------------===//
// Graph: all with the mutex held
//===----------------------------------------------------------------------===//

CommandRef Engine::Impl::New(Command::Kind kind) {
  auto command = std::make_shared<Command>();
  command->kind = kind;
  incomplete.insert(command);
  return command;
}

void Engine::Impl::DependOn(const CommandRef &command, const CommandRef &on) {
  if (!on || on->done || on == command)
    return;
  on->dependents.push_back(command);
  ++command->unmet;
}

void Engine::Impl::Reads(const CommandRef &command, Buffer &buffer, int32_t first, int32_t count) {
  for (int32_t c = first - buffer.first; c < first - buffer.first + count; ++c) {
    Hazard &hazard = buffer.hazards[c];
    DependOn(command, hazard.writer);
    hazard.AddReader(command);
  }
}

void Engine::Impl::Writes(const CommandRef &command, Buffer &buffer, int32_t first, int32_t count) {
  for (int32_t c = first - buffer.first; c < first - buffer.first + count; ++c) {
    Hazard &hazard = buffer.hazards[c];
    DependOn(command, hazard.writer);
    for (const CommandRef &reader : hazard.readers)
      DependOn(command, reader);
    hazard.readers.clear();
    hazard.writer = command;
  }
}

/// All dependences are known: the command may run.
void Engine::Impl::Issue(const CommandRef &command) {
  if (command->kind == Command::Kind::kernel)
    compute.push_back(command);
  if (command->kind == Command::Kind::update || command->kind == Command::Kind::norm ||
      command->kind == Command::Kind::norm_done)
    optimizer.push_back(command);
  Satisfy(command, Cause::none);
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
    zeros.push_back(command);
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
    Pool &pool = pools[buffer.storage];
    pool.free.push_back(buffer.slot);
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
  std::vector<CommandRef> dependents = std::move(command->dependents);
  command->buffers.clear();
  for (const CommandRef &dependent : dependents)
    Satisfy(dependent, cause);
}

void Engine::Impl::Grant(Pool &pool, const BufferRef &buffer, Cause cause) {
  buffer->slot = pool.free.back();
  pool.free.pop_back();
  buffer->base = pool.base + buffer->slot * pool.stride;
  Satisfy(std::exchange(buffer->opener, nullptr), cause);
}

void Engine::Impl::RequestSlot(const BufferRef &buffer, const CommandRef &opener) {
  buffer->opener = opener;
  ++opener->unmet;
  Pool &pool = pools[buffer->storage];
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
  bool fits = home.tier != "ssd" || count * ChunkBytes(storage) <= home.slot_bytes;
  return entry >= 0 && entry < home.entry_count() && first >= 0 && count > 0 &&
         first + count <= home.chunks && fits;
}

static bool Holds(const Buffer &buffer, int32_t first, int32_t count) {
  return first >= buffer.first && count > 0 && first + count <= buffer.first + buffer.count;
}

BufferRef Engine::Impl::Lookup(boa_buffer handle) {
  auto it = buffers.find(handle);
  if (it != buffers.end())
    return it->second;
  Fail(absl::InternalError("the program used a buffer after its release"));
  return nullptr;
}

boa_buffer Engine::Impl::NewHandle(BufferRef buffer) {
  buffers[next_handle] = std::move(buffer);
  return next_handle++;
}

BufferRef Engine::Impl::NewBuffer(int32_t storage, int64_t entry, int32_t first, int32_t count) {
  auto buffer = std::make_shared<Buffer>();
  buffer->storage = storage;
  buffer->entry = entry;
  buffer->first = first;
  buffer->count = count;
  buffer->hazards.resize(count);
  return buffer;
}

/// What prefetch and create have in common: a buffer, and the command that
/// first writes it.
boa_buffer Engine::Impl::Open(int32_t storage, int64_t entry, int32_t first, int32_t count,
                              bool read, bool zero) {
  if (!error.ok() || entry < 0)
    return 0;
  if (!Expect(HasChunks(storage, entry, first, count), "asks for chunks that no slot can hold"))
    return 0;
  if (IsResident(storage)) {
    BufferRef home = homes[storage][entry];
    if (zero) {
      CommandRef command = New(Command::Kind::zero);
      command->buffers = {home};
      command->first = first;
      command->count = count;
      Writes(command, *home, first, count);
      Issue(command);
    }
    return NewHandle(home);
  }
  if (!read || zero) {
    DropRetained(storage, entry, first, count); // about to be overwritten
  } else if (auto it = retained.find({storage, entry, first, count}); it != retained.end()) {
    boa_buffer handle = it->second;
    retained.erase(it);
    return handle;
  }
  BufferRef buffer = NewBuffer(storage, entry, first, count);
  CommandRef command = New(zero   ? Command::Kind::zero
                           : read ? Command::Kind::read
                                  : Command::Kind::create);
  command->buffers = {buffer};
  command->storage = storage;
  command->entry = entry;
  command->first = first;
  command->count = count;
  Writes(command, *buffer, first, count);
  if (command->kind == Command::Kind::read)
    for (int32_t c = first; c < first + count; ++c) {
      command->extents.push_back(state->Current(storage, entry, c));
      Hazard &hazard = storage_hazards[{storage, entry, c}];
      DependOn(command, hazard.writer);
      hazard.AddReader(command);
    }
  RequestSlot(buffer, command);
  Issue(command);
  return NewHandle(buffer);
}

void Engine::Impl::Release(boa_buffer handle, bool retain) {
  BufferRef buffer = Lookup(handle);
  if (!buffer)
    return;
  if (buffer->home) {
    buffers.erase(handle);
    return;
  }
  if (retain) {
    DropRetained(buffer->storage, buffer->entry, buffer->first, buffer->count);
    retained[{buffer->storage, buffer->entry, buffer->first, buffer->count}] = handle;
    return;
  }
  buffers.erase(handle);
  CommandRef command = New(Command::Kind::release);
  command->buffers = {buffer};
  Writes(command, *buffer, buffer->first, buffer->count);
  Issue(command);
}

/// Forgets retained copies that share a chunk with these: they are stale.
void Engine::Impl::DropRetained(int32_t storage, int64_t entry, int32_t first, int32_t count) {
  std::vector<boa_buffer> stale;
  auto it = retained.lower_bound({storage, entry, 0, 0});
  while (it != retained.end() && std::get<0>(it->first) == storage &&
         std::get<1>(it->first) == entry) {
    int32_t other_first = std::get<2>(it->first), other_count = std::get<3>(it->first);
    if (other_first < first + count && first < other_first + other_count) {
      stale.push_back(it->second);
      it = retained.erase(it);
    } else {
      ++it;
    }
  }
  for (boa_buffer handle : stale)
    Release(handle, false);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// Hands ready transfers to the backend, without the mutex.
void Engine::Impl::Submit(std::unique_lock<std::mutex> &lock) {
  while (!to_submit.empty() && error.ok()) {
    std::vector<CommandRef> batch = std::exchange(to_submit, {});
    transfers += batch.size();
    lock.unlock();
    for (const CommandRef &command : batch)
      Transfer(command);
    lock.lock();
  }
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
  for (int32_t c = first; c < first + count && status.ok() && storage.persistent; ++c) {
    const char *data = buffer.base + (command->first + c - buffer.first) * bytes;
    uint32_t sum = Crc32c(data, bytes);
    int32_t chunk = command->first + c;
    if (write)
      state->SetChecksum(command->storage, command->entry, chunk, sum);
    else if (auto expected = state->Checksum(command->storage, command->entry, chunk);
             expected && *expected != sum)
      status = absl::DataLossError(absl::StrCat(
          "checksum of ", storage.name, " entry ", command->entry, " chunk ", chunk, " in ",
          state->Files()[command->extents[c].file].path, " at offset ",
          command->extents[c].offset,
          " does not match: the data on disk was damaged; restore the state directory from a copy"));
  }
  std::unique_lock lock(mutex);
  if (!status.ok())
    Fail(std::move(status));
  auto &moved = write ? counters.written : counters.read;
  moved[storage.role] += count * bytes;
  if (options.trace) {
    int32_t link = state->Files()[command->extents[first].file].link;
    TraceEvent event{write ? TraceEvent::Row::write : TraceEvent::Row::read, link, storage.name,
                     command->begin_ns, Now(), count * bytes};
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
// Queues
//===----------------------------------------------------------------------===//

void Engine::Impl::Record(TraceEvent::Row row, const Command &command, const std::string &name,
                          int64_t end_ns, int64_t bytes) {
  if (!options.trace)
    return;
  TraceEvent event{row, 0, name, command.begin_ns, end_ns, bytes};
  if (trace.size() < size_t(options.trace_events))
    trace.push_back(std::move(event));
  else
    trace[trace_next++ % trace.size()] = std::move(event);
}

void Engine::Impl::RunKernel(const Command &command) {
  for (size_t i = 0; i < command.buffers.size(); ++i)
    kernel_buffers[i] = command.buffers[i] ? command.buffers[i]->base : nullptr;
  kernels[command.index](kernel_buffers.data(), workspace);
}

void Engine::Impl::ComputeLoop() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (compute.empty() || !error.ok()) {
      if (!error.ok())
        compute.clear();
      changed.wait(lock);
      continue;
    }
    CommandRef command = compute.front();
    if (command->unmet != 0) {
      int64_t begin = Now();
      changed.wait(lock, [&] { return command->unmet == 0 || stopping || !error.ok(); });
      double waited = double(Now() - begin) * 1e-9;
      if (command->cause == Cause::read)
        counters.waited_read += waited;
      else if (command->cause == Cause::write)
        counters.waited_write += waited;
      else if (command->cause == Cause::optimizer)
        counters.waited_optimizer += waited;
      continue;
    }
    compute.pop_front();
    computing = true;
    lock.unlock();
    command->begin_ns = Now();
    RunKernel(*command);
    int64_t end = Now();
    lock.lock();
    computing = false;
    counters.compute_seconds += double(end - command->begin_ns) * 1e-9;
    Record(TraceEvent::Row::compute, *command, program.kernels[command->index].name, end, 0);
    Complete(command);
    Submit(lock);
    changed.notify_all();
  }
}

void Engine::Impl::RunUpdate(const Command &command, double clip) {
  const Group &group = program.groups[command.index];
  const Optimizer &config = program.optimizer;
  UpdateConstants constants;
  constants.adamw = config.kind == "adamw";
  constants.rate = float(LearningRate(config, command.step, program.training.steps));
  constants.beta1 = float(config.beta1);
  constants.beta2 = float(config.beta2);
  constants.eps = float(config.eps);
  constants.momentum = float(config.momentum);
  constants.correction1 = float(1 / (1 - std::pow(config.beta1, double(command.step))));
  constants.correction2 = float(1 / (1 - std::pow(config.beta2, double(command.step))));
  constants.gradient_scale = float(clip);
  // Addresses of this chunk's first element in each buffer.
  auto at = [&](const BufferRef &buffer, int64_t size) -> char * {
    if (!buffer)
      return nullptr;
    return buffer->base + (command.chunk - buffer->first) * group.chunk_elements * size;
  };
  int64_t weight_size = group.weight_type == "bf16" ? 2 : 4;
  char *weights = at(command.buffers[0], weight_size), *low = at(command.buffers[1], 2);
  char *momentum = at(command.buffers[2], 4), *variance = at(command.buffers[3], 4);
  char *gradient = at(command.buffers[4], 4);
  int64_t begin = command.chunk * group.chunk_elements, end = begin + group.chunk_elements;
  for (const DecayRange &part : decay[command.index]) {
    int64_t from = std::max(begin, part.begin), to = std::min(end, part.end);
    if (from >= to)
      continue;
    int64_t skip = from - begin;
    UpdateRange range;
    range.weights = weights + skip * weight_size;
    range.low = low ? reinterpret_cast<int16_t *>(low) + skip : nullptr;
    range.momentum = momentum ? reinterpret_cast<float *>(momentum) + skip : nullptr;
    range.variance = variance ? reinterpret_cast<float *>(variance) + skip : nullptr;
    range.gradient = reinterpret_cast<float *>(gradient) + skip;
    range.count = to - from;
    range.decay = part.decay ? float(config.weight_decay) : 0;
    UpdateElementsParallel(constants, range);
  }
}

/// Over the parameters alone: what lies between them is not part of the norm.
double Engine::Impl::SumGradient(const Command &command) const {
  const Group &group = program.groups[command.index];
  const Buffer &buffer = *command.buffers[0];
  auto *values = reinterpret_cast<const float *>(buffer.base);
  int64_t begin = buffer.first * group.chunk_elements;
  int64_t end = begin + buffer.count * group.chunk_elements;
  double sum = 0;
  for (const Parameter &parameter : group.parameters) {
    int64_t from = std::max(begin, parameter.offset);
    int64_t to = std::min(end, parameter.offset + Elements(parameter));
    if (from < to)
      sum += SumOfSquares(values + (from - begin), to - from);
  }
  return sum;
}

/// With the mutex held.
void Engine::Impl::FinishNorm(int64_t step) {
  double total = 0; // in order of group and entry, whatever the order of arrival
  for (const auto &[key, value] : squares)
    total += value;
  squares.clear();
  double norm = std::sqrt(total), limit = program.optimizer.clip;
  if (!std::isfinite(norm))
    Fail(absl::OutOfRangeError(absl::StrCat(
        "the gradient norm of step ", step,
        " is not finite: lower the learning rate, and go on from the last commit")));
  clip_factors[step] = limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
  while (clip_factors.size() > 2) // this step's and the one before
    clip_factors.erase(clip_factors.begin());
}

void Engine::Impl::OptimizerLoop() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (!error.ok()) {
      optimizer.clear();
      zeros.clear();
    }
    CommandRef command;
    if (!zeros.empty()) {
      command = zeros.front();
      zeros.pop_front();
    } else if (!optimizer.empty() && optimizer.front()->unmet == 0) {
      command = optimizer.front();
      optimizer.pop_front();
    } else {
      changed.wait(lock);
      continue;
    }
    updating = true;
    double clip = 1;
    if (auto it = clip_factors.find(command->step); it != clip_factors.end())
      clip = it->second;
    else if (command->kind == Command::Kind::update && program.optimizer.clip > 0)
      Expect(false, "updates before the gradient norm of that step is known");
    if (!error.ok()) {
      updating = false;
      continue;
    }
    lock.unlock();
    command->begin_ns = Now();
    std::string name = "zero";
    double sum = 0;
    if (command->kind == Command::Kind::zero) {
      Buffer &buffer = *command->buffers[0];
      int64_t bytes = ChunkBytes(buffer.storage);
      std::memset(buffer.base + (command->first - buffer.first) * bytes, 0, command->count * bytes);
    } else if (command->kind == Command::Kind::update) {
      name = program.groups[command->index].name;
      RunUpdate(*command, clip);
    } else if (command->kind == Command::Kind::norm) {
      name = "norm";
      sum = SumGradient(*command);
    }
    int64_t end = Now();
    lock.lock();
    updating = false;
    if (command->kind == Command::Kind::norm) {
      const Buffer &buffer = *command->buffers[0];
      squares[{command->index, buffer.entry, buffer.first}] = sum;
    }
    if (command->kind == Command::Kind::norm_done)
      FinishNorm(command->step);
    counters.optimizer_seconds += double(end - command->begin_ns) * 1e-9;
    Record(TraceEvent::Row::optimizer, *command, name, end, 0);
    Complete(command);
    Submit(lock);
    changed.notify_all();
  }
}

/// Nothing runs and nothing can: the program needs more slots than it has.
bool Engine::Impl::Stuck() const {
  bool kernel = !compute.empty() && compute.front()->unmet == 0;
  bool update = !optimizer.empty() && optimizer.front()->unmet == 0;
  return !incomplete.empty() && transfers == 0 && !computing && !updating && zeros.empty() &&
         to_submit.empty() && !kernel && !update;
}

absl::Status Engine::Impl::Wait(bool transfers_too) {
  std::unique_lock lock(mutex);
  Submit(lock);
  changed.wait(lock, [&] {
    if (error.ok() && Stuck())
      Fail(absl::InternalError("the program waits for a slot that nothing will give back"));
    if (!error.ok())
      return !computing && !updating && transfers == 0;
    bool quiet = compute.empty() && optimizer.empty() && zeros.empty() && !computing && !updating;
    return quiet && (!transfers_too || incomplete.empty());
  });
  return error;
}

//===----------------------------------------------------------------------===//
// What the trainer asks between steps
//===----------------------------------------------------------------------===//

Engine::Engine(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Engine::~Engine() = default;

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(const Program &program,
                                                       const boa_kernel *kernels,
                                                       StateStore *state,
                                                       const EngineOptions &options) {
  auto impl = std::make_unique<Impl>(program, kernels, state, options);
  if (absl::Status status = impl->Start(); !status.ok())
    return status;
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

absl::Status Engine::Run(boa_entry_point entry, int64_t step, int64_t pending) {
  if (absl::Status status = this->status(); !status.ok())
    return status;
  entry(impl.get(), step, pending);
  {
    // Copies retained for a next use that is not part of this entry point.
    std::unique_lock lock(impl->mutex);
    for (auto &[key, handle] : std::exchange(impl->retained, {}))
      impl->Release(handle, false);
  }
  return impl->Wait(/*transfers_too=*/false);
}

absl::Status Engine::Drain() { return impl->Wait(/*transfers_too=*/true); }

absl::Status Engine::status() const {
  std::unique_lock lock(impl->mutex);
  return impl->error;
}

void *Engine::Memory(int32_t storage, int64_t entry) {
  return impl->homes[storage][entry]->base;
}

/// One transfer of aligned memory, waited for.
absl::Status Engine::Impl::Move(bool write, const Extent &extent, void *data, int64_t bytes) {
  std::mutex done_mutex;
  std::condition_variable done_changed;
  bool done = false;
  absl::Status result;
  IoRequest request;
  request.write = write;
  request.file = extent.file;
  request.offset = extent.offset;
  request.bytes = bytes;
  request.data = data;
  request.done = [&](absl::Status status) {
    std::unique_lock lock(done_mutex);
    result = std::move(status);
    done = true;
    done_changed.notify_all();
  };
  io->Submit(std::move(request));
  std::unique_lock lock(done_mutex);
  done_changed.wait(lock, [&] { return done; });
  return result;
}

absl::Status Engine::Impl::Access(int32_t storage, int64_t entry, int32_t chunk, void *data,
                                  bool write) {
  if (absl::Status status = Wait(/*transfers_too=*/true); !status.ok())
    return status;
  int64_t bytes = ChunkBytes(storage);
  if (IsResident(storage)) {
    char *home = homes[storage][entry]->base + chunk * bytes;
    std::memcpy(write ? home : data, write ? data : home, bytes);
    return absl::OkStatus();
  }
  std::unique_ptr<char, decltype(&std::free)> bounce(
      static_cast<char *>(std::aligned_alloc(kBlock, bytes)), &std::free);
  if (write) {
    std::memcpy(bounce.get(), data, bytes);
    Extent extent = state->Next(storage, entry, chunk);
    absl::Status status = Move(true, extent, bounce.get(), bytes);
    if (status.ok() && program.storages[storage].persistent)
      state->SetChecksum(storage, entry, chunk, Crc32c(bounce.get(), bytes));
    return status;
  }
  Extent extent = state->Current(storage, entry, chunk);
  absl::Status status = Move(false, extent, bounce.get(), bytes);
  if (!status.ok())
    return status;
  auto expected = state->Checksum(storage, entry, chunk);
  if (expected && *expected != Crc32c(bounce.get(), bytes))
    return absl::DataLossError(absl::StrCat("checksum of ", program.storages[storage].name,
                                            " entry ", entry, " chunk ", chunk, " in ",
                                            state->Files()[extent.file].path,
                                            " does not match: the data on disk was damaged"));
  std::memcpy(data, bounce.get(), bytes);
  return absl::OkStatus();
}

absl::Status Engine::ReadChunk(int32_t storage, int64_t entry, int32_t chunk, void *data) {
  return impl->Access(storage, entry, chunk, data, /*write=*/false);
}
absl::Status Engine::WriteChunk(int32_t storage, int64_t entry, int32_t chunk, const void *data) {
  return impl->Access(storage, entry, chunk, const_cast<void *>(data), /*write=*/true);
}

absl::Status Engine::Commit(CommitRecord record) {
  if (absl::Status status = Drain(); !status.ok())
    return status;
  const Program &program = impl->program;
  for (size_t s = 0; s < program.storages.size(); ++s) {
    const Storage &storage = program.storages[s];
    if (storage.tier == "ssd" || !storage.persistent)
      continue;
    int64_t bytes = impl->ChunkBytes(s);
    for (int64_t entry = 0; entry < storage.entry_count(); ++entry)
      for (int32_t chunk = 0; chunk < storage.chunks; ++chunk) {
        char *data = impl->homes[s][entry]->base + chunk * bytes;
        Extent extent = impl->state->Next(s, entry, chunk);
        if (absl::Status status = impl->Move(true, extent, data, bytes); !status.ok())
          return status;
        impl->state->SetChecksum(s, entry, chunk, Crc32c(data, bytes));
      }
  }
  record.clip_factors = impl->clip_factors;
  return impl->state->Commit(record);
}

absl::Status Engine::Restore() {
  const Program &program = impl->program;
  impl->clip_factors = impl->state->Committed().clip_factors;
  for (size_t s = 0; s < program.storages.size(); ++s) {
    const Storage &storage = program.storages[s];
    if (storage.tier == "ssd" || !storage.persistent)
      continue;
    int64_t bytes = impl->ChunkBytes(s);
    for (int64_t entry = 0; entry < storage.entry_count(); ++entry)
      for (int32_t chunk = 0; chunk < storage.chunks; ++chunk) {
        char *data = impl->homes[s][entry]->base + chunk * bytes;
        Extent extent = impl->state->Current(s, entry, chunk);
        if (absl::Status status = impl->Move(false, extent, data, bytes); !status.ok())
          return status;
        auto expected = impl->state->Checksum(s, entry, chunk);
        if (expected && *expected != Crc32c(data, bytes))
          return absl::DataLossError(absl::StrCat(
              "checksum of ", storage.name, " entry ", entry, " chunk ", chunk, " in ",
              impl->state->Files()[extent.file].path,
              " does not match: the data on disk was damaged"));
      }
  }
  return absl::OkStatus();
}

Counters Engine::TakeCounters() {
  std::unique_lock lock(impl->mutex);
  return std::exchange(impl->counters, {});
}
std::vector<TraceEvent> Engine::TakeTrace() {
  std::unique_lock lock(impl->mutex);
  // Once full, the oldest event stands where the next would go.
  if (impl->trace_next > 0)
    std::rotate(impl->trace.begin(),
                impl->trace.begin() + impl->trace_next % impl->trace.size(), impl->trace.end());
  impl->trace_next = 0;
  return std::exchange(impl->trace, {});
}
int64_t Engine::ArenaBytes() const { return impl->arena_bytes; }
std::string Engine::DescribeIo() const { return impl->io ? impl->io->Describe() : "memory only"; }

} // namespace boa

//===----------------------------------------------------------------------===//
// The C ABI
//===----------------------------------------------------------------------===//

using boa::Command;
using boa::CommandRef;
using boa::BufferRef;

/// Holds the mutex for one call of the driver, and submits what it made ready.
struct Call {
  explicit Call(boa_context *context)
      : impl(*static_cast<boa::Engine::Impl *>(context)), lock(impl.mutex) {}
  ~Call() {
    impl.Submit(lock);
  }
  boa::Engine::Impl &impl;
  std::unique_lock<std::mutex> lock;
};

extern "C" {

boa_token boa_rt_prefetch(boa_context *context, int32_t storage, int64_t entry, int32_t first,
                          int32_t count, int32_t zero) {
  return Call(context).impl.Open(storage, entry, first, count, /*read=*/true, zero != 0);
}

boa_buffer boa_rt_await(boa_context *, boa_token token) {
  // A prefetch's token is its buffer's handle: waiting is in the graph.
  return token;
}

boa_buffer boa_rt_create(boa_context *context, int32_t storage, int64_t entry, int32_t first,
                         int32_t count) {
  return Call(context).impl.Open(storage, entry, first, count, /*read=*/false, /*zero=*/false);
}

boa_token boa_rt_offload(boa_context *context, boa_buffer handle, int32_t storage, int64_t entry,
                         int32_t first, int32_t count) {
  Call call(context);
  boa::Engine::Impl &impl = call.impl;
  BufferRef buffer = impl.error.ok() && handle ? impl.Lookup(handle) : nullptr;
  if (!buffer || buffer->home)
    return 0;
  if (!impl.Expect(storage == buffer->storage && impl.HasChunks(storage, entry, first, count) &&
                       boa::Holds(*buffer, first, count),
                   "offloads chunks that the buffer does not hold"))
    return 0;
  impl.DropRetained(storage, entry, first, count);
  CommandRef command = impl.New(Command::Kind::write);
  command->buffers = {buffer};
  command->storage = storage;
  command->entry = entry;
  command->first = first;
  command->count = count;
  impl.Reads(command, *buffer, first, count);
  for (int32_t c = first; c < first + count; ++c) {
    command->extents.push_back(impl.state->Next(storage, entry, c));
    boa::Hazard &hazard = impl.storage_hazards[{storage, entry, c}];
    impl.DependOn(command, hazard.writer);
    for (const CommandRef &reader : hazard.readers)
      impl.DependOn(command, reader);
    hazard.readers.clear();
    hazard.writer = command;
  }
  impl.Issue(command);
  return 0;
}

void boa_rt_release(boa_context *context, boa_buffer handle, int32_t retain) {
  Call call(context);
  if (call.impl.error.ok() && handle)
    call.impl.Release(handle, retain != 0);
}

void boa_rt_launch(boa_context *context, int32_t kernel, int32_t count, const boa_buffer *handles) {
  Call call(context);
  boa::Engine::Impl &impl = call.impl;
  const auto &kernels = impl.program.kernels;
  if (!impl.error.ok() ||
      !impl.Expect(kernel >= 0 && kernel < int32_t(kernels.size()) &&
                       count == int32_t(kernels[kernel].buffers.size()),
                   "launches a kernel that the descriptor does not have"))
    return;
  CommandRef command = impl.New(Command::Kind::kernel);
  command->index = kernel;
  for (int32_t i = 0; i < count; ++i) {
    BufferRef buffer = handles[i] ? impl.Lookup(handles[i]) : nullptr;
    if (!impl.error.ok())
      return;
    // A null buffer reaches the kernel as null.
    if (buffer && kernels[kernel].buffers[i].write)
      impl.Writes(command, *buffer, buffer->first, buffer->count);
    else if (buffer)
      impl.Reads(command, *buffer, buffer->first, buffer->count);
    command->buffers.push_back(std::move(buffer));
  }
  impl.Issue(command);
}

void boa_rt_update(boa_context *context, int32_t group, int32_t chunk, int64_t step,
                   boa_buffer weights, boa_buffer low, boa_buffer momentum, boa_buffer variance,
                   boa_buffer gradient) {
  Call call(context);
  boa::Engine::Impl &impl = call.impl;
  if (!impl.error.ok() || step == 0)
    return;
  const auto &groups = impl.program.groups;
  if (!impl.Expect(group >= 0 && group < int32_t(groups.size()) && weights && gradient,
                   "updates without weights or a gradient"))
    return;
  CommandRef command = impl.New(Command::Kind::update);
  command->index = group;
  command->chunk = chunk;
  command->step = step;
  for (boa_buffer handle : {weights, low, momentum, variance, gradient}) {
    BufferRef buffer = handle ? impl.Lookup(handle) : nullptr;
    if (buffer && impl.Expect(boa::Holds(*buffer, chunk, 1),
                              "updates a chunk that a buffer does not hold")) {
      if (handle == gradient)
        impl.Reads(command, *buffer, chunk, 1);
      else
        impl.Writes(command, *buffer, chunk, 1);
    }
    command->buffers.push_back(std::move(buffer));
  }
  if (impl.error.ok())
    impl.Issue(command);
}

void boa_rt_norm(boa_context *context, int32_t group, boa_buffer gradient) {
  Call call(context);
  boa::Engine::Impl &impl = call.impl;
  BufferRef buffer = impl.error.ok() ? impl.Lookup(gradient) : nullptr;
  if (!buffer || !impl.Expect(group >= 0 && group < int32_t(impl.program.groups.size()),
                              "takes the norm of a group that it does not have"))
    return;
  CommandRef command = impl.New(Command::Kind::norm);
  command->index = group;
  impl.Reads(command, *buffer, buffer->first, buffer->count);
  command->buffers = {std::move(buffer)};
  impl.Issue(command);
}

void boa_rt_norm_done(boa_context *context, int64_t step) {
  Call call(context);
  if (!call.impl.error.ok())
    return;
  CommandRef command = call.impl.New(Command::Kind::norm_done);
  command->step = step;
  call.impl.Issue(command);
}

} // extern "C"
