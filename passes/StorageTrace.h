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
#ifndef BOA_PASSES_STORAGETRACE_H
#define BOA_PASSES_STORAGETRACE_H

#include "passes/ScheduleTrace.h"

#include <memory>
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

  /// Runs an entry point on what earlier ones left. Retained copies are left, too,
  /// where the same entry point follows, as steps of training do.
  void run(StepOp entry, int64_t pending);

  /// What a kernel, update or norm found in one of its operands.
  struct Use {
    mlir::Operation *op;
    unsigned operand;
    uint64_t contents; // hash of versions
    bool operator==(const Use &other) const {
      return op == other.op && operand == other.operand && contents == other.contents;
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

  /// Versions of an entry's chunks in its home.
  Version *homeOf(const Access &access);
  std::vector<Version> contentsOf(const Buffer &buffer);
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
  Version next = 0;
};

/// Calls `run(trace, entry, pending)` with copies of `fresh`: for each entry point
/// alone, with and without a pending step if it asks for that; for three steps of
/// training; and for each other entry point after those.
template <typename TraceT, typename RunT>
void runEntries(mlir::ModuleOp module, const TraceT &fresh, RunT run) {
  auto runOn = [&](TraceT trace, StepOp entry, int64_t pending) { run(trace, entry, pending); };
  auto step = module.lookupSymbol<StepOp>("step");
  for (StepOp entry : module.getOps<StepOp>()) {
    runOn(fresh, entry, 1);
    if (entry != step && !entry.getPending().use_empty())
      runOn(fresh, entry, 0);
  }
  if (!step)
    return;
  TraceT training(fresh);
  run(training, step, 0);
  run(training, step, 1);
  if (!step.getPending().use_empty())
    run(training, step, 1);
  for (StepOp entry : module.getOps<StepOp>())
    if (entry != step)
      runOn(training, entry, 1);
}

/// What all entry points compute (runEntries), and what they leave behind.
struct Computation {
  std::vector<StorageTrace::Use> uses;
  std::vector<std::pair<mlir::Operation *, uint64_t>> finals; // storage, hash

  static Computation compute(mlir::ModuleOp module);
};

/// Succeeds if both are the same; else emits an error at the op that would find
/// something else, or the storage that would.
mlir::LogicalResult checkSameComputation(const Computation &before, const Computation &after,
                                         llvm::StringRef transformation);

/// Transforms each entry point, and restores it where the module would then
/// compute something else. `transform` moves no kernel, update or norm; it returns
/// how much it did, which is added to `done` by entry point unless it was undone.
/// Returns what the module computes after that.
Computation transformEntries(mlir::ModuleOp module, llvm::function_ref<unsigned(StepOp)> transform,
                             std::map<mlir::Operation *, unsigned> &done);

} // namespace boa

#endif // BOA_PASSES_STORAGETRACE_H
