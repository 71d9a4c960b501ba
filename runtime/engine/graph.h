//===- graph.h - The driver's calls as commands -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of runtime/abi/abi.h about order and memory. The driver describes its work
// in program order. TakeReady returns the work that may begin; Complete ends it. The
// graph knows no thread, lock, address or clock, so the same graph drives threads, a
// GPU's queues and simulated time.
//
// It turns each call into commands, and composes the classes that order them:
//   - Slots (slots.h): homes, pools of slots, and who has which slot;
//   - Dispatcher (dispatcher.h): commands from issue to completion, with
//     Hazards (hazards.h): who reads and wrote each chunk last,
//     CommandQueues (queues.h): the commands on their way to the device,
//     Accounting (accounting.h): counters, waits and the ends of runs;
//   - BufferHandles (handles.h): the program's handles, and retained copies.
//
// Ownership: the graph owns all of these. Program and extents must outlive it.
// Threads: none of its own, no lock; the engine's mutex guards it.
// Errors: a call that breaks the rules of abi.h, and a chunk without an extent, fail the
// graph. The first status stays; after it, calls do nothing.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_GRAPH_H
#define BOA_RUNTIME_ENGINE_GRAPH_H

#include "runtime/abi/program.h"
#include "runtime/device/work.h"
#include "runtime/engine/accounting.h"
#include "runtime/engine/dispatcher.h"
#include "runtime/engine/handles.h"
#include "runtime/engine/slots.h"

#include "absl/status/status.h"

#include <cstdint>
#include <vector>

namespace boa {

class Graph {
public:
  /// `extents` may be null if no chunk lives on SSD. `device_orders`: see
  /// Device::OrdersKernels.
  Graph(const Program &, ChunkExtents *extents, bool device_orders = false);

  //===--------------------------------------------------------------------===//
  // Memory: see slots.h
  //===--------------------------------------------------------------------===//

  int64_t Bytes(int32_t space) const { return slots.Bytes(space); }
  int64_t PeakBytes(int32_t space) const { return slots.PeakBytes(space); }
  void Watch(Slots::Watcher watcher) { slots.Watch(std::move(watcher)); }
  /// The time of the last completion.
  int64_t Now() const { return dispatcher.accounting().now_ns(); }
  Location Workspace() const { return slots.workspace(); }
  /// The home of a chunk in memory; nowhere: it lives on SSD.
  Location HomeOf(int32_t storage, int64_t entry, int32_t chunk) const;
  /// Whether a chunk is zero because nobody has written it yet: that of a state of the optimizer
  /// without an extent.
  bool IsAbsent(int32_t storage, int64_t entry, int32_t chunk) const;

  //===--------------------------------------------------------------------===//
  // The driver's calls, in program order
  //===--------------------------------------------------------------------===//

  /// Begins a run and returns its number. `now`: the device's clock.
  int64_t BeginRun(int64_t now) { return dispatcher.accounting().BeginRun(now); }
  int64_t NewestRun() const { return dispatcher.accounting().run(); }
  void EndRun() { dispatcher.accounting().EndRun(); }
  boa_buffer Open(int32_t storage, int64_t entry, int32_t first, int32_t count, int32_t space,
                  bool bring, bool zero);
  void Copy(boa_buffer from, boa_buffer to, int32_t first, int32_t count);
  void Offload(boa_buffer, int32_t storage, int64_t entry, int32_t first, int32_t count);
  void Release(boa_buffer, bool retain);
  void Launch(int32_t kernel, int32_t count, const boa_buffer *);
  void Update(int32_t group, int32_t chunk, int64_t step, const std::vector<boa_buffer> &);
  void Norm(int32_t group, boa_buffer gradient);
  void NormDone(int64_t step);
  /// Copies between memory of the caller and the beginning of an entry.
  void CopyPort(bool in, int32_t storage, int64_t entry, void *outside, int64_t bytes);
  /// Gives up all retained copies.
  void DropRetained();
  /// Copies chunks of an entry from their homes to memory of the caller, or back (write).
  /// Belongs to no run.
  void Exchange(bool write, int32_t storage, int64_t entry, int32_t first, int32_t count,
                void *outside);
  /// Reads chunks of an entry from their extents on SSD, or writes them there. The memory is
  /// `outside`, or, if that is null, the chunks' home. Belongs to no run.
  void MoveDisk(bool write, int32_t storage, int64_t entry, int32_t first, int32_t count,
                void *outside);

  //===--------------------------------------------------------------------===//
  // The work: see dispatcher.h
  //===--------------------------------------------------------------------===//

  void TakeReady(std::vector<Work *> &out, bool driver_waits = false) {
    dispatcher.TakeReady(out, driver_waits);
  }
  void Complete(const Work &work, int64_t begin_ns, int64_t end_ns) {
    dispatcher.Complete(work, begin_ns, end_ns);
  }
  /// After the first error no work is given out any more.
  void Fail(absl::Status status) { dispatcher.Fail(std::move(status)); }
  const absl::Status &status() const { return dispatcher.status(); }
  /// Nothing runs and nothing can: the program needs more slots than it has.
  bool IsStuck() const { return dispatcher.IsStuck(); }

  //===--------------------------------------------------------------------===//
  // Counts: see accounting.h
  //===--------------------------------------------------------------------===//

  int64_t Incomplete() const { return dispatcher.accounting().Incomplete(); }
  int64_t IncompleteBytes() const { return dispatcher.accounting().IncompleteBytes(); }
  int64_t UnderWay() const { return dispatcher.accounting().UnderWay(); }
  bool IsDone(int64_t run, double share) { return dispatcher.accounting().IsDone(run, share); }
  int64_t EndOf(int64_t run) const { return dispatcher.accounting().EndOf(run); }
  Counters &CountersOf(int64_t run) { return dispatcher.accounting().CountersOf(run); }
  Counters TakeCounters(int64_t run) { return dispatcher.accounting().TakeCounters(run); }

private:
  using View = BufferHandles::View;

  bool Expect(bool holds, const char *rule);
  bool Reachable(uint32_t buffer, int32_t space, const char *rule);
  const View *Lookup(boa_buffer);
  void DropRetained(int32_t storage, int64_t entry, int32_t first, int32_t count,
                    int32_t space = -1);
  void Release(const std::vector<boa_buffer> &);
  Command &NewOpener(Work::Kind, uint32_t buffer);
  void Move(bool home, uint32_t buffer, int64_t entry, int32_t first, int32_t count);
  void MoveDisk(bool home, uint32_t buffer, int64_t entry, int32_t first, int32_t count);
  void IssueMove(Command &);
  void MoveStaged(bool home, uint32_t buffer, int64_t entry, int32_t first, int32_t count);
  void CopyChunks(uint32_t from, uint32_t to, int32_t first, int32_t count);
  void CopyOutside(int64_t of_run, bool in, int32_t storage, int64_t entry, int32_t first,
                   int32_t count, void *outside, int64_t bytes);
  void FindExtents(Work &);
  int32_t EndOfAbsence(int32_t storage, int64_t entry, int32_t chunk, int32_t end) const;
  Work::Kind KindOfRead(int32_t storage, int64_t entry, int32_t chunk) const;
  bool Separate() const { return IsSeparate(program.machine); }
  /// Whether an SSD reaches such a buffer only by way of the host's memory.
  bool PassesHost(int32_t space) const {
    return Separate() && !program.machine.direct && space == BOA_DEVICE;
  }

  const Program &program;
  const std::vector<bool> zero_at_first; // by storage
  ChunkExtents *const extents;
  Slots slots;
  Dispatcher dispatcher;
  BufferHandles handles;
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_GRAPH_H
