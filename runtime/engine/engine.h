//===- engine.h - Runs a compiled program's commands -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The boa_context behind the C ABI. The driver (the thread that calls Enqueue)
// enqueues commands; they run as soon as what they depend on is done:
//
//   compute    one thread, kernels strictly in program order
//   optimizer  one thread, updates in program order; zeros and copies as they come
//   I/O        the backend's threads, each transfer by itself; of the reads that
//              wait for one SSD the one whose data is used first goes first
//   checksums  a thread for each eight processors: what is written is summed, what
//              is read is compared before anybody uses it
//
// With a scheduler (scheduler.h) there are no threads: all of that happens on the
// thread that waits, one thing after another, in the order that it chooses.
//
// A run is one call of an entry point. The next may be enqueued before the last
// has ended: then there is no gap between them.
//
// Dependences are found here, from the buffers (by chunk) and storage chunks
// that a command reads and writes; all point backward in program order. Slots of
// a storage are granted in program order. One mutex guards the graph; no work is
// done under it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_ENGINE_H
#define BOA_RUNTIME_ENGINE_ENGINE_H

#include "runtime/abi.h"
#include "runtime/program.h"
#include "runtime/engine/scheduler.h"
#include "runtime/state/state.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace boa {

struct EngineOptions {
  bool trace = false;
  int64_t trace_events = 1 << 20; // the newest are kept
  IoOptions io;
  Scheduler *scheduler = nullptr; // outlives the engine; null: threads
};

/// Memory of the caller that is copied to or from the beginning of an entry of a
/// storage that lives in memory: tokens in, losses out.
struct Port {
  int32_t storage = 0;
  int64_t entry = 0;
  void *data = nullptr;
  int64_t bytes = 0;
};

struct Counters {
  std::map<std::string, int64_t> read, written;      // SSD bytes by role
  std::map<std::string, int64_t> to_device, to_host; // between separate memories
  double compute_seconds = 0;                        // kernels running
  double optimizer_seconds = 0;
  // Compute had a next kernel but waited, by what it waited for last:
  double waited_read = 0;  // a transfer from SSD
  double waited_write = 0; // a slot, given back after a write
  double waited_optimizer = 0;

  void Add(const Counters &);
};

/// One command that ran, for the trace.
struct TraceEvent {
  enum class Row { compute, optimizer, read, write };
  Row row;
  int32_t link = 0; // ssd path, for transfers
  std::string name; // kernel, storage or group
  int64_t begin_ns = 0, end_ns = 0, bytes = 0;
};

class Engine {
public:
  /// `state` may be null where no storage lives on SSD and nothing is committed;
  /// it must outlive the engine. `kernels` in the descriptor's order. Allocates
  /// everything: nothing is allocated for data later.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const Program &, const boa_kernel *kernels,
                                                        StateStore *state, const EngineOptions &);
  ~Engine();

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

  /// One chunk, from wherever it lives, while nothing runs. `data` holds
  /// storage.bytes / storage.chunks bytes, with any alignment. An error is latched,
  /// as are those of Commit and Restore.
  absl::Status ReadChunk(int32_t storage, int64_t entry, int32_t chunk, void *data);
  absl::Status WriteChunk(int32_t storage, int64_t entry, int32_t chunk, const void *data);

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
  /// Steps since the last call that were left out, in order: their gradients were
  /// not finite and Training::nonfinite is "skip". Known when the step's run is done.
  std::vector<int64_t> TakeSkipped();
  int64_t ArenaBytes() const; // allocated, exactly
  /// Of them, the most that were in use: homes, the workspace, and as many slots of
  /// each pool as were ever granted at once. Of unified memory all is the device's.
  int64_t PeakBytes() const { return PeakBytes(BOA_DEVICE) + PeakBytes(BOA_HOST); }
  int64_t PeakBytes(int32_t space) const;
  std::string DescribeIo() const; // backend and what was degraded
  /// Nanoseconds of the clock that TraceEvent uses.
  static int64_t Now();

  struct Impl; // what the C ABI works on

private:
  explicit Engine(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl;
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_ENGINE_H
