//===- Stages.h - Where results and their gradients are stored --*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layer, or a stage that does not repeat, is an instance. A result of a stage has an entry for
// each instance. It goes on in the storage of the argument of its number, behind it, where that is
// the last of its storage and of one type. Else it begins a storage, @checkpoints.NAME, or
// @checkpoints.NAME.1 for its second result; @checkpoints if that is the only one. A carried
// argument is stored there before each layer, unless the first layer takes it from elsewhere.
//
// Gradients of results are in @boundary_gradients in the same way. A use of a result is given if
// the gradient from there is written. The others are added up in f32, in a storage by itself. A
// result that does not have one given use alone has an entry for what each gives, and a function
// that adds up all of them.
//
// A result has a gradient if it is of floating-point numbers, its stage depends on a trained
// parameter, and its gradient is not always zero. A stage that depends on none has no backward
// pass. Where nothing is frozen, all stages have one.
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

/// An argument of a stage's function.
struct StageInput {
  std::string input = {}; // of the model; empty: it takes a result of a stage
  bool fromSeed = false;  // the input has an entry for each layer, too (countSeedEntries)
  unsigned stage = 0, result = 0;
  bool carried = false;     // a layer takes what the layer before it returns
  bool hasGradient = false; // the backward function returns it
  bool given = false;       // that is written, where others are added up
  bool follows = false;     // carried: it lies before the results of the first layer
  EntryRange gradient = {}; // given: where the first instance writes it

  bool isResult() const { return input.empty(); }
};

struct StageResult {
  mlir::Type type;
  std::string name; // of its stage, or "NAME.1"
  bool hasGradient = false;
  unsigned given = 0;                          // the number of its uses that write a gradient
  bool summed = false;                         // others are added up
  EntryRange value = {}, gradient = {};        // of the first instance
  llvm::SmallVector<EntryRange, 0> parts = {}; // what uses write, if there is a sum

  /// Whether its gradient is a sum. Otherwise the only use writes it.
  bool hasSum() const { return hasGradient && (summed || given != 1); }
};

struct Stage {
  std::string name;
  int64_t repeat;
  bool last = false;
  bool isLayer = false;  // it repeats, or its group says so
  bool trains = true;    // its results depend on a trained parameter
  int64_t saving = 0;    // the last instances, which save activations
  int64_t seedEntry = 0; // of its first instance, in inputs from the seed
  llvm::SmallVector<StageInput, 0> inputs = {};
  llvm::SmallVector<StageResult, 0> results = {};

  /// Whether its last layers save activations, and its first ones do not.
  bool savesSome() const { return saving > 0 && saving < repeat; }
  /// The number of the argument that takes an input of the model, if one does.
  std::optional<unsigned> find(llvm::StringRef input) const;
  bool takes(llvm::StringRef input) const { return find(input).has_value(); }
  /// Whether the first layer takes an argument from elsewhere than the others do.
  bool beginsApart() const;
};

/// The stages of a module, whose entries are not assigned yet.
llvm::SmallVector<Stage> findStages(mlir::ModuleOp module);

/// The layers that an input from the seed has entries for: the instances of stages that take any
/// such input. The stages are the first ones of a module.
int64_t countSeedEntries(llvm::ArrayRef<Stage> stages);

/// A storage that holds the results of stages.
struct ResultStorage {
  std::string of; // the name of the storage, after its role
  mlir::Type type;
  int64_t results = 0, gradients = 0; // entries
};

/// The place of argument `number` of a stage, for layers from `first` on, and whether it goes on
/// from layer to layer. With `gradient` these are the place of its gradient, and whether that does.
std::pair<EntryRange, bool> locate(llvm::ArrayRef<Stage> stages, const Stage &stage,
                                   unsigned number, int64_t first, bool gradient = false);

/// Assigns entries to the results and gradients of all stages but the last, which returns the loss.
llvm::SmallVector<ResultStorage> assignEntries(llvm::MutableArrayRef<Stage> stages);

/// Erases the ops of a body whose results nothing uses.
void eraseDeadOps(mlir::Block &body);

/// Erases the arguments of a function that take what `stage` does, but that it does not use.
/// Returns their numbers.
llvm::BitVector eraseUnusedInputs(mlir::func::FuncOp func, const Stage &stage);

/// The function that a stage names: a body of one block on tensors. Null, with an error, for any
/// other. Passes of the model phase clone it.
mlir::func::FuncOp getForward(mlir::ModuleOp module, StageOp stage);

/// The op that compares the logits with the targets; none if other ops take the targets, too.
/// `targets` is the number of the argument that takes them.
CrossEntropyOp findLoss(mlir::func::FuncOp head, std::optional<unsigned> targets);

/// Makes @NAME_logits: the last stage without its loss and its targets. The logits are in f32.
/// The stage must have a loss that `findLoss` finds.
mlir::func::FuncOp createLogits(mlir::func::FuncOp head, llvm::StringRef stage, unsigned targets);

/// Whether `func` has a layout (CallLayout), and takes and returns as many activations as function
/// `function` of a stage does. A pass that makes calls of it relies on that.
mlir::LogicalResult checkSignature(mlir::FunctionOpInterface func, StageFunction function,
                                   const Stage &stage);

/// Checks that a stage takes no input that a text does not have: the tokens, and in the last stage
/// the targets, which predictions leave out.
mlir::LogicalResult checkPredictable(mlir::FunctionOpInterface func, const Stage &stage);

/// Checks all functions that a step calls, or, with `predict`, a forward pass to the logits.
mlir::LogicalResult checkFunctions(mlir::ModuleOp module, llvm::ArrayRef<Stage> stages,
                                   bool predict);

} // namespace boa

#endif // BOA_PASSES_MODEL_STAGES_H
