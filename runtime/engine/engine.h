//===- engine.h - Runs a compiled program's commands -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The boa_context behind the C ABI: the graph (engine/graph.h), which orders, on a
// device (device/device.h), which carries out. The driver (the thread that calls
// Enqueue) says what there is to do; what may begin is given to the device by whoever
// made it so. One mutex guards the graph; no work is done under it.
//
// A run is one call of an entry point. The next may be enqueued before the last
// has ended: then there is no gap between them. The driver is held up where commands
// wait that take as much memory as they may.
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

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace boa {

/// A trace keeps the newest of its events. Their memory is beside the plan's.
inline constexpr int64_t kTraceEvents = 1 << 20;

struct EngineOptions {
  bool trace = false;
  int64_t trace_events = kTraceEvents;
  IoOptions io;
  Scheduler *scheduler = nullptr; // outlives the engine; null: threads
  /// Memory of commands that wait; what would be more holds up the driver. 0: RunAheadBytes.
  int64_t run_ahead = 0;
};

/// What the commands of about two of the widest layers take, which keeps all queues busy:
/// what a program promises beside its arena.
int64_t RunAheadBytes(const Program &);

/// Memory of the caller that is copied to or from the beginning of an entry of a
/// storage that lives in memory: tokens in, losses out.
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

class ChunkExtents;

class Engine {
public:
  /// On the device that the program's machine is: a CPU with one memory or two, or a GPU.
  /// `state` may be null where no storage lives on SSD and nothing is committed;
  /// it must outlive the engine. Allocates everything: nothing is allocated for data
  /// later.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const Program &, const Kernels &,
                                                        StateStore *state, const EngineOptions &);
  ~Engine();

  /// On any device; `places` may be null where nothing lives on SSD.
  static absl::StatusOr<std::unique_ptr<Engine>>
  Create(const Program &, std::unique_ptr<Device>, ChunkExtents *places, const EngineOptions &);

  /// Enqueues the commands of one entry point behind those of earlier runs, and
  /// returns the run's number. `in` is copied before the first of them uses the
  /// entry and after the last earlier one does, `out` after the last of them has
  /// written it; the memory of both must stay until the run is done.
  int64_t Enqueue(boa_entry_point, int64_t step, int64_t pending, const std::vector<Port> &in = {},
                  const std::vector<Port> &out = {});

  /// Waits until at most `share` of the run's kernels is left: with 0, until its
  /// kernels, updates and copies are done, and those of all runs before it.
  /// Transfers to SSD may still be under way. After an error all calls return it.
  absl::Status Wait(int64_t run, double share = 0);

  /// Enqueues one entry point and waits for it.
  absl::Status Run(boa_entry_point entry, int64_t step, int64_t pending,
                   const std::vector<Port> &in = {}, const std::vector<Port> &out = {}) {
    return Wait(Enqueue(entry, step, pending, in, out));
  }

  /// Waits for everything, transfers too.
  absl::Status Drain();
  absl::Status status() const;

  /// Begins to bring chunks of one entry from wherever they live to `data`, or back, behind
  /// all that was enqueued; Drain ends it. Until then `data`, of so many whole chunks and
  /// aligned to BOA_BLOCK_BYTES, is the engine's. Errors are latched, as are those of
  /// Commit and Restore.
  void ReadChunks(int32_t storage, int64_t entry, int32_t first, int32_t count, void *data);
  void WriteChunks(int32_t storage, int64_t entry, int32_t first, int32_t count, const void *data);

  /// Drains, writes persistent storages that live in memory to their extents and
  /// commits. No update may be pending: a state knows nothing of the schedule.
  absl::Status Commit(CommitRecord);
  /// After StateStore::Open: brings persistent storages that live in memory back,
  /// but for those that the state has in another form (StateStore::Foreign).
  absl::Status Restore();

  /// Of the runs up to this one; of all, if none is given. What moves for a run
  /// after its counters were taken counts for the next that are.
  Counters TakeCounters(int64_t run = std::numeric_limits<int64_t>::max());
  std::vector<TraceEvent> TakeTrace();
  /// Gradient norms by step, before clipping, since the last call: of a program that needs them
  /// (NeedsNorm). A step whose norm is not finite was left out.
  /// Known when the step's run is done.
  std::map<int64_t, double> TakeNorms();
  /// What the device does without since the last call, in words; empty: nothing.
  std::string TakeRemark();
  /// Allocated, exactly. Of unified memory all is the device's.
  int64_t ArenaBytes() const { return ArenaBytes(BOA_DEVICE) + ArenaBytes(BOA_HOST); }
  int64_t ArenaBytes(int32_t space) const;
  /// Of them, the most that were in use: homes, the workspace, and as many slots of
  /// each pool as were ever granted at once.
  int64_t PeakBytes() const { return PeakBytes(BOA_DEVICE) + PeakBytes(BOA_HOST); }
  int64_t PeakBytes(int32_t space) const;
  /// The most that commands which waited took; at most the option's run_ahead.
  int64_t PeakRunAheadBytes() const;
  std::string DescribeIo() const; // backend and what was degraded
  /// Versions of what the device's bits depend on, by name.
  std::map<std::string, std::string> Environment() const;
  int64_t Now() const; // nanoseconds of the device's clock
  /// When a run that was waited for was done: the driver may have come back later.
  int64_t EndOf(int64_t run) const;

  struct Impl; // what the C ABI works on

private:
  static absl::StatusOr<std::unique_ptr<Engine>> Make(const Program &, std::unique_ptr<Device>,
                                                      ChunkExtents *, StateStore *,
                                                      const EngineOptions &);
  explicit Engine(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl;
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_ENGINE_H
