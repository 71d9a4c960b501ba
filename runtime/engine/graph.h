//===- graph.h - Commands, what they wait for, and slots --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What runtime/abi/abi.h says of order and memory, and nothing else: no thread, no lock,
// no address and no clock. The driver says in program order what there is to do;
// TakeReady gives out what may begin; Complete says that it is over, and when. So the
// same graph drives threads, a GPU's queues and virtual time.
//
// Dependences are found from the chunks of buffers and of storages that a command
// reads and writes; all point backward in program order. Slots of a pool are granted
// in program order. Compute and the optimizer are queues: what is given out to one
// runs in the order given, so that nothing in it waits for what is ahead of it there.
//
// Commands, buffers and handles are numbers in tables that are used again, with the
// generation in which they were: a reference to one that is over is seen to be that.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_GRAPH_H
#define BOA_RUNTIME_ENGINE_GRAPH_H

#include "runtime/abi/program.h"
#include "runtime/device/work.h"

#include "absl/status/status.h"

#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace boa {

/// Of commands outside of a run: nothing of them is counted.
constexpr int64_t kNoRun = -1;

class Graph {
public:
  /// Both outlive it. `places` may be null where nothing lives on SSD. `device_orders`: as
  /// Device::OrdersKernels says.
  Graph(const Program &, ChunkExtents *places, bool device_orders = false);

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  /// Bytes of a space, as they are laid out; unified memory is all the device's.
  int64_t Bytes(int32_t space) const { return spaces[space].bytes; }
  /// The most of them that were in use: homes, the workspace, and as many slots of
  /// each pool as were ever granted at once.
  int64_t PeakBytes(int32_t space) const;
  Location Workspace() const { return workspace; }
  /// Where a chunk lives in memory; nowhere: on SSD.
  Location HomeOf(int32_t storage, int64_t entry, int32_t chunk) const;

  //===--------------------------------------------------------------------===//
  // What there is to do, in program order
  //===--------------------------------------------------------------------===//

  /// Commands from now on are of a new run; its number. `now`: on the device's clock.
  int64_t BeginRun(int64_t now);
  void EndRun() { issuing = false; }
  boa_buffer Open(int32_t storage, int64_t entry, int32_t first, int32_t count, int32_t space,
                  bool bring, bool zero);
  void Copy(boa_buffer from, boa_buffer to, int32_t first, int32_t count);
  void Offload(boa_buffer, int32_t storage, int64_t entry, int32_t first, int32_t count);
  void Release(boa_buffer, bool retain);
  void Launch(int32_t kernel, int32_t count, const boa_buffer *);
  void Update(int32_t group, int32_t chunk, int64_t step, const boa_buffer (&)[5]);
  void Norm(int32_t group, boa_buffer gradient);
  void NormDone(int64_t step);
  /// Copies between memory of the caller and the beginning of an entry.
  void CopyPort(bool in, int32_t storage, int64_t entry, void *outside, int64_t bytes);
  /// Gives up all retained copies.
  void DropRetained();
  /// Copies chunks of an entry from where they live to memory of the caller, or back
  /// (write). Of no run.
  void Exchange(bool write, int32_t storage, int64_t entry, int32_t first, int32_t count,
                void *outside);
  /// Moves chunks of an entry to or from their extents on SSD: from where they live in
  /// memory, or from `outside`. Of no run.
  void MoveDisk(bool write, int32_t storage, int64_t entry, int32_t first, int32_t count,
                void *outside);

  //===--------------------------------------------------------------------===//
  // Carrying it out
  //===--------------------------------------------------------------------===//

  /// What may begin now, those of a queue in its order. Valid until completed. Reads
  /// of which the driver may yet say what first uses them stay, unless it waits.
  void TakeReady(std::vector<Work *> &out, bool driver_waits = false);
  void Complete(const Work &, int64_t begin_ns, int64_t end_ns);
  /// After the first error nothing more is given out.
  void Fail(absl::Status);
  const absl::Status &status() const { return error; }

  int64_t Incomplete() const { return incomplete; }
  /// Memory of this graph, at most, that commands take until they are over.
  int64_t IncompleteBytes() const { return incomplete_bytes; }
  int64_t UnderWay() const { return under_way; } // given out, not complete
  /// Nothing runs and nothing can: the program needs more slots than it has.
  bool IsStuck() const { return incomplete > 0 && under_way == 0 && !AnyReady(); }
  /// Whether at most `share` of the run's kernels is left: with 0, whether its kernels,
  /// updates and copies are done, and those of all runs before it.
  bool IsDone(int64_t run, double share);
  /// When that was, of a run that is done.
  int64_t EndOf(int64_t run) const;

  Counters &CountersOf(int64_t run) { return counters[run]; }
  /// Of the runs up to this one.
  Counters TakeCounters(int64_t run);

private:
  using Kind = Work::Kind;
  /// Why a command became ready when it did: what compute waited for.
  enum class Cause : uint8_t { none, read, write, copy, optimizer, compute };

  /// To a command, done once the generations differ. 0: to none.
  struct Reference {
    uint32_t id = 0, generation = 0;
  };
  struct Use {
    uint32_t buffer = 0; // 0: a null buffer
    int32_t first = 0;   // what is taken of it begins with this chunk
  };
  struct Command {
    Work work;
    uint32_t generation = 1;
    int32_t unmet = 0;   // dependences left, and 1 while being issued
    int32_t touched = 0; // chunks, as often as it reads or writes them
    Cause cause = Cause::none;
    int64_t sequence = 0;  // its place in program order
    int64_t first_use = 0; // of what a read brings: the user's sequence, if known
    int64_t ready_ns = 0;
    bool given = false; // to the device
    std::vector<uint32_t> dependents;
    // Where the device orders the two: kernels that wait for this to be given out, and what this
    // kernel waits for.
    std::vector<Reference> followers, after;
    std::vector<Use> uses;
  };
  /// The commands on one chunk that later ones must wait for.
  struct Hazard {
    Reference writer;
    std::vector<Reference> readers;
  };
  /// Chunks [first, first + count) of an entry, in a slot or at home in memory.
  struct Buffer {
    int32_t storage = 0, first = 0, count = 0;
    int64_t entry = 0;
    Location base;              // nowhere until a slot is granted
    int32_t space = BOA_DEVICE; // where it is, or will be
    bool home = false;          // never released
    int32_t pool = -1, slot = -1;
    Reference opener;            // waits for the slot
    std::vector<Hazard> hazards; // by chunk
  };
  /// Of a buffer, what a handle stands for.
  struct View {
    uint32_t buffer = 0, generation = 1;
    int32_t first = 0, count = 0;
    bool Holds(int32_t begin, int32_t chunks) const {
      return begin >= first && chunks > 0 && begin + chunks <= first + count;
    }
  };
  struct Pool {
    int32_t space = BOA_DEVICE, chunks = 0;
    Location base;
    int64_t stride = 0;
    std::vector<int32_t> free;
    int32_t used = 0, most_used = 0;
    std::deque<uint32_t> waiting; // buffers, in program order
  };
  /// Chunks of a storage's entries that lie side by side in one memory.
  struct Range {
    int32_t first = 0, count = 0, space = BOA_DEVICE;
  };
  /// What a storage has in memory, and who works on what it has on SSD.
  struct Place {
    std::vector<Range> ranges;
    std::vector<int32_t> range_of; // by chunk; -1: it lives on SSD
    std::vector<uint32_t> homes;   // buffers, by entry and range
    std::vector<int32_t> pools;    // the smaller ones first
    std::vector<Hazard> hazards;   // by entry and chunk; empty if nothing is on SSD
  };
  struct Space {
    int64_t bytes = 0, fixed = 0; // of them homes and the workspace
  };
  struct Run {
    int64_t begin_ns = 0, end_ns = 0; // the end: so far
    int64_t kernels = 0, kernels_left = 0;
    int64_t others_left = 0; // updates, norms, fills
    bool IsOver() const { return kernels_left == 0 && others_left == 0; }
  };
  /// Storage, entry, first chunk, count, space (0 where memory is unified).
  using Key = std::tuple<int32_t, int64_t, int32_t, int32_t, int32_t>;

  // Memory (graph_memory.cpp).
  void LayOut();
  Location Take(int32_t space, int64_t bytes);
  uint32_t NewBuffer(int32_t storage, int64_t entry, int32_t first, int32_t count, int32_t space);
  int32_t PoolFor(int32_t storage, int32_t count, int32_t space) const;
  void RequestSlot(uint32_t buffer, uint32_t opener);
  void Grant(Pool &, uint32_t buffer, Cause);
  void GiveUp(uint32_t buffer);
  void GiveBack(uint32_t buffer, Cause);
  const Range *RangeOf(int32_t storage, int32_t chunk) const;
  uint32_t HomeBuffer(int32_t storage, int64_t entry, int32_t chunk) const;
  Location At(const Buffer &, int32_t chunk) const;
  boa_buffer NewHandle(uint32_t buffer, int32_t first, int32_t count);
  void DropHandle(boa_buffer);
  View *Lookup(boa_buffer);
  void DropRetained(int32_t storage, int64_t entry, int32_t first, int32_t count,
                    int32_t space = -1);

  // Order.
  uint32_t New(Kind);
  void DependOn(uint32_t id, Reference on);
  void Read(uint32_t id, Hazard &);
  void Write(uint32_t id, Hazard &);
  void Reads(uint32_t id, uint32_t buffer, int32_t first, int32_t count);
  void Writes(uint32_t id, uint32_t buffer, int32_t first, int32_t count);
  void NoteUse(Reference writer, uint32_t id);
  bool IsOver(Reference) const;
  bool FillsOnDevice(const Command &) const;
  void Issue(uint32_t id);
  static int64_t BytesOf(const Command &);
  void Satisfy(uint32_t id, Cause);
  void Ready(uint32_t id);
  void Finish(uint32_t id, Cause);
  bool AnyReady() const;
  bool Front(const std::deque<uint32_t> &queue) const {
    return !queue.empty() && commands[queue.front()].unmet == 0;
  }
  Work *GiveOut(uint32_t id);
  int64_t *Left(const Work &); // of the run, what this is counted in
  void Count(const Work &, const Command &, int64_t begin_ns, int64_t end_ns);
  void Move(bool home, uint32_t buffer, int64_t entry, int32_t first, int32_t count);
  void Order(uint32_t id, bool write, int32_t storage, int64_t entry, int32_t chunk);
  void CopyOutside(int64_t of_run, bool in, int32_t storage, int64_t entry, int32_t first,
                   int32_t count, void *outside, int64_t bytes);
  void MoveDisk(bool home, uint32_t buffer, int64_t entry, int32_t first, int32_t count,
                uint32_t id);
  void MoveStaged(bool home, uint32_t buffer, int64_t entry, int32_t first, int32_t count);
  void CopyChunks(uint32_t from, uint32_t to, int32_t first, int32_t count);
  void PlaceChunks(Work &, bool write);
  bool HasChunks(int32_t storage, int64_t entry, int32_t first, int32_t count) const;
  bool Reachable(uint32_t buffer, int32_t space, const char *what);
  bool Expect(bool holds, const char *what);
  bool Separate() const { return IsSeparate(program.machine); }
  /// Whether an SSD reaches a buffer there by way of the host's memory alone.
  bool PassesHost(int32_t space) const {
    return Separate() && !program.machine.direct && space == BOA_DEVICE;
  }
  int64_t ChunkBytes(int32_t storage) const { return program.storages[storage].chunk_bytes(); }
  int64_t Priority(const Command &) const;

  const Program &program;
  ChunkExtents *const places_on_ssd;
  const bool device_orders;
  absl::Status error;

  Space spaces[2];
  Location workspace;
  std::vector<Place> places; // by storage
  std::vector<Pool> pools;

  std::deque<Command> commands{1}; // by id; addresses stay
  std::vector<uint32_t> free_commands;
  std::deque<Buffer> buffers{1};
  std::vector<uint32_t> free_buffers;
  std::vector<View> views{1};
  std::vector<uint32_t> free_views;
  std::map<Key, boa_buffer> retained;

  std::deque<uint32_t> compute, optimizer; // issued, not given out, in program order
  std::vector<uint32_t> fills, transfers;  // ready, not given out
  bool issuing = false;                    // the driver is inside an entry point
  int64_t run = 0, sequence = 0;           // last given
  int64_t incomplete = 0, incomplete_bytes = 0, under_way = 0;
  int64_t now_ns = 0, compute_free_ns = 0; // of the last completion; of the last kernel's
  std::map<int64_t, Run> runs;             // under way
  std::map<int64_t, int64_t> ends;         // when the last ones of them were done
  std::map<int64_t, Counters> counters;    // by run
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_GRAPH_H
