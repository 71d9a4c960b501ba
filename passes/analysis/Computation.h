//===- Computation.h - Whether two programs compute the same ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a module computes, as value numbers (Tracer.h), and how a transformation
// proves itself by them: it is made, looked at, and refused or undone where anything
// came out otherwise.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_ANALYSIS_COMPUTATION_H
#define BOA_PASSES_ANALYSIS_COMPUTATION_H

#include "passes/analysis/Tracer.h"

#include <set>

namespace boa {

/// What all entry points compute, in the runs of runEntries.
struct TracedComputation {
  bool steady = true;
  /// Something that came out, and where: a storage, or an entry point whose kernels saw
  /// something.
  struct Outcome {
    const char *run; // in words
    mlir::Operation *of;
    uint64_t value;
  };
  /// Results of each run; trained state when no update is pending, and the kernels and
  /// updates that ran until then, in any order.
  std::vector<Outcome> outcomes;
  /// What the step phase reads in all that, in any order.
  std::vector<Outcome> reads;
  /// Trained state after each step, some of whose updates may be pending.
  std::vector<Outcome> afterSteps;
  /// What all storages hold after each run, whoever reads it.
  std::vector<Outcome> left;

  static TracedComputation compute(mlir::ModuleOp module);
  /// All outcomes in one number, which is the same in the step and in the storage phase.
  int64_t meaning() const;
};

/// What the module computes as it is, for as long as passes preserve it: one that proves
/// itself hands on what it found, so that the next need not look again.
class CurrentComputation {
public:
  explicit CurrentComputation(mlir::Operation *module)
      : module(llvm::cast<mlir::ModuleOp>(module)) {}

  const TracedComputation &get() {
    if (!known)
      known = TracedComputation::compute(module);
    return *known;
  }
  /// For a pass that ends so; it must mark this analysis as preserved.
  void replace(TracedComputation after) { known = std::move(after); }
  /// For a pass that called `get` before it began: that the module computes the same still,
  /// which is then what is known. Else an error: it would not, as `wrong`.
  mlir::LogicalResult checkSame(llvm::StringRef wrong);

private:
  mlir::ModuleOp module;
  std::optional<TracedComputation> known;
};

/// Where they part; null where they do not. `eachStep`: also after each step, where updates
/// are pending in both.
const TracedComputation::Outcome *findDifference(const TracedComputation &before,
                                                 const TracedComputation &after,
                                                 bool eachStep = true);

/// An entry point in the step phase whose loops were transformed, and a clone that was made
/// before, after markOps.
struct Reordered {
  StepOp step, original;
};
/// Whether the module computes the same in the new order; what each storage is left with
/// counts, too. Else emits an error that names the dependence: which read of which entry
/// sees another write, or which write comes last, and in which iteration.
mlir::LogicalResult checkSameOrder(mlir::ModuleOp module, llvm::ArrayRef<Reordered> entries,
                                   const TracedComputation &before, const TracedComputation &after,
                                   llvm::StringRef transformation);

/// Numbers the ops of an entry point (attribute boa.mark), so that they are known
/// again in what is made of it; and removes the numbers.
void markOps(StepOp step);
void unmarkOps(StepOp step);

/// The moves of a transformation, in the order in which it asks for them.
class Moves {
public:
  /// Whether to make the next one, of a transfer `op`. One that is not allowed must
  /// leave the program as it is, and is not asked for again.
  bool allow(mlir::Operation *op);
  /// Those asked for that are known to be bad.
  struct Refusal {
    mlir::Location loc;
    std::string transferred;
  };
  llvm::ArrayRef<Refusal> getRefused() const { return refusedMoves; }

private:
  friend struct EntryTransformer;
  size_t asked = 0, most = SIZE_MAX;
  std::set<size_t> refused;          // by number
  std::vector<Refusal> refusedMoves; // met in this run: a later move may erase the op
};

/// Transforms each entry point of a module in the storage phase that computes `before`; a
/// move after which it would compute something else is not made, and told in a remark
/// named `name`. `transform` returns how much it did, which is set in `done` by entry
/// point. Returns what is computed then.
TracedComputation transformEntries(mlir::ModuleOp module, const TracedComputation &before,
                                   llvm::StringRef name,
                                   llvm::function_ref<unsigned(StepOp, Moves &)> transform,
                                   std::map<mlir::Operation *, unsigned> &done);

} // namespace boa

#endif // BOA_PASSES_ANALYSIS_COMPUTATION_H
