//===- engine/impl.h - The parts of the engine ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the files engine*.cpp and abi.cpp share; nobody else includes it. Everything below "the
// graph" is guarded by the mutex.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_IMPL_H
#define BOA_RUNTIME_ENGINE_IMPL_H

#include "runtime/engine/engine.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <algorithm>

struct boa_context {};

namespace boa {

constexpr int64_t kBlock = 4096;
/// Of commands outside of a run: nothing of them is counted.
constexpr int64_t kNoRun = -1;

/// Why a command became ready when it did: what compute waited for.
enum class Cause { none, read, write, optimizer, compute };

struct Buffer;
struct UpdateRange;

struct Command {
  enum class Kind {
    kernel,
    update,
    norm,
    norm_done,
    zero,
    copy,
    copy_in,
    copy_out,
    create,
    release,
    read,
    write
  };
  Kind kind;
  int64_t run = 0;      // number of the run that it is part of
  int64_t sequence = 0; // its place in program order
  int unmet = 1;        // dependences left; 1 while being issued
  bool done = false;
  Cause cause = Cause::none;
  std::vector<std::shared_ptr<Command>> dependents;

  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<int32_t> firsts; // of a kernel's buffers: the chunks that it is given begin here
  int32_t index = 0;           // kernel, or group
  int32_t chunk = 0;
  int64_t step = 0;
  // Transfers: the chunks, and how many requests and sums are under way.
  int32_t storage = 0, first = 0, count = 0;
  int64_t entry = 0;
  std::vector<Extent> extents;
  int parts = 0;
  int64_t first_use = 0; // of what a read brings: the user's sequence, if known
  Port port;             // copies: the memory outside
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

struct SlotList;

/// Chunks [first, first + count) of an entry, in a slot or at home in memory.
struct Buffer {
  int32_t storage = 0, first = 0, count = 0, space = BOA_DEVICE;
  int64_t entry = 0;
  char *base = nullptr;      // null until a slot is granted
  SlotList *slots = nullptr; // of which it has one
  int32_t slot = -1;
  bool home = false;           // lives in memory: never released
  CommandRef opener;           // waits for the slot
  std::vector<Hazard> hazards; // by chunk
};
using BufferRef = std::shared_ptr<Buffer>;

/// Of a buffer, what a handle stands for.
struct View {
  BufferRef buffer;
  int32_t first = 0, count = 0;
};

inline bool Holds(const View &view, int32_t first, int32_t count) {
  return first >= view.first && count > 0 && first + count <= view.first + view.count;
}

/// A pool of program.h.
struct SlotList {
  int32_t space = BOA_DEVICE, chunks = 0;
  char *base = nullptr;
  int64_t stride = 0;
  std::vector<int32_t> free;
  int32_t used = 0, most_used = 0;
  std::deque<BufferRef> waiting; // in program order
};

/// Chunks of a storage's entries that lie side by side in one memory.
struct MemoryRange {
  int32_t first = 0, count = 0, space = BOA_DEVICE;
};

/// What a storage has in memory.
struct Place {
  std::vector<MemoryRange> ranges;
  std::vector<int32_t> range_of; // by chunk; -1: it lives on SSD
  std::vector<BufferRef> homes;  // by entry and range
  std::vector<SlotList> slots;   // the smaller ones first
};

/// Chunks of a transfer, counted from its first, whose checksums are to be noted or
/// compared.
struct Sum {
  CommandRef command;
  int32_t first = 0, count = 0;
};

/// What is left of a run.
struct RunProgress {
  int64_t kernels = 0, kernels_left = 0;
  int64_t others_left = 0; // updates, norms, fills
  bool Done() const { return kernels_left == 0 && others_left == 0; }
};

/// Elements with the same weight decay.
struct DecayRange {
  int64_t begin, end;
  bool decay;
};

inline int64_t Elements(const Parameter &parameter) {
  int64_t elements = 1;
  for (int64_t dimension : parameter.shape)
    elements *= dimension;
  return elements;
}

/// Of some chunks of a gradient.
struct GradientNorm {
  double squares = 0;
  std::string not_finite; // the first such tensor
};

/// Storage, entry, first chunk, count, space (0 where memory is unified).
using Key = std::tuple<int32_t, int64_t, int32_t, int32_t, int32_t>;

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
  struct Arena {
    char *base = nullptr;
    int64_t bytes = 0, fixed = 0; // of them: homes and the workspace
  };
  Arena arenas[2]; // by space; of unified memory the first alone
  char *workspace = nullptr;
  std::vector<Place> places;                  // by storage
  std::vector<std::vector<DecayRange>> decay; // by group
  std::vector<void *> kernel_buffers;         // the compute thread's

  // The graph, guarded by `mutex`.
  mutable std::mutex mutex;
  std::condition_variable changed;
  absl::Status error;
  std::unordered_map<int64_t, View> views; // by handle
  int64_t next_handle = 1;
  std::map<Key, int64_t> retained;    // handle
  boa_entry_point previous = nullptr; // that ran last
  std::map<std::tuple<int32_t, int64_t, int32_t>, Hazard> storage_hazards;
  std::unordered_set<CommandRef> incomplete;        // commands issued and not done
  int64_t transfers = 0;                            // submitted and not done
  std::deque<CommandRef> compute, optimizer, fills; // fills: zeros and copies
  std::deque<Sum> sums;                             // to be made
  std::condition_variable sums_added;
  bool computing = false, updating = false, stopping = false, transfers_over = false;
  bool issuing = false; // the driver is inside an entry point
  std::vector<CommandRef> to_submit;
  int64_t run = 0, sequence = 0;           // last given
  std::map<int64_t, RunProgress> progress; // of runs under way
  std::map<int64_t, Counters> counters;    // by run
  std::vector<TraceEvent> trace;
  size_t trace_next = 0;
  // Of this step's gradients, by group, entry and first chunk.
  std::map<std::tuple<int32_t, int64_t, int32_t>, GradientNorm> norms;
  std::map<int64_t, double> clip_factors; // by step
  std::vector<int64_t> left_out;          // steps, for TakeSkipped

  std::unique_ptr<IoBackend> io;
  std::thread compute_thread, optimizer_thread;
  std::vector<std::thread> sum_threads;

  absl::Status Start();
  void Stop();
  absl::Status CheckProgram() const;
  void LayOut();
  absl::Status Allocate();
  void PrepareDecay();

  // Graph.
  CommandRef New(Command::Kind kind);
  void DependOn(const CommandRef &command, const CommandRef &on);
  void Reads(const CommandRef &command, Buffer &buffer, int32_t first, int32_t count);
  void Writes(const CommandRef &command, Buffer &buffer, int32_t first, int32_t count);
  void Issue(const CommandRef &command);
  void IssueCopy(Command::Kind kind, const Port &port);
  RunProgress *Progress(const CommandRef &command);
  void Satisfy(const CommandRef &command, Cause cause);
  void Ready(const CommandRef &command);
  void Complete(const CommandRef &command);
  void Grant(SlotList &slots, const BufferRef &buffer, Cause cause);
  void RequestSlot(const BufferRef &buffer, const CommandRef &opener);
  void Fail(absl::Status status);
  const View *Lookup(boa_buffer handle);
  boa_buffer NewHandle(BufferRef buffer, int32_t first, int32_t count);
  BufferRef NewBuffer(int32_t storage, int64_t entry, int32_t first, int32_t count, int32_t space);
  boa_buffer Open(int32_t storage, int64_t entry, int32_t first, int32_t count, int32_t space,
                  bool bring, bool zero);
  void Move(bool home, const BufferRef &buffer, int64_t entry, int32_t first, int32_t count);
  void MoveDisk(bool home, const BufferRef &buffer, int64_t entry, int32_t first, int32_t count,
                CommandRef command);
  void CopyChunks(const BufferRef &from, const BufferRef &to, int32_t first, int32_t count);
  bool Reachable(const View &, int32_t space, const char *what);
  void Release(boa_buffer handle, bool retain);
  void DropRetained();
  void DropRetained(int32_t storage, int64_t entry, int32_t first, int32_t count,
                    int32_t space = -1);
  bool Expect(bool holds, const char *what);
  bool HasChunks(int32_t storage, int64_t entry, int32_t first, int32_t count) const;
  bool Separate() const { return program.machine.separate; }
  /// The range that holds a chunk, and its buffer; null: it lives on SSD.
  const MemoryRange *RangeOf(int32_t storage, int32_t chunk) const;
  BufferRef HomeOf(int32_t storage, int64_t entry, int32_t chunk) const;
  int64_t ChunkBytes(int32_t storage) const { return program.storages[storage].chunk_bytes(); }
  char *Address(const Buffer &buffer, int32_t chunk) const {
    return buffer.base + (chunk - buffer.first) * ChunkBytes(buffer.storage);
  }

  // Queues.
  void Submit(std::unique_lock<std::mutex> &lock);
  int64_t Deadline(const Command &command) const;
  void Transfer(const CommandRef &command);
  void TransferDone(const CommandRef &command, int32_t first, int32_t count, absl::Status status);
  void PartDone(std::unique_lock<std::mutex> &lock, const CommandRef &command, absl::Status status);
  void AddSums(const CommandRef &command, int32_t first, int32_t count);
  void SumLoop();
  void DoSum(std::unique_lock<std::mutex> &lock, size_t which);
  absl::Status SumChunk(const Command &command, int32_t c);
  void ComputeLoop();
  void OptimizerLoop();
  bool KernelReady() const { return !compute.empty() && compute.front()->unmet == 0; }
  bool UpdateReady() const { return !optimizer.empty() && optimizer.front()->unmet == 0; }
  void DoKernel(std::unique_lock<std::mutex> &lock);
  void DoUpdate(std::unique_lock<std::mutex> &lock);
  void DoFill(std::unique_lock<std::mutex> &lock, size_t which);
  void DoOptimizer(std::unique_lock<std::mutex> &lock, const CommandRef &command);
  void Abandon();
  bool Advance(std::unique_lock<std::mutex> &lock);
  template <typename Condition> void Await(std::unique_lock<std::mutex> &lock, Condition over);
  void RunKernel(const Command &command);
  absl::Status RunUpdate(const Command &command, double clip);
  absl::Status NotFinite(const Command &command, const UpdateRange &range, int64_t first) const;
  GradientNorm SumGradient(const Command &command) const;
  void FinishNorm(int64_t step);
  void Record(TraceEvent::Row row, const Command &command, const std::string &name, int64_t end_ns,
              int64_t bytes, int32_t link = 0);
  void Fill(const Command &command) const;
  void CountCopy(const Command &command);
  bool Stuck() const;
  template <typename Condition> absl::Status WaitFor(Condition condition);
  absl::Status Drain();
  absl::Status Access(int32_t storage, int64_t entry, int32_t chunk, void *data, bool write);
  absl::Status MoveResident(bool write);
  absl::Status NeverWritten(const Command &command, int32_t chunk) const;
  void PlaceChunk(Command &command, int32_t chunk, bool write);
  void IssueMove(bool write, const BufferRef &buffer);
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_IMPL_H
