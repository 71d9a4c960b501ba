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

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_VERIFYMODEL
#include "passes/Passes.h.inc"

namespace {

/// An input that a trainer has.
struct TrainerInput {
  StringRef name;
  InputSource source;
};
constexpr TrainerInput kTrainerInputs[] = {
    {kTokens, InputSource::data},
    {kTargets, InputSource::data},
    {kDocumentStarts, InputSource::data},
    {kDropoutKeys, InputSource::seed},
};
/// Returns null if a trainer has none of that name.
const TrainerInput *findTrainerInput(StringRef name) {
  for (const TrainerInput &input : kTrainerInputs)
    if (input.name == name)
      return &input;
  return nullptr;
}

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

  /// Whether the module says what it is trained on. IR written by hand may leave it open.
  bool isConfigured() {
    return llvm::any_of(ArrayRef{kModelConfig, kTrainConfig, kPlanConfig},
                        [&](StringRef name) { return bool(getConfig(getOperation(), name)); });
  }

  /// Checks that a trainer can fill an input: it has a number for each token, from one source.
  /// Context may be absent.
  LogicalResult verifyInput(InputOp input) {
    untaken.insert({FlatSymbolRefAttr::get(input.getSymNameAttr()), input});
    const TrainerInput *known = findTrainerInput(input.getSymName());
    if (known && input.getSource() != known->source)
      return input.emitOpError("is from ")
             << stringifyInputSource(input.getSource()) << ", but a trainer has "
             << input.getSymName() << " from " << stringifyInputSource(known->source);
    if (!isConfigured())
      return success();
    const Config config(getOperation());
    const int64_t microBatch = config.microBatch(), context = config.model.context;
    if (!known)
      return input.emitOpError("expected tokens, targets, document_starts or dropout_keys, which a "
                               "trainer has, but found ")
             << input.getSymName();
    ArrayRef<int64_t> shape = input.getType().getShape();
    if (input.getType().getElementType().isInteger(32) && shape.size() == 2 &&
        shape[0] == microBatch && (context == 0 || shape[1] == context))
      return success();
    InFlightDiagnostic diag = input.emitOpError("is ")
                              << input.getType()
                              << ", but boa.config has micro_batch = " << microBatch;
    if (context != 0)
      diag << ", context = " << context;
    return diag << ": expected i32 for each token";
  }

  /// Checks what is compared with the vocabulary, and what attention sees.
  LogicalResult verifyData(func::FuncOp func) {
    if (!isConfigured())
      return success();
    const Config config(getOperation());
    auto verifyRows = [&](Operation *op, StringRef what, int64_t rows) -> LogicalResult {
      if (rows >= config.model.vocab)
        return success();
      return op->emitOpError("has ")
             << what << " of " << rows
             << " tokens, but boa.config has vocab = " << config.model.vocab;
    };
    WalkResult walked = func.walk([&](Operation *op) {
      LogicalResult result = success();
      if (auto embedding = dyn_cast<EmbeddingOp>(op); embedding && !embedding.getPartial())
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

  /// Whether a value is the argument that takes an input of the model.
  static bool isInput(StageOp stage, Value value, StringRef input) {
    auto arg = dyn_cast<BlockArgument>(value);
    const SmallVector<TakenAttr> takes = stage.getTaken();
    return arg && arg.getArgNumber() < takes.size() &&
           takes[arg.getArgNumber()].getFrom().getValue() == input;
  }

  LogicalResult verifyBody(StageOp stage, func::FuncOp func) {
    for (Operation &op : func.getBody().front().without_terminator()) {
      if (!isa<CostOpInterface, arith::ConstantOp>(op))
        return op.emitOpError("is not a compute op");
      // Only the tokens are rows of every table: a target that is left out is negative.
      if (auto embedding = dyn_cast<EmbeddingOp>(op);
          embedding && !embedding.getPartial() && !isInput(stage, embedding.getTokens(), kTokens))
        return op.emitOpError("expected the tokens that its stage takes");
      // A trainer gives starts in order, and kernels rely on that.
      if (auto attention = dyn_cast<AttentionOp>(op);
          attention && attention.getDocumentStarts() &&
          !isInput(stage, attention.getDocumentStarts(), kDocumentStarts))
        return op.emitOpError("expected the starts of documents that its stage takes");
      // A key of 0 is given where nothing is dropped.
      if (auto drop = dyn_cast<DropoutOp>(op);
          drop && drop.getKeys() && !isInput(stage, drop.getKeys(), kDropoutKeys))
        return op.emitOpError("expected the keys of dropout that its stage takes");
    }
    return success();
  }

  /// Checks that the last stage compares with the targets, and returns the loss.
  LogicalResult verifyLast(StageOp stage, func::FuncOp func) {
    if (llvm::none_of(stage.getTaken(),
                      [](TakenAttr taken) { return taken.getFrom().getValue() == kTargets; }))
      return stage.emitOpError("expected the last stage to take the targets");
    if (stage.getRepeat() > 1 || func.getNumResults() != 1)
      return stage.emitOpError("expected the last stage to return the loss alone, and once");
    auto loss = cast<RankedTensorType>(func.getResultTypes()[0]);
    if (loss.getRank() != 0)
      return stage.emitOpError("expected the last stage to return a scalar loss but found ")
             << loss;
    if (!loss.getElementType().isF32())
      return stage.emitOpError("expected the last stage to return a loss of f32 but found ")
             << loss;
    return success();
  }

  LogicalResult verifyStage(StageOp stage, func::FuncOp func, bool last) {
    if (failed(verifyFunction(stage, func)))
      return failure();
    if (!names.insert(stage.getStageName()).second)
      return stage.emitOpError("expected a name of its own but ")
             << stage.getStageName() << " is that of an earlier stage, or of a result of one";
    const SmallVector<TakenAttr> takes = stage.getTaken();
    for (TakenAttr taken : takes)
      untaken.erase(taken.getFrom());
    if (!last)
      untaken.insert({stage.getCalleeAttr(), stage});
    // The storages of further results are named after them.
    for (unsigned i = 1; i < func.getNumResults(); ++i)
      if (!names.insert((stage.getStageName() + "." + Twine(i)).str()).second)
        return stage.emitOpError("has a result ")
               << i << " of the name of stage " << stage.getStageName() << "." << i;
    if ((last && failed(verifyLast(stage, func))) || failed(verifyBody(stage, func)) ||
        failed(verifyActivations(func)) ||
        failed(verifyParams(stage, func, unsigned(takes.size()))))
      return failure();
    return verifyData(func);
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
      const bool isState = optimizer && optimizer.getStates().contains(name) &&
                           (!of.empty() || isa<InputOp>(*symbol));
      if (isState || name == "low" || symbolizeRole(name) ||
          (of.empty() && symbolizeEntryPoint(name)))
        return symbol.emitOpError("has the name of a storage or step that is made of the model: "
                                  "expected another one than @")
               << symbol.getName();
      // A training adds some of them to the model.
      if (findTrainerInput(symbol.getName()) && !isa<InputOp>(*symbol))
        return symbol.emitOpError("has the name of an input that a trainer has: expected another "
                                  "one than @")
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
    for (InputOp input : module.getOps<InputOp>())
      if (failed(verifyInput(input)))
        return signalPassFailure();
    SmallVector<StageOp> stages(module.getOps<StageOp>());
    if (stages.size() < 2) {
      module.emitError("expected at least two stages but found ") << stages.size();
      return signalPassFailure();
    }
    for (StageOp stage : stages) {
      auto func = module.lookupSymbol<func::FuncOp>(stage.getCallee());
      if (failed(verifyStage(stage, func, stage == stages.back())))
        return signalPassFailure();
    }
    if (!module.lookupSymbol<InputOp>(kTokens)) {
      module.emitError("expected an input @tokens");
      return signalPassFailure();
    }
    if (!untaken.empty()) {
      Operation *op = untaken.begin()->second;
      op->emitOpError(isa<InputOp>(op) ? "is taken by no stage"
                                       : "returns what no later stage takes");
      return signalPassFailure();
    }
    if (failed(verifyNames(stages)))
      signalPassFailure();
  }

  llvm::StringSet<> names; // of stages, and of their further results
  /// Inputs that no stage takes, and stages of which no later one takes a result.
  llvm::MapVector<Attribute, Operation *> untaken;
};

} // namespace
} // namespace boa
