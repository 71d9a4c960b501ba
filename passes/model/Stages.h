//===- Stages.h - Where results and their gradients are stored --*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layer, or a stage that does not repeat, is an instance. The results of instances
// that follow one another and have one type are entries of one storage: @checkpoints
// if that is all of them, else one named after its first stage. Their gradients are in
// @boundary_gradients in the same way. A result that side inputs take, too, has two
// entries there: the sum of all its gradients, then what the next instance gives.
// What side inputs give is added up in a storage by itself before that.
//
// Gradients are of stages whose result depends on a trained parameter. Since stages form a
// chain, these are all from the first one that takes a trained parameter on. A stage before it
// has no backward pass. Where nothing is frozen, all stages have one.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_MODEL_STAGES_H
#define BOA_PASSES_MODEL_STAGES_H

#include "dialect/Boa.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <optional>

namespace boa {

/// Consecutive entries of a storage, from `entry` on.
struct EntryRange {
  std::string of; // the name of the storage, after its role
  int64_t entry = 0;

  EntryRange shifted(int64_t by) const { return {of, entry + by}; }
};

struct Stage {
  std::string name;
  int64_t repeat;
  bool first, last;
  bool isLayer = false;             // it repeats, or its group says so
  bool targets = false;             // it takes the targets: the last one, or another
  bool documents = false;           // it takes the starts of documents
  std::optional<int64_t> keys = {}; // it takes keys of dropout: the entry of its first instance
  llvm::SmallVector<unsigned> sides = {}; // the stages whose results are its side inputs
  bool isSide = false;                    // its result is a side input that has a gradient
  bool trains = true;                     // its result depends on a trained parameter
  bool givesGradient = true;              // its backward pass gives one to the stage before it
  int64_t saving = 0;                     // the last instances, which save activations
  EntryRange result = {}, gradient = {};  // of its first instance

  /// Whether its last layers save activations, and its first ones do not.
  bool savesSome() const { return saving > 0 && saving < repeat; }
  /// The entries that its last instance returns.
  EntryRange lastResult() const { return result.shifted(repeat - 1); }
  /// The entries of the gradient of that: the sum, and the part that the next instance gives.
  EntryRange lastGradient() const { return gradient.shifted(repeat - 1); }
  EntryRange givenGradient() const { return lastGradient().shifted(isSide ? 1 : 0); }
};

/// The stages of a module, whose entries are not assigned yet. Each must have its forward function.
llvm::SmallVector<Stage> findStages(mlir::ModuleOp module);

/// The entries that keys of dropout take: one for each instance that takes them.
int64_t countKeys(llvm::ArrayRef<Stage> stages);

/// A storage that holds the results of stages.
struct ResultStorage {
  std::string of; // the name of the storage, after its role
  mlir::Type type;
  int64_t results, gradients; // entries
};

/// Assigns entries to the results and gradients of all stages but the last, which returns the loss.
llvm::SmallVector<ResultStorage> assignEntries(llvm::MutableArrayRef<Stage> stages,
                                               mlir::ModuleOp module);

/// The function that a stage names: a body of one block on tensors, which returns one value that
/// is differentiable. Null, with an error, for any other. Passes of the model phase clone it.
mlir::func::FuncOp getForward(mlir::ModuleOp module, StageOp stage);

/// Whether `func` has a layout (CallLayout), and takes and returns as many activations as function
/// `function` of a stage does. A pass that makes calls of it relies on that.
mlir::LogicalResult checkSignature(mlir::FunctionOpInterface func, StageFunction function,
                                   const Stage &stage, llvm::ArrayRef<Stage> stages);

} // namespace boa

#endif // BOA_PASSES_MODEL_STAGES_H
