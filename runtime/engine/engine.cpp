//===- engine.cpp - The graph on a device ---------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/impl.h"

#include "runtime/support/interrupt.h"

#include "absl/strings/str_cat.h"
#include "runtime/abi/abi.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace boa {

namespace {

/// The extents of a state.
class StateExtents : public ChunkExtents {
public:
  explicit StateExtents(StateStore &state) : state(state) {}
  Extent Current(int32_t storage, int64_t entry, int32_t chunk) override {
    return state.Current(storage, entry, chunk);
  }
  Extent Next(int32_t storage, int64_t entry, int32_t chunk) override {
    return state.Next(storage, entry, chunk);
  }
  absl::Status Why() const override { return state.status(); }

private:
  StateStore &state;
};

/// Checks that chunks are whole blocks, that each has a home, and that the memory, without the
/// gaps between slots, is not more than planned.
absl::Status CheckProgram(const Program &program, bool has_extents) {
  int64_t needed = 0;
  for (const Kernel &kernel : program.kernels)
    needed = std::max(needed, kernel.workspace);
  needed += program.constants;
  for (const Storage &storage : program.storages) {
    if (storage.chunks < 1 || storage.bytes < 0 ||
        storage.bytes % (BOA_BLOCK_BYTES * storage.chunks) != 0)
      return absl::InvalidArgumentError(absl::StrCat(
          storage.name, " has entries of ", storage.bytes, " bytes in ", storage.chunks,
          " chunks: expected a multiple of ", BOA_BLOCK_BYTES, " in each"));
    if (absl::Status status = storage.CheckHomes(); !status.ok())
      return absl::InvalidArgumentError(absl::StrCat(storage.name, ": ", status.message()));
    int64_t chunks = storage.ChunksOn(Home::device) + storage.ChunksOn(Home::host);
    if (storage.LivesOn(Home::ssd) && !has_extents)
      return absl::InvalidArgumentError(
          absl::StrCat(storage.name, " lives on ssd but there is no state directory"));
    needed += chunks * storage.chunk_bytes();
  }
  for (int32_t space : {BOA_DEVICE, BOA_HOST})
    for (const int64_t bytes : SlotBytes(program, space))
      needed += bytes;
  int64_t planned = program.arena_device + program.arena_host;
  if (planned > 0 && needed > planned)
    return absl::InternalError(absl::StrCat("the program needs ", needed,
                                            " bytes of memory but was planned for ", planned));
  return absl::OkStatus();
}

} // namespace

int64_t RunAheadBytes(const Program &program) {
  // A chunk's commands in a layer: its weight, three tensors of the optimizer and its
  // gradient are opened, brought by way of the host, used, written back and released.
  constexpr int64_t kLeast = 1 << 20, kChunk = 16 << 10;
  int64_t widest = 0;
  for (const Storage &storage : program.storages)
    widest = std::max<int64_t>(widest, storage.chunks);
  return std::max(kLeast, kChunk * (widest + program.MicroBatches()));
}

//===----------------------------------------------------------------------===//
// From the graph to the device, and back
//===----------------------------------------------------------------------===//

absl::Status Engine::Impl::Start() {
  int64_t spaces[2]; // bytes
  Location workspace;
  {
    MutexLock lock(mutex);
    if (options.trace_memory)
      graph.Watch([this](int32_t storage, int32_t space, int64_t bytes)
                      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
                        if (memory_trace.size() == kMemoryEvents)
                          memory_trace.pop_front();
                        memory_trace.push_back({graph.Now(), storage, space, bytes});
                      });
    spaces[0] = graph.Bytes(BOA_DEVICE);
    spaces[1] = graph.Bytes(BOA_HOST);
    workspace = graph.Workspace();
  }
  return device->Start(spaces, workspace, this);
}

/// Work under way cannot be stopped, and uses memory and kernels until it is over. The device
/// also stays while a thread is in a call of it. Such a call may return after its work is over.
Engine::Impl::~Impl() {
  MutexLock lock(mutex);
  graph.Fail(absl::CancelledError("the engine is gone"));
  Pump();
  Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return graph.UnderWay() == 0 && in_device == 0;
  });
}

/// Gives the device the work that may begin. Queues need their order, so their work is submitted
/// under the mutex. Transfers may complete inside of Submit, so they are submitted without it.
void Engine::Impl::Pump() {
  std::vector<Work *> ready, transfers;
  graph.TakeReady(ready, driver_waits);
  for (Work *work : ready) {
    if (work->IsTransfer())
      transfers.push_back(work);
    else
      device->Submit(*work);
  }
  const bool cancel = !graph.status().ok() && !std::exchange(cancelled, !graph.status().ok());
  if (transfers.empty() && !cancel)
    return;
  ++in_device;
  {
    MutexUnlock unlocked(mutex);
    for (Work *work : transfers)
      device->Submit(*work);
    if (cancel)
      device->Cancel();
  }
  --in_device;
  changed.NotifyAll();
}

void Engine::Impl::Done(const Work &work, int64_t begin_ns, int64_t end_ns, absl::Status status) {
  MutexLock lock(mutex);
  ++wakes;
  if (!status.ok())
    graph.Fail(std::move(status));
  if (!work.IsTransfer())
    Record(work, begin_ns, end_ns);
  graph.Complete(work, begin_ns, end_ns);
  Pump();
  changed.NotifyAll();
}

void Engine::Impl::Moved(const Work &work, int32_t path, int64_t bytes, int64_t begin_ns,
                         int64_t end_ns) {
  MutexLock lock(mutex);
  if (work.run == kNoRun)
    return;
  const bool write = work.kind == Work::Kind::write;
  const Storage &storage = program.storages[work.storage];
  Counters &counters = graph.CountersOf(work.run);
  (write ? counters.moved.written : counters.moved.read)[storage.role] += bytes;
  if (write)
    counters.written_to[path] += bytes;
  if (options.trace)
    Record({write ? TraceEvent::Row::write : TraceEvent::Row::read, path, storage.name, begin_ns,
            end_ns, bytes});
}

void Engine::Impl::Wake() {
  MutexLock lock(mutex);
  ++wakes;
  changed.NotifyAll();
}

bool Engine::Impl::IsLeftOut(const Work &work) const {
  return work.run >= ends_early && Interrupted();
}

void Engine::Impl::Record(const Work &work, int64_t begin_ns, int64_t end_ns) {
  using Kind = Work::Kind;
  if (!options.trace || begin_ns == end_ns)
    return;
  TraceEvent event{TraceEvent::Row::optimizer, 0, "copy", begin_ns, end_ns, 0};
  if (work.kind == Kind::kernel) {
    event.row = TraceEvent::Row::compute;
    event.name = program.kernels[work.index].name;
  } else if (work.kind == Kind::update) {
    event.name = program.groups[work.index].name;
  } else if (work.kind == Kind::norm || work.kind == Kind::norm_done) {
    event.name = "norm";
  } else {
    if (IsSeparate(program.machine) && (work.ToDevice() || work.ToHost()))
      event.row = work.ToDevice() ? TraceEvent::Row::to_device : TraceEvent::Row::to_host;
    if (work.kind == Kind::zero) {
      event.name = "zero";
    } else if (work.kind == Kind::copy && work.buffers[0].space != work.buffers[1].space) {
      event.name = program.storages[work.storage].name;
      event.bytes = work.bytes;
    }
  }
  Record(event);
}

void Engine::Impl::Record(const TraceEvent &event) {
  if (trace.empty()) // growth by doubling would exceed the announced size
    trace.reserve(size_t(options.trace_events));
  if (trace.size() < size_t(options.trace_events))
    trace.push_back(event);
  else
    trace[trace_next++ % trace.size()] = event;
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

/// Fails after a signal, if that is wanted.
void Engine::Impl::LookForSignal() {
  if (!ends_on_signal || !graph.status().ok() ||
      !InterruptedFor(*ends_on_signal, ends_on_signal_since))
    return;
  graph.Fail(Interruption());
  Pump();
}

void Engine::Impl::Await(Condition over) {
  constexpr std::chrono::milliseconds kLook(100); // how often it looks for a signal
  for (LookForSignal(); !over(); LookForSignal()) {
    if (!device->HasThreads()) {
      const int64_t seen = wakes;
      bool advanced = false;
      {
        MutexUnlock unlocked(mutex);
        advanced = device->Advance();
      }
      // If not, a part of the device has threads (an I/O backend).
      if (advanced || wakes != seen)
        continue;
    }
    if (ends_on_signal)
      changed.WaitUntil(mutex, std::chrono::steady_clock::now() + kLook);
    else
      changed.Wait(mutex);
  }
}

/// The driver waits while the commands that are left take too much memory, unless no work can
/// go on without it. A quarter remains for the commands of one call.
void Engine::Impl::HoldUp() {
  peak_run_ahead = std::max(peak_run_ahead, graph.IncompleteBytes());
  if (graph.IncompleteBytes() <= run_ahead / 4 * 3 || !graph.status().ok())
    return;
  driver_waits = true;
  Pump();
  // Down to half, so that it does not stop again after every command.
  const int64_t few = run_ahead / 2;
  Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return graph.IncompleteBytes() <= few || graph.UnderWay() == 0 || !graph.status().ok();
  });
  driver_waits = false;
}

/// Waits until the condition holds, or, after an error, until no work is under way.
absl::Status Engine::Impl::WaitFor(Condition condition) {
  MutexLock lock(mutex);
  Pump();
  Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (graph.status().ok() && graph.IsStuck())
      graph.Fail(absl::InternalError("the program waits for a slot that nothing will give back"));
    return graph.status().ok() ? condition() : graph.UnderWay() == 0;
  });
  return graph.status();
}

absl::Status Engine::Impl::Drain() {
  return WaitFor([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return graph.Incomplete() == 0; });
}

absl::Status Engine::Wait(int64_t run, double share) {
  return impl->WaitFor(
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(impl->mutex) { return impl->graph.IsDone(run, share); });
}

//===----------------------------------------------------------------------===//
// Calls of the trainer
//===----------------------------------------------------------------------===//

Engine::Engine(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Engine::~Engine() = default;

absl::StatusOr<std::unique_ptr<Engine>> Engine::Make(const Program &program,
                                                     std::unique_ptr<Device> device,
                                                     ChunkExtents *extents, StateStore *state,
                                                     const EngineOptions &options) {
  if (absl::Status status = CheckProgram(program, extents || state); !status.ok())
    return status;
  auto owned = state ? std::make_unique<StateExtents>(*state) : nullptr;
  auto impl =
      std::make_unique<Impl>(program, std::move(device), std::move(owned), extents, state, options);
  if (absl::Status status = impl->Start(); !status.ok())
    return status;
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(const Program &program,
                                                       const Kernels &kernels, StateStore *state,
                                                       const EngineOptions &options) {
  try {
    auto device = TraitsOf(program.machine.device).has_image
                      ? CreateCudaDevice(program, kernels, state, options.io)
                      : CreateCpuDevice(program, kernels, state, {options.io, options.scheduler});
    return Make(program, std::move(device), nullptr, state, options);
  } catch (const std::bad_alloc &) {
    return absl::ResourceExhaustedError(
        "cannot allocate the engine's memory outside of its arena: give the process more memory "
        "or the program less");
  }
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(const Program &program,
                                                       std::unique_ptr<Device> device,
                                                       ChunkExtents *extents,
                                                       const EngineOptions &options) {
  return Make(program, std::move(device), extents, nullptr, options);
}

int64_t Engine::Enqueue(boa_entry_point entry, int64_t step, int64_t pending,
                        const std::vector<Port> &in, const std::vector<Port> &out) {
  MutexLock lock(impl->mutex);
  Graph &graph = impl->graph;
  const int64_t run = graph.BeginRun(impl->device->Now());
  if (!graph.status().ok())
    return run; // Wait returns the error
  if (std::exchange(impl->previous, entry) != entry)
    graph.DropRetained();
  for (const Port &port : in)
    graph.CopyPort(/*in=*/true, port.storage, port.entry, port.data, port.bytes);
  {
    MutexUnlock unlocked(impl->mutex);
    entry(impl.get(), step, pending);
  }
  for (const Port &port : out)
    graph.CopyPort(/*in=*/false, port.storage, port.entry, port.data, port.bytes);
  graph.EndRun();
  impl->Pump();
  return run;
}

absl::Status Engine::Drain() { return impl->Drain(); }

void Engine::SetEndsOnSignal(std::optional<std::chrono::seconds> after) {
  MutexLock lock(impl->mutex);
  impl->ends_on_signal = after;
  impl->ends_on_signal_since = std::chrono::steady_clock::now();
}

void Engine::SetRunsEndEarly(bool they_do) {
  MutexLock lock(impl->mutex);
  impl->ends_early = they_do ? impl->graph.NewestRun() + 1 : std::numeric_limits<int64_t>::max();
}

absl::Status Engine::status() const {
  MutexLock lock(impl->mutex);
  return impl->graph.status();
}

void Engine::ReadChunks(int32_t storage, int64_t entry, int32_t first, int32_t count, void *data) {
  impl->Exchange(/*write=*/false, storage, entry, first, count, data);
}
void Engine::WriteChunks(int32_t storage, int64_t entry, int32_t first, int32_t count,
                         const void *data) {
  impl->Exchange(/*write=*/true, storage, entry, first, count, const_cast<void *>(data));
}

absl::Status Engine::Commit(CommitRecord record) {
  if (absl::Status status = Drain(); !status.ok())
    return status;
  // The manifest may name only chunks that are written.
  if (absl::Status status = impl->MoveResident(/*write=*/true); !status.ok())
    return status;
  return impl->state->Commit(record);
}

absl::Status Engine::Restore() { return impl->MoveResident(/*write=*/false); }

Counters Engine::TakeCounters(int64_t run) {
  MutexLock lock(impl->mutex);
  return impl->graph.TakeCounters(run);
}
std::vector<TraceEvent> Engine::TakeTrace() {
  MutexLock lock(impl->mutex);
  // In a full trace, the next event would replace the oldest.
  if (impl->trace_next > 0)
    std::rotate(impl->trace.begin(), impl->trace.begin() + impl->trace_next % impl->trace.size(),
                impl->trace.end());
  impl->trace_next = 0;
  return std::exchange(impl->trace, {});
}
std::deque<MemoryEvent> Engine::TakeMemoryTrace() {
  MutexLock lock(impl->mutex);
  return std::exchange(impl->memory_trace, {});
}
std::map<int64_t, double> Engine::TakeNorms() { return impl->device->TakeNorms(); }
std::string Engine::TakeRemark() { return impl->device->TakeRemark(); }
int64_t Engine::ArenaBytes(int32_t space) const {
  MutexLock lock(impl->mutex);
  return impl->graph.Bytes(space);
}
int64_t Engine::PeakBytes(int32_t space) const {
  MutexLock lock(impl->mutex);
  return impl->graph.PeakBytes(space);
}
int64_t Engine::PeakRunAheadBytes() const {
  MutexLock lock(impl->mutex);
  return impl->peak_run_ahead;
}
std::string Engine::DescribeIo() const { return impl->device->Describe(); }
std::map<std::string, std::string> Engine::Environment() const {
  return impl->device->Environment();
}
int64_t Engine::EndOf(int64_t run) const {
  MutexLock lock(impl->mutex);
  return impl->graph.EndOf(run);
}
int64_t Engine::Now() const { return impl->device->Now(); }

} // namespace boa
