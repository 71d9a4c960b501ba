//===- engine/impl.h - The graph on a device --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The implementation of Engine, for engine.cpp, engine_moves.cpp and abi.cpp alone.
//
// Ownership: see engine.h.
// Threads: one mutex guards the graph, but not the device. Transfers are submitted
// without it, because a device may complete them inside of Submit.
// Errors: the graph keeps the first one.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_IMPL_H
#define BOA_RUNTIME_ENGINE_IMPL_H

#include "runtime/engine/engine.h"
#include "runtime/engine/graph.h"
#include "runtime/support/mutex.h"

#include "absl/functional/function_ref.h"

#include <atomic>
#include <limits>
#include <memory>
#include <vector>

struct boa_context {};

namespace boa {

struct Engine::Impl : boa_context, DeviceListener {
  Impl(const Program &program, std::unique_ptr<Device> device, std::unique_ptr<ChunkExtents> owned,
       ChunkExtents *extents, StateStore *state, const EngineOptions &options)
      : program(program), state(state), options(options),
        run_ahead(options.run_ahead ? options.run_ahead : RunAheadBytes(program)),
        extents(std::move(owned)),
        graph(program, this->extents ? this->extents.get() : extents, device->OrdersKernels()),
        device(std::move(device)) {}
  ~Impl() override;

  const Program &program;
  StateStore *const state;
  const EngineOptions options;
  const int64_t run_ahead;
  const std::unique_ptr<ChunkExtents> extents; // of the state, if there is one

  mutable Mutex mutex;
  CondVar changed;
  Graph graph ABSL_GUARDED_BY(mutex);
  int64_t wakes ABSL_GUARDED_BY(mutex) = 0; // calls of the device
  int64_t peak_run_ahead ABSL_GUARDED_BY(mutex) = 0;
  bool cancelled ABSL_GUARDED_BY(mutex) = false; // Device::Cancel was called
  int64_t in_device ABSL_GUARDED_BY(mutex) = 0;  // threads in a call of it, without the mutex
  std::optional<std::chrono::seconds> ends_on_signal ABSL_GUARDED_BY(mutex);
  std::chrono::steady_clock::time_point ends_on_signal_since ABSL_GUARDED_BY(mutex);
  std::atomic<int64_t> ends_early{std::numeric_limits<int64_t>::max()}; // from this run on
  bool driver_waits ABSL_GUARDED_BY(mutex) = false; // in the middle of a run, for commands to end
  boa_entry_point previous ABSL_GUARDED_BY(mutex) = nullptr; // the entry point of the last run
  std::vector<TraceEvent> trace ABSL_GUARDED_BY(mutex);
  size_t trace_next ABSL_GUARDED_BY(mutex) = 0;
  std::deque<MemoryEvent> memory_trace ABSL_GUARDED_BY(mutex);
  const std::unique_ptr<Device> device; // last: its calls use the rest until it is gone

  absl::Status Start();

  // Conditions run under the mutex.
  using Condition = absl::FunctionRef<bool()>;
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void HoldUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void LookForSignal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Await(Condition over) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status WaitFor(Condition condition) ABSL_LOCKS_EXCLUDED(mutex);
  absl::Status Drain() ABSL_LOCKS_EXCLUDED(mutex);

  void Done(const Work &, int64_t begin_ns, int64_t end_ns, absl::Status) override;
  void Moved(const Work &, int32_t path, int64_t bytes, int64_t begin_ns, int64_t end_ns) override;
  void Wake() override;
  bool IsLeftOut(const Work &) const override;
  void Record(const Work &, int64_t begin_ns, int64_t end_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Record(const TraceEvent &) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  void Exchange(bool write, int32_t storage, int64_t entry, int32_t first, int32_t count,
                void *data);
  bool IsAbsent(int32_t storage) const ABSL_LOCKS_EXCLUDED(mutex);
  Location HomeOf(int32_t storage, int64_t entry, int32_t chunk, int32_t &end) const
      ABSL_LOCKS_EXCLUDED(mutex);
  absl::Status MoveResident(bool write);
  absl::Status MoveHome(int32_t storage, int64_t entry, int32_t first, int32_t count, bool write);
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_IMPL_H
