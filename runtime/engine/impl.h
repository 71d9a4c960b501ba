//===- engine/impl.h - The graph on a device --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What engine.cpp and abi.cpp share; nobody else includes it.
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
       ChunkExtents *places, StateStore *state, const EngineOptions &options)
      : program(program), state(state), options(options),
        run_ahead(options.run_ahead ? options.run_ahead : RunAheadBytes(program)),
        places(std::move(owned)),
        graph(program, this->places ? this->places.get() : places, device->OrdersKernels()),
        device(std::move(device)) {}
  ~Impl() override;

  const Program &program;
  StateStore *const state;
  const EngineOptions options;
  const int64_t run_ahead;
  const std::unique_ptr<ChunkExtents> places; // where the engine was given a state

  mutable std::mutex mutex;
  std::condition_variable changed;
  Graph graph;       // under the mutex, with all that follows but the device
  int64_t wakes = 0; // by the device
  int64_t peak_run_ahead = 0;
  bool cancelled = false;             // the device was told of an error
  int64_t in_device = 0;              // threads in a call of the device, without the mutex
  bool driver_waits = false;          // for commands to be over, in the middle of a run
  boa_entry_point previous = nullptr; // that ran last
  std::vector<TraceEvent> trace;
  size_t trace_next = 0;
  std::unique_ptr<Device> device; // last: it may tell the rest until it is gone

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
  absl::Status MoveResident(bool write);
  absl::Status MoveHome(int32_t storage, int64_t entry, int32_t first, int32_t count, bool write);
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_IMPL_H
