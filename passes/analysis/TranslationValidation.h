//===- TranslationValidation.h - Equal results ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The results of a module as value numbers (Tracer.h). A transformation proves itself by
// them: a pass makes it, compares the results, and refuses or undoes it if they differ.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_ANALYSIS_TRANSLATIONVALIDATION_H
#define BOA_PASSES_ANALYSIS_TRANSLATIONVALIDATION_H

#include "passes/analysis/Tracer.h"

#include <set>

namespace boa {

/// The results of all entry points, in the runs of runEntries.
struct TracedComputation {
  bool steady = true;
  /// A value that came out, and where: a storage, or an entry point whose kernels saw something.
  struct Outcome {
    const char *run; // in words
    mlir::Operation *of;
    uint64_t value;
  };
  /// The results of each run: trained state when no update is pending, and the kernels and updates
  /// that ran until then, in any order.
  std::vector<Outcome> outcomes;
  /// The reads of the step phase in these runs, in any order.
  std::vector<Outcome> reads;
  /// The trained state after each step, some of whose updates may be pending.
  std::vector<Outcome> afterSteps;
  /// The contents of all storages after each run, read or not.
  std::vector<Outcome> left;

  static TracedComputation compute(mlir::ModuleOp module);
  /// All outcomes in one number, which is the same in the step and in the storage phase.
  int64_t hash() const;
};

/// The results of the current module, an analysis that passes preserve. A pass that proves
/// itself hands its findings on, so that the next pass need not trace the module again.
class CurrentComputation {
public:
  explicit CurrentComputation(mlir::Operation *module)
      : module(llvm::cast<mlir::ModuleOp>(module)) {}

  const TracedComputation &get() {
    if (!known)
      known = TracedComputation::compute(module);
    return *known;
  }
  /// Keeps the results that a pass found for its new module. The pass must mark this analysis as
  /// preserved.
  void replace(TracedComputation after) { known = std::move(after); }
  /// Checks that the module still computes the same, and keeps these results. Otherwise emits the
  /// error `wrong`. The pass must have called `get` before it changed the module.
  mlir::LogicalResult checkSame(llvm::StringRef wrong);

private:
  mlir::ModuleOp module;
  std::optional<TracedComputation> known;
};

/// The first outcome that differs; null if none does. With `eachStep` it also compares the state
/// after each step, where updates are pending in both.
const TracedComputation::Outcome *findDifference(const TracedComputation &before,
                                                 const TracedComputation &after,
                                                 bool eachStep = true);

/// The first outcome that differs between two lists; null if none does.
const TracedComputation::Outcome *
findDifference(const std::vector<TracedComputation::Outcome> &before,
               const std::vector<TracedComputation::Outcome> &after);

/// A copy of a module without the code of its stages, which nobody traces.
mlir::OwningOpRef<mlir::ModuleOp> copyProgram(mlir::ModuleOp module);

/// Numbers the ops of entry points in the step phase (attribute boa.mark), so that a pass
/// recognises them after a transformation; and removes the numbers.
void markOps(mlir::ModuleOp module);
void unmarkOps(mlir::ModuleOp module);
/// Whether the module computes the same in the new order as `original` did, final contents of
/// storages included: a copy that was made before, after markOps. Otherwise emits an error that
/// names the dependence: the read that sees another write, or the write that comes last, with its
/// entry and iteration.
mlir::LogicalResult checkSameOrder(mlir::ModuleOp module, mlir::ModuleOp original,
                                   const TracedComputation &before, const TracedComputation &after,
                                   llvm::StringRef transformation);

/// Decides which moves a transformation may make. It knows them by the order in which they are
/// asked for.
class MoveFilter {
public:
  /// Whether to make the next move, of a transfer `op`. The pass does not make a move that is
  /// refused, and does not ask for it again.
  bool allow(mlir::Operation *op);
  /// Moves that are known to be wrong.
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

/// Transforms each entry point of a module in the storage phase, and keeps the results of the
/// new module. A move that would change the results is not made. Remarks named `name` report these,
/// and of each entry point the number that `transform` returns, as `metric`.
void transformEntries(mlir::ModuleOp module, CurrentComputation &computation, llvm::StringRef name,
                      llvm::StringRef metric,
                      llvm::function_ref<unsigned(StepOp, MoveFilter &)> transform);

} // namespace boa

#endif // BOA_PASSES_ANALYSIS_TRANSLATIONVALIDATION_H
