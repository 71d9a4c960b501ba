//===- Enumeration.h - A program, op by op as it will run -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Control in the step and storage phases is static: every loop bound is a
// constant and every index is computed from induction variables. So a pass can
// enumerate the ops as they will run, with their concrete indices, in time
// proportional to layers x micro-batches. Dependences, liveness and traffic are exact,
// not approximated.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_ANALYSIS_ENUMERATION_H
#define BOA_PASSES_ANALYSIS_ENUMERATION_H

#include "dialect/Boa.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace boa {

/// The arguments of a run of an entry point: the number of its step, and the number of the
/// step whose updates are outstanding, 0 for none.
struct RunNumbers {
  int64_t step = 1, pending = 0;
};
/// Whether even steps run in another order than odd ones.
bool dependsOnParity(StepOp step);

/// The place of an enumeration: concrete values of indices and conditions.
class Position final : public IndexValues {
public:
  int64_t get(mlir::Value value) const override;
  std::pair<bool, bool> getEnds(mlir::Value induction) const override {
    return ends.lookup(induction);
  }
  bool test(mlir::Value value, bool ifAbsent) const { return value ? get(value) != 0 : ifAbsent; }
  /// The number of values that `chunk` has at once, from get(chunk) on: more than one in a loop
  /// that is taken as one.
  int64_t span(mlir::Value chunk) const { return chunk && chunk == spanned ? spanning : 1; }
  /// The row-major index of an entry; -1 if out of the storage's bounds.
  int64_t getEntry(StorageOp storage, llvm::ArrayRef<mlir::Value> indices) const;
  /// The loops around, outermost first, and where each is.
  using Iteration = llvm::SmallVector<std::pair<Dimension, int64_t>, 3>;
  const Iteration &iteration() const { return loops; }
  /// A number that differs between two iterations of one enumeration.
  int64_t serial() const { return number; }

private:
  friend struct Enumerator;

  llvm::DenseMap<mlir::Value, int64_t> values; // each computed once, where its op stands
  llvm::DenseMap<mlir::Value, std::pair<bool, bool>> ends; // at first, at last
  Iteration loops;
  int64_t number = 0, spanning = 1;
  mlir::Value spanned;
};

/// The iteration as text: "layer 1, micro_batch 3". It does not depend on how the loops are nested.
std::string describeIteration(const Position::Iteration &iteration);

/// Calls `visit` for each op of the entry point in the order in which it runs,
/// except loops and index arithmetic. The verifier of boa.step lets in no other ops.
/// `together` returns the number of iterations of a loop over chunks, from `chunk` on, that
/// may be visited at once (boa.loop): their order does not matter then.
void enumerate(StepOp step, RunNumbers numbers,
               llvm::function_ref<void(mlir::Operation *, const Position &)> visit,
               llvm::function_ref<int64_t(LoopOp, int64_t chunk)> together);

} // namespace boa

#endif // BOA_PASSES_ANALYSIS_ENUMERATION_H
