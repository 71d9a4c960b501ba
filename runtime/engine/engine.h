//===- engine.h - Runs the commands of a compiled program -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The boa_context behind the C ABI: a graph (engine/graph.h) that orders commands, and a
// device (device/device.h) that runs them. The driver is the thread that calls Enqueue;
// it adds commands. The thread that makes a command ready also gives it to the device:
// the driver, or the device's thread that ended the command before.
//
// A run is one call of an entry point. The next may be enqueued before the last has
// ended, so that no gap is between them. The driver waits if the commands that are left
// take too much memory.
//
// Ownership: the engine owns the graph and the device. Program and state must outlive
// it. Memory of a Port, or of ReadChunks and WriteChunks, is the engine's until the call
// that waits for it returns.
// Threads: one driver calls; completions come on the device's threads. One mutex guards
// the graph. Nobody computes or moves data under it.
// Errors: the first error stays. All later calls return it, and the device gets no more
// work.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_ENGINE_H
#define BOA_RUNTIME_ENGINE_ENGINE_H

#include "runtime/abi/abi.h"
#include "runtime/abi/program.h"
#include "runtime/device/device.h"
#include "runtime/device/work.h"
#include "runtime/state/state.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// A trace keeps only its newest events. The plan does not count their memory.
inline constexpr int64_t kTraceEvents = 1 << 20;

struct EngineOptions {
  bool trace = false;
  int64_t trace_events = kTraceEvents;
  bool trace_memory = false;
  IoOptions io;
  Scheduler *scheduler = nullptr; // outlives the engine; null: threads
  /// Most memory of the commands that are left. At this limit the driver waits. 0: RunAheadBytes.
  int64_t run_ahead = 0;
};

/// Memory for the commands of about two of the widest layers, which keep all queues busy. A
/// program states this number beside its arena.
int64_t RunAheadBytes(const Program &);

/// Memory of the caller, to copy to or from the beginning of an entry: tokens in, losses out.
/// The storage lives in memory.
struct Port {
  int32_t storage = 0;
  int64_t entry = 0;
  void *data = nullptr;
  int64_t bytes = 0;
};

/// One command that ran, for the trace.
struct TraceEvent {
  enum class Row { compute, optimizer, to_device, to_host, read, write };
  Row row;
  int32_t link = 0;       // ssd path, for transfers
  absl::string_view name; // of a kernel, storage or group of the program, which owns it
  int64_t begin_ns = 0, end_ns = 0, bytes = 0;
};

/// From this moment on, a storage's slots with a buffer take so many bytes of a space.
struct MemoryEvent {
  int64_t at_ns = 0;
  int32_t storage = 0, space = 0;
  int64_t bytes = 0;
};
inline constexpr size_t kMemoryEvents = 1 << 20; // the newest

class ChunkExtents;

class Engine {
public:
  /// Makes the device of the program's machine: a CPU with one memory or two, or a GPU. `state`
  /// may be null if no storage lives on SSD and nobody commits. Allocates all memory for data.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const Program &, const Kernels &,
                                                        StateStore *state, const EngineOptions &);
  ~Engine();

  /// The same, on any device. `extents` may be null if no storage lives on SSD.
  static absl::StatusOr<std::unique_ptr<Engine>>
  Create(const Program &, std::unique_ptr<Device>, ChunkExtents *extents, const EngineOptions &);

  /// Enqueues the commands of one entry point behind those of earlier runs, and returns the run's
  /// number. Copies `in` after earlier runs have used the entries, before this one does. Copies
  /// `out` after this run has written it. The memory of both must stay until the run is done.
  int64_t Enqueue(boa_entry_point, int64_t step, int64_t pending, const std::vector<Port> &in = {},
                  const std::vector<Port> &out = {});

  /// Waits until at most `share` of the run's kernels is left. With 0: until its kernels, updates
  /// and copies are over, and those of all runs before it. Transfers to SSD may still run.
  absl::Status Wait(int64_t run, double share = 0);

  /// Enqueues one entry point and waits for it.
  absl::Status Run(boa_entry_point entry, int64_t step, int64_t pending,
                   const std::vector<Port> &in = {}, const std::vector<Port> &out = {}) {
    return Wait(Enqueue(entry, step, pending, in, out));
  }

  /// Waits for all commands, including transfers.
  absl::Status Drain();

  /// From now on, a signal (support/interrupt.h) is an error after this time, whatever the engine
  /// waits for. No new work begins then, and Wait returns when the work under way is over. This is
  /// for work that is useless until it is finished: first parameters, a restored commit, an export.
  /// With nullopt, as at first, signals are left to the caller.
  void SetEndsOnSignal(std::optional<std::chrono::seconds> after);
  /// Whether a signal (support/interrupt.h) ends the runs that are enqueued from now on. The engine
  /// then leaves out their kernels and transfers that have not begun, without an error. The results
  /// mean nothing. This is for runs that leave nothing behind, like an evaluation.
  void SetRunsEndEarly(bool);
  absl::Status status() const;

  /// Begins to copy chunks of one entry from their homes to `data`, or back, behind all enqueued
  /// commands. Drain waits for the end; until then `data` is the engine's. It holds `count` whole
  /// chunks and is aligned to BOA_BLOCK_BYTES.
  void ReadChunks(int32_t storage, int64_t entry, int32_t first, int32_t count, void *data);
  void WriteChunks(int32_t storage, int64_t entry, int32_t first, int32_t count, const void *data);

  /// Drains, writes persistent storages that live in memory to their extents (frozen ones the
  /// first time), and commits. No
  /// update may be pending: a state knows nothing of the schedule.
  absl::Status Commit(CommitRecord);
  /// After StateStore::Open: reads the persistent storages that live in memory, but for those that
  /// the trainer fills (StateStore::Stands).
  absl::Status Restore();

  /// Bytes that live on SSD, by role, and that no transfer reads because they are absent: nobody
  /// has written these states of the optimizer yet. The engine must be drained.
  std::map<std::string, int64_t> AbsentBytes() const;

  /// Takes out the counters of the runs up to this one. Moves that end later are in the
  /// result of the next call.
  Counters TakeCounters(int64_t run = std::numeric_limits<int64_t>::max());
  std::vector<TraceEvent> TakeTrace();
  /// With EngineOptions::trace_memory, in order of time.
  std::deque<MemoryEvent> TakeMemoryTrace();
  /// Takes out gradient norms by step, before clipping, if the program needs them
  /// (NeedsNorm). The optimizer left out a step whose norm is not finite. A norm is known
  /// when the step's run is done.
  std::map<int64_t, double> TakeNorms();
  /// Takes out the device's remark about a feature that it lost since the last call; often empty.
  std::string TakeRemark();
  /// The size of the arenas. Unified memory belongs to the device alone.
  int64_t ArenaBytes() const { return ArenaBytes(BOA_DEVICE) + ArenaBytes(BOA_HOST); }
  int64_t ArenaBytes(int32_t space) const;
  /// The largest part of them in use: see Slots::PeakBytes.
  int64_t PeakBytes() const { return PeakBytes(BOA_DEVICE) + PeakBytes(BOA_HOST); }
  int64_t PeakBytes(int32_t space) const;
  /// The most memory that commands took before they were over; at most EngineOptions::run_ahead.
  int64_t PeakRunAheadBytes() const;
  std::string DescribeIo() const; // the backend, and features that it lacks
  /// The versions that the bits of results depend on, by name.
  std::map<std::string, std::string> Environment() const;
  int64_t Now() const; // nanoseconds of the device's clock
  /// The end of a run that is done. Wait may have returned later.
  int64_t EndOf(int64_t run) const;

  struct Impl; // the boa_context

private:
  static absl::StatusOr<std::unique_ptr<Engine>> Make(const Program &, std::unique_ptr<Device>,
                                                      ChunkExtents *, StateStore *,
                                                      const EngineOptions &);
  explicit Engine(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl;
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_ENGINE_H
