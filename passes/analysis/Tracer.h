//===- Tracer.h - What a program computes, symbolically ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs entry points on symbols, chunk by chunk, under the memory model of
// runtime/abi/abi.h. The contents of a chunk are a *version*. Each version has a value number,
// a hash of its inputs: kernels, calls and updates are functions of their operands,
// accumulation is a commutative sum. So the tracer decides exactly, in the step phase and in
// the storage phase alike: whether a program reads data that was never written, lifetimes,
// traffic, and whether two programs compute the same. All passes ask here. An op itself
// names the chunks that it touches (AccessOpInterface).
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_ANALYSIS_TRACER_H
#define BOA_PASSES_ANALYSIS_TRACER_H

#include "passes/analysis/ChunkMap.h"
#include "passes/analysis/Enumeration.h"
#include "passes/analysis/Memory.h"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace boa {

/// The contents of a chunk. Versions of the state before the program are positive, versions
/// that the program makes are negative.
using Version = int64_t;
inline constexpr Version kUndefined = 0;
/// The version of zeros of a prefetch: below all versions that a program can make.
inline constexpr Version kZeros = INT64_MIN;
using Versions = ChunkMap<Version>;

/// The chunks that an op touches at one point of a run.
struct Access {
  StorageOp storage;
  int64_t entry = -1; // -1: out of bounds
  int64_t first = 0, count = 0;
  int64_t parts = 1;  // as many buffers, of count / parts chunks each, one after another
  bool fresh = false; // its first contents are zeros
  bool reads = false; // what is at home matters

  /// The same for accesses to the same storage, entry and chunks.
  auto key() const {
    return std::make_tuple(const_cast<StorageOp &>(storage).getOperation(), entry, first, count);
  }
  bool overlaps(const Access &other) const;
  Memory::Chunks chunks() const { return {storage, entry, first, count}; }
};

class Tracer {
public:
  explicit Tracer(mlir::ModuleOp module);
  virtual ~Tracer() = default;

  /// Runs an entry point on what earlier ones left, with the updates of the step before
  /// `pending` or not. Retained copies are left, too, where the same entry point
  /// follows, as steps of training do.
  void run(StepOp entry, bool pending);
  /// Starts a process that resumes from a commit: it has no retained copies, and only the
  /// persistent storages are defined.
  void resume();

  /// All state that later runs depend on. A version is the run that made it, counted
  /// backward, and its number in that run. After two equal snapshots the same runs do the
  /// same.
  using Snapshot = std::vector<int64_t>;
  virtual Snapshot snapshot() const;

  /// The value number of all that a storage's homes hold.
  uint64_t contents(StorageOp storage) const;
  /// The sum of value numbers of all kernels and updates so far: the work that was done, in
  /// any order.
  uint64_t work() const { return workDone; }

protected:
  /// A buffer from prefetch or create to release.
  struct Buffer {
    mlir::Operation *origin = nullptr;
    Access access;
    Space space = Space::device;
    bool home = false; // it is where its chunks live
    bool released = false;
    Versions own; // of its chunks, unless home

    /// The number of chunks of one of its parts: its slot holds as many.
    int64_t slotChunks() const { return access.count / access.parts; }
  };

  /// The run and the op that made a version.
  struct Made {
    mlir::Operation *op;
    uint64_t value;
    int64_t iteration; // index of `iterations`
    Version before;    // what it was added to; 0: nothing
  };

  /// Reports a program that breaks a rule. The first report is enough.
  virtual void violation(mlir::Operation *, const llvm::Twine &) {}
  /// Reports that `op` takes chunks that nothing wrote.
  virtual void undefinedRead(mlir::Operation *op, const Access &) {}
  /// Reports that `op` takes chunks of an entry, which holds `versions`, in the step phase.
  virtual void valueRead(mlir::Operation *op, const Access &, const Versions &versions) {}
  /// Is called before a kernel, an update or a norm of the storage phase.
  virtual void computes(mlir::Operation *) {}
  /// Is called after a buffer was filled. `retained` says that it was from a retained copy.
  virtual void opened(mlir::Operation *, const Buffer &, const Position &, bool retained) {}
  virtual void offloaded(OffloadOp, const Access &, const Buffer &) {}
  virtual void copied(CopyOp, const Buffer &from, const Buffer &to) {}
  virtual void released(ReleaseOp, const Buffer &, const Position &, bool retain) {}
  /// Is called for a retained copy that nothing took up before it became stale.
  virtual void dropped(const Buffer &, mlir::Operation *by) {}
  /// Is called for a retained copy that is lost because another entry point runs.
  virtual void abandoned(const Buffer &) {}

  /// The versions of all chunks of an entry in its home.
  Versions &homeOf(const Access &access);
  /// A version as a snapshot tells it.
  int64_t inSnapshot(Version version) const;
  int64_t inSnapshot(const Versions &versions, int64_t first, int64_t count) const;
  uint64_t valueOf(Version version) const;
  /// The value number of chunks [first, first + count).
  uint64_t valueOf(const Versions &versions, int64_t first, int64_t count) const;
  const Made &madeBy(Version version) const { return made[-version - 1]; }
  /// The number of the run, from 0, that made a version, or that runs.
  size_t runOf(Version version) const;
  size_t currentRun() const { return begun.size() - 1; }
  /// The iteration that runs.
  const Position::Iteration &here() const { return now->iteration(); }

  mlir::ModuleOp module;
  Memory memory;
  llvm::DenseMap<mlir::Operation *, std::vector<Versions>> homes; // of entries, by storage
  std::vector<std::shared_ptr<Buffer>> open;                      // not yet released
  std::vector<std::shared_ptr<Buffer>> retained;                  // and not yet taken up
  std::vector<Position::Iteration> iterations;                    // the first: before a run

private:
  using BufferRef = std::shared_ptr<Buffer>;
  /// What each op touches, looked up once: storages, and operands that are buffers, by effects.
  struct Touched {
    llvm::SmallVector<std::pair<StorageAccess, StorageOp>, 1> accesses;
    llvm::SmallVector<unsigned> reads, updates, writes;
    PreparedAttr prepared; // the form that the last operand must hold; null: there is none
  };

  void bringInputs();
  void visit(mlir::Operation *op, const Position &at);
  int64_t together(LoopOp loop, int64_t chunk);
  // The step phase.
  void read(ReadOp op, const Position &at);
  void write(WriteOp op, const Position &at);
  void accumulate(AccumulateOp op, const Position &at);
  void call(CallOp op);
  void optimizerUpdate(OptimizerUpdateOp op, const Position &at);
  void gradientNorm(GradientNormOp op, const Position &at);
  void finishNorm(FinishNormOp op, const Position &at);
  // The storage phase.
  void openBuffer(mlir::Operation *op, const Position &at);
  void offload(OffloadOp op, const Position &at);
  void copy(CopyOp op);
  void release(ReleaseOp op, const Position &at);
  void compute(mlir::Operation *op, llvm::StringRef function);
  void update(UpdateOp op, const Position &at);
  void norm(NormOp op);

  Touched &touchedBy(mlir::Operation *op);
  /// The accesses of `op` now. Reports an access out of bounds, and leaves it out.
  llvm::SmallVector<Access> accessesOf(mlir::Operation *op, const Position &at);
  static Access resolve(const StorageAccess &access, StorageOp storage, const Position &at);
  Version make(mlir::Operation *op, uint64_t value, Version before = kUndefined);
  /// The value of an op's operand, which must be defined.
  uint64_t use(mlir::Operation *op, const Access &access, const Versions &versions);
  void addTo(mlir::Operation *op, const Access &access, Versions &versions, uint64_t value);
  /// One update of chunks [first, first + count): `parts` are the gradient's versions, then
  /// each trained part's; null: there is none. Returns false if one is undefined.
  bool updateChunks(mlir::Operation *op, llvm::StringRef group, int64_t step, int64_t first,
                    int64_t count, llvm::ArrayRef<Versions *> parts);
  BufferRef lookup(mlir::Operation *op, mlir::Value buffer);
  Versions &contentsOf(Buffer &buffer) { return buffer.home ? homeOf(buffer.access) : buffer.own; }
  void dropRetained(const Access &access, mlir::Operation *by, std::optional<Space> in = {});

  llvm::DenseMap<mlir::Value, BufferRef> buffers;
  llvm::DenseMap<mlir::Value, uint64_t> values;                        // of tensors
  llvm::DenseMap<mlir::Operation *, std::shared_ptr<Touched>> touched; // copies share them
  /// The storages that a loop touches if it can run as one; none: it cannot.
  llvm::DenseMap<mlir::Operation *, std::optional<llvm::SmallVector<StorageOp, 4>>> independent;
  std::vector<Made> made;
  uint64_t gradientSum = 0;          // of the norm under way
  std::map<int64_t, uint64_t> norms; // by step
  uint64_t workDone = 0;
  const Position *now = nullptr;
  int64_t iterationSerial = -1;
  StepOp previous;           // entry point that ran last
  int64_t steps = 0;         // runs of @step
  int64_t brought = 0;       // runs that inputs were brought for
  std::vector<size_t> begun; // made.size() when each run began
};

/// Whether a step may leave updates to the next step.
bool leavesUpdates(StepOp step);

/// The least number of steps that shows whether they are steady.
inline size_t leastSteps(StepOp step) { return dependsOnParity(step) ? 4 : 3; }

/// Runs @step, first with nothing pending, until it leaves the same state as after an earlier
/// run (of the same parity, if that makes a difference): later steps then repeat. Gives up
/// after too many runs.
template <typename TracerT, typename RunT>
bool trainUntilSteady(TracerT &tracer, StepOp step, RunT run) {
  constexpr size_t kMostSteps = 8;
  bool parity = dependsOnParity(step);
  std::vector<Tracer::Snapshot> left;
  while (left.size() < kMostSteps) {
    run(tracer, step, !left.empty() && leavesUpdates(step));
    left.push_back(tracer.snapshot());
    bool steady = false;
    for (size_t runs = 1; runs < left.size(); ++runs)
      steady |= left[runs - 1] == left.back() && (!parity || (left.size() - runs) % 2 == 0);
    if (steady && left.size() >= leastSteps(step))
      return true;
  }
  return false;
}

/// Calls `run(tracer, entry, pending)` for the runs of a trainer, with copies of `fresh`: @step
/// until it is steady; each other entry point after that, and by itself. Then @drain, and a
/// process that resumes there: it runs each entry point. If parity makes a difference,
/// another process resumes one step later. Returns false if steps do not become steady.
template <typename TracerT, typename RunT>
bool runEntries(mlir::ModuleOp module, const TracerT &fresh, RunT run) {
  auto runOn = [&](TracerT tracer, StepOp entry, bool pending) { run(tracer, entry, pending); };
  StepOp step = findEntryPoint(module, EntryPoint::step);
  StepOp drain = findEntryPoint(module, EntryPoint::drain);
  TracerT training(fresh);
  bool steady = !step || trainUntilSteady(training, step, run);
  if (!steady)
    return false;
  for (StepOp entry : module.getOps<StepOp>()) {
    if (entry == step)
      continue;
    runOn(fresh, entry, false);
    if (step)
      runOn(training, entry, leavesUpdates(step));
    else if (leavesUpdates(entry))
      runOn(fresh, entry, true);
  }
  if (!step || (leavesUpdates(step) && !drain))
    return true;
  for (bool again : {false, true}) {
    if (drain)
      run(training, drain, leavesUpdates(step));
    training.resume();
    for (StepOp entry : module.getOps<StepOp>())
      if (entry != drain && entry != step && !again)
        runOn(training, entry, false);
    run(training, step, false);
    if (!dependsOnParity(step))
      break;
  }
  return true;
}

/// Emits the error that steps do not become steady.
mlir::LogicalResult emitNotSteady(StepOp step);

} // namespace boa

#endif // BOA_PASSES_ANALYSIS_TRACER_H
