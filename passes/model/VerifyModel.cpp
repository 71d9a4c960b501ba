//===- VerifyModel.cpp ----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Closes the model phase: what holds after it, and what no single op's verifier can see.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/model/Activations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_VERIFYMODEL
#include "passes/Passes.h.inc"

namespace {

struct VerifyModel : impl::VerifyModelBase<VerifyModel> {
  using VerifyModelBase::VerifyModelBase;

  /// Checks the function of a stage: later passes find the stage by it, and clone it.
  LogicalResult verifyFunction(StageOp stage, func::FuncOp func) {
    if (!func || !func.getBody().hasOneBlock())
      return stage.emitOpError("expected a func.func of one block named @") << stage.getCallee();
    if (stage.getCallee() != getFunctionName(stage.getStageName(), StageFunction::forward))
      return stage.emitOpError("expected a function named NAME_forward but found @")
             << stage.getCallee();
    for (Type type : llvm::concat<const Type>(func.getArgumentTypes(), func.getResultTypes()))
      if (auto tensor = dyn_cast<RankedTensorType>(type); !tensor || !tensor.hasStaticShape())
        return stage.emitOpError("expected tensors of static shape in the type of @")
               << func.getName() << " but found " << type;
      else if (!hasByteSize(type))
        return stage.emitOpError("expected tensors of 1 to 2^40 elements of whole bytes in the "
                                 "type of @")
               << func.getName() << " but found " << type;
    if (!isa<func::ReturnOp>(func.getBody().front().getTerminator()))
      return stage.emitOpError("expected @") << func.getName() << " to end with func.return";
    return verifyNoLater(func);
  }

  /// Checks that attributes are absent which later passes set, and read from functions that they
  /// did not make.
  LogicalResult verifyNoLater(func::FuncOp func) {
    auto refuse = [&](StringRef name) {
      return func.emitOpError("has ") << name << ", which belongs to a later phase";
    };
    for (StringRef name : {StringRef(kSavedAttr), StringRef(kSumAttr), StringRef(kCacheAttr)}) {
      for (unsigned i = 0; i < func.getNumArguments(); ++i)
        if (func.getArgAttr(i, name))
          return refuse(name);
      for (unsigned i = 0; i < func.getNumResults(); ++i)
        if (func.getResultAttr(i, name) || func.getResultAttr(i, kParamAttr))
          return refuse(func.getResultAttr(i, name) ? name : StringRef(kParamAttr));
    }
    return success();
  }

  /// Checks that every layer takes its own entry of a group that repeats, and each parameter once.
  LogicalResult verifyParams(StageOp stage, func::FuncOp func, unsigned first) {
    StringRef name = stage.getStageName();
    llvm::SmallDenseSet<Attribute> seen;
    for (unsigned i = first; i < func.getNumArguments(); ++i) {
      auto param = func.getArgAttrOfType<SymbolRefAttr>(i, kParamAttr);
      if (!param)
        return stage.emitOpError("expected only parameters after the activations of @")
               << func.getName() << " but argument " << i << " is none";
      if (!seen.insert(param).second)
        return stage.emitOpError("takes ") << param << " twice: their gradients would be stored "
                                           << "in one place";
      auto group = getOperation().lookupSymbol<GroupOp>(param.getRootReference());
      if (!group) // not of this module: StageOp checks that it exists
        continue;
      bool own = getUserName(group.getSymName()) == name;
      if (group.getRepeat() != stage.getRepeat() && (own || group.getRepeat() != 1))
        return stage.emitOpError("repeats ")
               << stage.getRepeat() << " times but takes " << param << " of a group that repeats "
               << group.getRepeat() << " times";
    }
    return success();
  }

  /// Checks that a trainer can fill micro-batches of the configured shape. Context and vocabulary
  /// may be absent.
  LogicalResult verifyData(StageOp stage, func::FuncOp func, bool first, bool last) {
    ModuleOp module = getOperation();
    if (!getConfig(module, kModelConfig) && !getConfig(module, kTrainConfig) &&
        !getConfig(module, kPlanConfig))
      return success();
    const Config config(module);
    const int64_t microBatch = config.microBatch(), context = config.model.context;
    auto verifyIndices = [&](StringRef what, Type type) -> LogicalResult {
      auto shape = cast<RankedTensorType>(type).getShape();
      const bool fits = getElementTypeOrSelf(type).isInteger(32) && shape.size() == 2 &&
                        shape[0] == microBatch && (context == 0 || shape[1] == context);
      if (fits)
        return success();
      InFlightDiagnostic diag = stage.emitOpError("takes ") << what << " " << type;
      diag << ", but boa.config has micro_batch = " << microBatch;
      if (context != 0)
        diag << ", context = " << context;
      return diag;
    };
    auto verifyRows = [&](Operation *op, StringRef what, int64_t rows) -> LogicalResult {
      if (rows >= config.model.vocab)
        return success();
      return op->emitOpError("has ")
             << what << " of " << rows
             << " tokens, but boa.config has vocab = " << config.model.vocab;
    };
    if (first && failed(verifyIndices("tokens", func.getArgumentTypes()[0])))
      return failure();
    if ((last || stage.getTargets()) &&
        failed(verifyIndices("targets", func.getArgumentTypes()[1])))
      return failure();
    if (stage.getDocuments() &&
        failed(verifyIndices("the starts of documents",
                             func.getArgumentTypes()[last || stage.getTargets() ? 2 : 1])))
      return failure();
    if (stage.getDropout() &&
        failed(verifyIndices("the keys of dropout",
                             func.getArgumentTypes()[1 + unsigned(last || stage.getTargets()) +
                                                     unsigned(stage.getDocuments())])))
      return failure();
    WalkResult walked = func.walk([&](Operation *op) {
      LogicalResult result = success();
      if (auto embedding = dyn_cast<EmbeddingOp>(op))
        result = verifyRows(op, "a table", embedding.getTable().getType().getDimSize(0));
      else if (auto loss = dyn_cast<CrossEntropyOp>(op))
        result = verifyRows(op, "logits", loss.getLogits().getType().getShape().back());
      else if (auto attention = dyn_cast<AttentionOp>(op);
               attention && !attention.getCausal() &&
               config.train.objective == Objective::next_token)
        result = op->emitOpError("sees the token that it is to predict: expected causal attention "
                                 "for the objective next_token");
      return failed(result) ? WalkResult::interrupt() : WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }

  /// Checks that the last activations are the results of the stages that it lists.
  LogicalResult verifySides(StageOp stage, func::FuncOp func, unsigned activations) {
    SmallVector<StringRef> names = stage.getSideNames();
    for (auto [i, name] : llvm::enumerate(names)) {
      Type taken = func.getArgumentTypes()[activations - names.size() + i];
      if (taken != resultOf.lookup(name))
        return stage.emitOpError("takes ")
               << taken << " as the result of @" << getFunctionName(name, StageFunction::forward)
               << ", which returns " << resultOf.lookup(name);
    }
    return success();
  }

  LogicalResult verifyStage(StageOp stage, func::FuncOp func, bool first, bool last,
                            Type &boundary) {
    if (failed(verifyFunction(stage, func)))
      return failure();
    if (resultOf.contains(stage.getStageName()))
      return stage.emitOpError("expected a function for each stage but @")
             << stage.getCallee() << " is an earlier one's";
    unsigned activations = 0;
    while (activations < func.getNumArguments() && !func.getArgAttr(activations, kParamAttr))
      ++activations;
    const bool targets = last || stage.getTargets();
    const bool documents = stage.getDocuments(), dropout = stage.getDropout();
    const unsigned plain = 1 + unsigned(targets) + unsigned(documents) + unsigned(dropout);
    const unsigned sides = stage.getSideNames().size();
    if (activations != plain + sides) {
      InFlightDiagnostic diag = stage.emitOpError("expected ");
      if (plain == 1)
        diag << "one activation";
      else
        diag << (plain == 2   ? "two"
                 : plain == 3 ? "three"
                              : "four")
             << " activations (x" << (targets ? ", targets" : "")
             << (documents ? ", document_starts" : "") << (dropout ? ", dropout_keys" : "") << ")";
      if (sides > 0)
        diag << ", and " << sides << " of other stages,";
      return diag << " before the parameters of @" << func.getName() << " but found "
                  << activations;
    }
    if (func.getNumResults() != 1)
      return stage.emitOpError("expected one result of @") << func.getName();
    Type input = func.getArgumentTypes()[0], result = func.getResultTypes()[0];
    bool tokens = getElementTypeOrSelf(input).isInteger(32);
    if (first != tokens)
      return stage.emitOpError(first ? "expected the first stage to take token indices"
                                     : "expected only the first stage to take token indices");
    if (!first && input != boundary)
      return stage.emitOpError("takes ")
             << input << " but the stage before it returns " << boundary;
    if (failed(verifySides(stage, func, activations)))
      return failure();
    if (stage.getRepeat() > 1 && result != input)
      return stage.emitOpError("repeats, so its result must have the type of its input: ")
             << input << " but it returns " << result;
    if (last && cast<RankedTensorType>(result).getRank() != 0)
      return stage.emitOpError("expected the last stage to return a scalar loss but found ")
             << result;
    if (last && !getElementTypeOrSelf(result).isF32())
      return stage.emitOpError("expected the last stage to return a loss of f32 but found ")
             << result;
    for (Operation &op : func.getBody().front().without_terminator()) {
      if (!isa<CostOpInterface, arith::ConstantOp>(op))
        return op.emitOpError("is not a compute op");
      // Only the tokens are rows of every table: a target that is left out is negative.
      if (auto embedding = dyn_cast<EmbeddingOp>(op);
          embedding && !(first && embedding.getTokens() == func.getArgument(0)))
        return op.emitOpError("expected the tokens that the first stage takes");
      // A trainer gives starts in order, and kernels rely on that.
      if (auto attention = dyn_cast<AttentionOp>(op);
          attention && attention.getDocumentStarts() &&
          (!documents ||
           attention.getDocumentStarts() != func.getArgument(plain - 1 - unsigned(dropout))))
        return op.emitOpError("expected the starts of documents that its stage takes");
      // A key of 0 is given where nothing is dropped.
      if (auto drop = dyn_cast<DropoutOp>(op);
          drop && drop.getKeys() && (!dropout || drop.getKeys() != func.getArgument(plain - 1)))
        return op.emitOpError("expected the keys of dropout that its stage takes");
    }
    if (failed(verifyActivations(func)) || failed(verifyParams(stage, func, activations)) ||
        failed(verifyData(stage, func, first, last)))
      return failure();
    boundary = resultOf[stage.getStageName()] = result;
    return success();
  }

  /// Checks the names that later phases give to storages, steps and functions. Groups of the
  /// language have names of their own (kGroupPrefix).
  LogicalResult verifyNames(ArrayRef<StageOp> stages) {
    llvm::StringSet<> functions;
    for (StageOp stage : stages)
      functions.insert(stage.getCallee());
    OptimizerOp optimizer = findOptimizer(getOperation());
    for (auto symbol : getOperation().getOps<SymbolOpInterface>()) {
      if (isa<FunctionOpInterface>(*symbol)) {
        if (!functions.contains(symbol.getName()))
          return symbol.emitOpError("is no stage's function: a model has only those");
        continue;
      }
      auto [name, of] = symbol.getName().split('.');
      const bool isState = optimizer && optimizer.getStates().contains(name) && !of.empty();
      if (isState || name == "low" || symbolizeRole(name) ||
          (of.empty() && symbolizeEntryPoint(name)))
        return symbol.emitOpError("has the name of a storage or step that is made of the model: "
                                  "expected another one than @")
               << symbol.getName();
    }
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    // The next phase makes these, and relies on the sizes that are checked here.
    for (Operation &op : module.getOps())
      if (isa<StepOp, StorageOp>(op)) {
        op.emitOpError("belongs to a later phase: expected only the model");
        return signalPassFailure();
      }
    const Config config(module);
    if (std::string conflict = FindConflict(config.model, config.train, config.plan);
        !conflict.empty()) {
      module.emitError("boa.config: expected ") << conflict;
      return signalPassFailure();
    }
    SmallVector<StageOp> stages(module.getOps<StageOp>());
    if (stages.size() < 2) {
      module.emitError("expected at least two stages but found ") << stages.size();
      return signalPassFailure();
    }
    Type boundary;
    for (auto [i, stage] : llvm::enumerate(stages)) {
      auto func = module.lookupSymbol<func::FuncOp>(stage.getCallee());
      if (failed(verifyStage(stage, func, i == 0, i + 1 == stages.size(), boundary)))
        return signalPassFailure();
    }
    if (failed(verifyNames(stages)))
      signalPassFailure();
  }

  llvm::StringMap<Type> resultOf; // by the name of the stage
};

} // namespace
} // namespace boa
