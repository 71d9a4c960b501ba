//===- ScheduleTrace.h - A program, enumerated ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Control in the step and storage phases is static: every loop bound is a
// constant and every index is computed from induction variables. So the ops can
// be enumerated as they will run, with their concrete indices, in time
// proportional to layers x micro-batches, and dependences, liveness and traffic
// are exact instead of approximated.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_ANALYSIS_SCHEDULETRACE_H
#define BOA_PASSES_ANALYSIS_SCHEDULETRACE_H

#include "dialect/Boa.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>

namespace boa {

/// What a run of an entry point is given. Only loops whose direction depends on it
/// tell one step from another, and they tell even from odd.
struct RunNumbers {
  int64_t step = 2, pending = 1;
};
/// Whether there is such a loop.
bool dependsOnParity(StepOp step);
/// A run with an even number; where it makes a difference one with an odd one, too.
llvm::SmallVector<RunNumbers> getParities(StepOp step);

/// Concrete values of indices and conditions at one point of the enumeration.
class TraceState {
public:
  int64_t get(mlir::Value value) const;
  bool test(mlir::Value value, bool ifAbsent) const { return value ? get(value) != 0 : ifAbsent; }
  /// Row-major index of an entry; -1 if out of the storage's bounds.
  int64_t getEntry(StorageOp storage, mlir::OperandRange indices) const;

private:
  friend void trace(StepOp, llvm::function_ref<void(mlir::Operation *, const TraceState &)>,
                    RunNumbers numbers);
  friend struct Enumerator;
  llvm::DenseMap<mlir::Value, int64_t> values;
  llvm::DenseMap<mlir::Value, std::pair<bool, bool>> ends; // at first, at last
};

/// Calls `visit` for each op of the entry point in the order in which it runs,
/// except loops and index arithmetic. What the verifier of boa.step lets in is all
/// that there is.
void trace(StepOp step, llvm::function_ref<void(mlir::Operation *, const TraceState &)> visit,
           RunNumbers numbers = {});

/// The chunks that a storage-phase op touches at one point of the enumeration.
struct Access {
  StorageOp storage;
  int64_t entry = -1;           // -1: out of bounds, nothing moves
  int64_t first = 0, count = 0; // chunks
  int64_t getBytes() { return storage.getEntryBytes() / storage.getChunks() * count; }
  /// Same storage, entry and chunks.
  auto key() const {
    return std::make_tuple(const_cast<StorageOp &>(storage).getOperation(), entry, first, count);
  }
};

/// The access of a prefetch, create or offload; `storage` where it was looked up
/// before.
Access getAccess(mlir::Operation *op, const TraceState &state, StorageOp storage = {});

/// The prefetch or create that a buffer comes from.
mlir::Operation *getOrigin(mlir::Value buffer);

/// Which write each read sees, and which is the last to each entry.
///
/// Reads and writes are told apart by a number that the ops carry (markOps) and
/// by the iteration in which they run, so that the same execution is recognised
/// after the loops around it were transformed.
struct Dataflow {
  /// One execution of an op: its mark, and its iteration in words ("layer 1,
  /// micro_batch 3"), which does not depend on how the loops are nested.
  using Instance = std::pair<int64_t, std::string>;
  using Entry = std::pair<std::string, int64_t>; // storage, position
  /// The sorted writes that a value is made of: of an accumulated entry all its
  /// contributions.
  using Writes = std::vector<Instance>;
  std::map<std::pair<Instance, Entry>, Writes> reads;
  /// What each entry holds after the step: somebody may read it then.
  std::map<Entry, Writes> finals;
  /// The ops by mark, for messages.
  llvm::DenseMap<int64_t, mlir::Operation *> ops;

  static Dataflow compute(StepOp step, RunNumbers numbers = {});
};

/// Numbers the accesses of an entry point (attribute boa.mark), and removes it.
void markOps(StepOp step);
void unmarkOps(StepOp step);
/// The number of an op; -1: none.
int64_t getMark(mlir::Operation *op);

/// Succeeds if every read sees the same writes in both, and every entry ends with
/// the same; else emits an error on `step` that names the dependence.
mlir::LogicalResult checkSameDataflow(StepOp step, const Dataflow &before, const Dataflow &after,
                                      llvm::StringRef transformation);

} // namespace boa

#endif // BOA_PASSES_ANALYSIS_SCHEDULETRACE_H
