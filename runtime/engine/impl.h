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
// Threads: the mutex guards all members from `graph` on, but not the device. Transfers
// are submitted without it, because a device may complete them inside of Submit.
// Errors: the graph keeps the first one.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_IMPL_H
#define BOA_RUNTIME_ENGINE_IMPL_H

#include "runtime/engine/engine.h"
#include "runtime/engine/graph.h"

#include <condition_variable>
#include <memory>
#include <mutex>
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

  mutable std::mutex mutex;
  std::condition_variable changed;
  Graph graph;
  int64_t wakes = 0; // calls of the device
  int64_t peak_run_ahead = 0;
  bool cancelled = false;             // Device::Cancel was called
  int64_t in_device = 0;              // threads in a call of the device, without the mutex
  bool driver_waits = false;          // in the middle of a run, for commands to end
  boa_entry_point previous = nullptr; // the entry point of the last run
  std::vector<TraceEvent> trace;
  size_t trace_next = 0;
  std::deque<MemoryEvent> memory_trace;
  std::unique_ptr<Device> device; // last: its calls use the rest until it is gone

  absl::Status Start();

  void Pump(std::unique_lock<std::mutex> &lock);
  void HoldUp(std::unique_lock<std::mutex> &lock);
  template <typename Condition> void Await(std::unique_lock<std::mutex> &lock, Condition over);
  template <typename Condition> absl::Status WaitFor(Condition condition);
  absl::Status Drain();

  void Done(const Work &, int64_t begin_ns, int64_t end_ns, absl::Status) override;
  void Moved(const Work &, int32_t path, int64_t bytes, int64_t begin_ns, int64_t end_ns) override;
  void Wake() override;
  void Record(const Work &, int64_t begin_ns, int64_t end_ns);
  void Record(const TraceEvent &);

  void Exchange(bool write, int32_t storage, int64_t entry, int32_t first, int32_t count,
                void *data);
  bool IsAbsent(int32_t storage) const;
  absl::Status MoveResident(bool write);
  absl::Status MoveHome(int32_t storage, int64_t entry, int32_t first, int32_t count, bool write);
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_IMPL_H
