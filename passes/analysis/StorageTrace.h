//===- StorageTrace.h - What buffers and homes hold -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The storage phase, enumerated, with contents followed chunk by chunk under the
// memory model of runtime/abi.h. Contents are versions: the same number is the
// same bytes. So whether a program reads what was never written, and whether two
// programs compute the same, are decided exactly.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_ANALYSIS_STORAGETRACE_H
#define BOA_PASSES_ANALYSIS_STORAGETRACE_H

#include "passes/analysis/ScheduleTrace.h"

#include <memory>
#include <set>
#include <vector>

namespace boa {

/// What a chunk holds. Versions of the state before the program are positive,
/// those that kernels and updates make negative.
using Version = int64_t;
inline constexpr Version kUndefined = 0;

class StorageTrace {
public:
  explicit StorageTrace(mlir::ModuleOp module);
  virtual ~StorageTrace() = default;

  /// Runs an entry point on what earlier ones left, with the updates of an earlier
  /// step `pending` or not. Retained copies are left, too, where the same entry point
  /// follows, as steps of training do.
  void run(StepOp entry, bool pending);

  /// All that what runs next depends on. Versions are told by the run that made them,
  /// counted backward, and by what made them there: where two snapshots are equal, the
  /// same runs do the same after both.
  using Snapshot = std::vector<int64_t>;
  virtual Snapshot snapshot() const;

  /// What a kernel, update or norm found in one of its operands.
  struct Use {
    mlir::Operation *op;
    unsigned operand;
    uint64_t contents; // hash of versions, as a snapshot tells them
    int64_t mark;      // of the op (markOps), -1: none
    bool operator==(const Use &other) const {
      bool same = mark >= 0 && other.mark >= 0 ? mark == other.mark : op == other.op;
      return same && operand == other.operand && contents == other.contents;
    }
  };
  /// In the order in which they run.
  std::vector<Use> uses;

protected:
  /// A buffer from prefetch or create to release. Where its storage lives in
  /// memory it is the entry itself.
  struct Buffer {
    mlir::Operation *origin = nullptr;
    Access access;
    bool home = false;
    bool released = false;
    std::vector<Version> own; // of each chunk, unless home
  };

  /// A program that breaks a rule of the phase: the first is enough.
  virtual void violation(mlir::Operation *, const llvm::Twine &) {}
  /// `op` takes chunks that nothing wrote.
  virtual void undefinedRead(mlir::Operation *op, const Access &) {}
  /// After a buffer was filled; `retained`: from a retained copy.
  virtual void opened(mlir::Operation *, const Buffer &, const TraceState &, bool retained) {}
  virtual void offloaded(OffloadOp, const Access &) {}
  virtual void released(ReleaseOp, const Buffer &, const TraceState &, bool retain) {}
  /// A retained copy that nothing took up before it became stale.
  virtual void dropped(const Buffer &, mlir::Operation *by) {}
  /// A retained copy that is lost because another entry point runs.
  virtual void abandoned(const Buffer &) {}

  /// Versions of an entry's chunks in its home.
  Version *homeOf(const Access &access);
  std::vector<Version> contentsOf(const Buffer &buffer);
  /// A version as a snapshot tells it.
  int64_t inSnapshot(Version version) const;
  static bool overlap(const Access &a, const Access &b);

  mlir::ModuleOp module;
  llvm::DenseMap<mlir::Operation *, std::vector<Version>> homes;
  std::vector<std::shared_ptr<Buffer>> open;     // not yet released
  std::vector<std::shared_ptr<Buffer>> retained; // and not yet taken up

private:
  using BufferRef = std::shared_ptr<Buffer>;

  void visit(mlir::Operation *op, const TraceState &state);
  void openBuffer(mlir::Operation *op, const TraceState &state);
  void offload(OffloadOp op, const TraceState &state);
  void release(ReleaseOp op, const TraceState &state);
  void launch(LaunchOp op);
  void update(UpdateOp op, const TraceState &state);
  BufferRef lookup(mlir::Operation *op, mlir::Value buffer);
  Access accessOf(mlir::Operation *op, const TraceState &state);
  Version *chunkOf(Buffer &buffer, int64_t chunk);
  void use(mlir::Operation *op, unsigned operand, Buffer &buffer, int64_t first, int64_t count);
  void checkAliases(LaunchOp op);
  void checkGroup(mlir::Operation *op, llvm::StringRef group);
  void dropRetained(const Access &access, mlir::Operation *by);

  llvm::DenseMap<mlir::Value, BufferRef> buffers;        // tokens, too
  llvm::DenseMap<mlir::Operation *, StorageOp> storages; // of ops seen
  StepOp previous;                                       // entry point that ran last
  int64_t steps = 0;                                     // runs of @step
  Version next = 0;
  std::vector<Version> begun; // `next` when each run began
};

/// Whether a step may leave updates to the next.
bool leavesUpdates(StepOp step);

/// How @step ran until it was steady.
struct Training {
  bool steady = false;
  size_t runs = 0;    // the last left what
  size_t earlier = 0; // this many runs had left
};

/// Runs @step, first with nothing pending, until what it leaves is what it left after
/// an earlier run (of the same parity where that makes a difference): from there on
/// steps do what they did. `run(pending)` runs it on `trace`. Gives up where that takes
/// too long.
template <typename RunT>
Training trainUntilSteady(const StorageTrace &trace, StepOp step, RunT run) {
  constexpr size_t kMostRuns = 8;
  bool parity = dependsOnParity(step);
  std::vector<StorageTrace::Snapshot> left;
  while (left.size() < kMostRuns) {
    run(!left.empty() && leavesUpdates(step));
    left.push_back(trace.snapshot());
    for (size_t runs = 1; runs < left.size(); ++runs)
      if (left[runs - 1] == left.back() && (!parity || (left.size() - runs) % 2 == 0))
        return {true, left.size(), runs};
  }
  return {false, left.size(), 0};
}
/// The error where it was given up.
mlir::LogicalResult emitNotSteady(StepOp step);

/// Calls `run(trace, entry, pending)` for what a trainer runs, with copies of `fresh`:
/// @step until it is steady; each other entry point after that, and by itself; and
/// after @drain, when nothing is pending, each and @step again.
template <typename TraceT, typename RunT>
Training runEntries(mlir::ModuleOp module, const TraceT &fresh, RunT run) {
  auto runOn = [&](TraceT trace, StepOp entry, bool pending) { run(trace, entry, pending); };
  auto step = module.lookupSymbol<StepOp>("step"), drain = module.lookupSymbol<StepOp>("drain");
  Training done{true, 0, 0};
  TraceT training(fresh);
  if (step)
    done = trainUntilSteady(training, step, [&](bool pending) { run(training, step, pending); });
  if (!done.steady)
    return done;
  for (StepOp entry : module.getOps<StepOp>()) {
    if (entry == step)
      continue;
    runOn(fresh, entry, false);
    if (step)
      runOn(training, entry, leavesUpdates(step));
    else if (leavesUpdates(entry))
      runOn(fresh, entry, true);
  }
  if (!step || !drain)
    return done;
  run(training, drain, leavesUpdates(step));
  for (StepOp entry : module.getOps<StepOp>())
    if (entry != drain)
      runOn(training, entry, false);
  return done;
}

/// What all entry points compute (runEntries), and what they leave behind.
struct Computation {
  struct Run {
    std::vector<StorageTrace::Use> uses;
    std::vector<std::pair<mlir::Operation *, uint64_t>> finals; // storage, hash
  };
  Training training;
  std::vector<Run> runs; // those of training first

  static Computation compute(mlir::ModuleOp module);
  /// A run of @step, counted from 0, also one after it was steady.
  const Run &step(size_t i) const;
};

/// Succeeds if both are the same; else emits an error at the op that would find
/// something else, or the storage that would.
mlir::LogicalResult checkSameComputation(mlir::ModuleOp module, const Computation &before,
                                         const Computation &after, llvm::StringRef transformation);

/// The moves of a transformation, in the order in which it asks for them.
class Moves {
public:
  /// Whether to make the next one, of a transfer `op`. One that is not allowed must
  /// leave the program as it is, and is not asked for again.
  bool allow(mlir::Operation *op);
  /// Those asked for that are known to be bad.
  llvm::ArrayRef<mlir::Operation *> getRefused() const { return refusedMoves; }

private:
  friend struct EntryTransformer;
  size_t asked = 0, most = SIZE_MAX;
  std::set<size_t> refused;                    // by number
  std::vector<mlir::Operation *> refusedMoves; // met in this run
};

/// Transforms each entry point; a move after which the module would compute something
/// else is not made, and told in a remark named `name`. `transform` moves no kernel,
/// update or norm; it returns how much it did, which is set in `done` by entry point.
/// Returns what the module computes after that.
Computation transformEntries(mlir::ModuleOp module, llvm::StringRef name,
                             llvm::function_ref<unsigned(StepOp, Moves &)> transform,
                             std::map<mlir::Operation *, unsigned> &done);

} // namespace boa

#endif // BOA_PASSES_ANALYSIS_STORAGETRACE_H
