//===- StageFunctions.cpp - What the functions of a stage take and return -===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/CallLayout.h"
#include "passes/model/Stages.h"

using namespace mlir;

namespace boa {

void eraseDeadOps(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

llvm::BitVector eraseUnusedInputs(func::FuncOp func, const Stage &stage) {
  llvm::BitVector unused(func.getNumArguments());
  for (unsigned i = 0; !func.isExternal() && i < stage.inputs.size(); ++i)
    unused[i] = func.getArgument(i).use_empty();
  (void)func.eraseArguments(unused);
  return unused;
}

CrossEntropyOp findLoss(func::FuncOp head, std::optional<unsigned> targets) {
  if (!targets || head.getNumResults() != 1 || !head.getArgument(*targets).hasOneUse())
    return {};
  return dyn_cast<CrossEntropyOp>(*head.getArgument(*targets).user_begin());
}

func::FuncOp createLogits(func::FuncOp head, StringRef stage, unsigned targets) {
  OpBuilder builder(head);
  builder.setInsertionPointAfter(head);
  auto func = cast<func::FuncOp>(builder.clone(*head));
  func.setName(getFunctionName(stage, StageFunction::logits));
  CrossEntropyOp loss = findLoss(func, targets);
  Block &body = func.getBody().front();
  Operation *terminator = body.getTerminator();
  OpBuilder end(terminator);
  Value logits = loss.getLogits();
  logits = end.createOrFold<CastOp>(loss.getLoc(), getSumType(logits.getType()), logits);
  terminator->setOperand(0, logits);
  eraseDeadOps(body); // the loss, and what was made of it
  (void)func.eraseResult(0);
  func.setFunctionType(builder.getFunctionType(func.getArgumentTypes(), {logits.getType()}));
  (void)func.eraseArgument(targets);
  return func;
}

static bool paramsStandLast(func::FuncOp func) {
  bool found = false;
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    const bool isParam = bool(func.getArgAttr(i, kParamAttr));
    if (found && !isParam)
      return false;
    found = isParam;
  }
  return true;
}

func::FuncOp getForward(ModuleOp module, StageOp stage) {
  auto func = module.lookupSymbol<func::FuncOp>(stage.getCallee());
  auto refuse = [&] { return stage.emitOpError("expected "); };
  if (!func || !func.getBody().hasOneBlock())
    (void)(refuse() << "a func.func of one block named @" << stage.getCallee());
  else if (std::string why = CallLayout::findFault(func); !why.empty())
    (void)(refuse() << "a function of tensors, but @" << stage.getCallee() << " " << why);
  else if (!isa<func::ReturnOp>(func.getBody().front().getTerminator()))
    (void)(refuse() << "@" << stage.getCallee() << " to end with func.return");
  else if (!paramsStandLast(func))
    (void)(refuse() << "only parameters behind the first one of @" << stage.getCallee());
  else
    return func;
  return nullptr;
}

/// Checks that a backward function takes the values that forward saves: packs of the same names and
/// types.
static LogicalResult checkSaved(FunctionOpInterface func, const CallLayout &layout,
                                const Stage &stage) {
  auto saving = func->getParentOfType<ModuleOp>().lookupSymbol<FunctionOpInterface>(
      getFunctionName(stage.name, StageFunction::forward_saving));
  SmallVector<CallSlot> saved;
  if (saving && CallLayout::findFault(saving).empty())
    saved = CallLayout::get(saving).outputs;
  for (const CallSlot &slot : layout.inputs)
    if (slot.kind == CallSlot::Kind::saved && llvm::none_of(saved, [&](const CallSlot &other) {
          return other.kind == slot.kind && other.group == slot.group && other.type == slot.type;
        }))
      return func.emitOpError("takes ")
             << slot.type << " of what was saved" << (slot.group.empty() ? "" : " as ")
             << slot.group << ", which @"
             << getFunctionName(stage.name, StageFunction::forward_saving) << " does not return";
  return success();
}

static LogicalResult checkCounts(FunctionOpInterface func, const Twine &what, int64_t takes,
                                 int64_t returns, int64_t adds, bool mayTakePositions = false) {
  if (std::string why = CallLayout::findFault(func); !why.empty())
    return func.emitOpError(why);
  const CallLayout layout = CallLayout::get(func);
  auto count = [](ArrayRef<CallSlot> slots, CallSlot::Kind kind) {
    return int64_t(llvm::count_if(slots, [&](const CallSlot &slot) { return slot.kind == kind; }));
  };
  int64_t inputs = count(layout.inputs, CallSlot::Kind::activation);
  const int64_t outputs = count(layout.outputs, CallSlot::Kind::activation);
  const int64_t sums = count(layout.outputs, CallSlot::Kind::sum);
  // Activations come first.
  if (mayTakePositions && inputs == takes + 1 &&
      layout.inputs[size_t(takes)].type.getElementType().isInteger())
    --inputs;
  if (inputs == takes && outputs == returns && sums == adds &&
      count(layout.inputs, CallSlot::Kind::sum) == 0)
    return success();
  return func.emitOpError("expected the ")
         << what << " to take " << takes << " activations and to return " << returns << ", and "
         << adds << " gradients to add up, but found " << inputs << ", " << outputs << " and "
         << sums;
}

LogicalResult checkSignature(FunctionOpInterface func, StageFunction function, const Stage &stage) {
  int64_t takes = int64_t(stage.inputs.size()), returns = int64_t(stage.results.size()), adds = 0;
  bool mayTakePositions = false;
  switch (function) {
  case StageFunction::backward:
  case StageFunction::backward_saved:
    takes +=
        llvm::count_if(stage.results, [](const StageResult &each) { return each.hasGradient; });
    returns = int64_t(stage.last);
    for (const StageInput &input : stage.inputs)
      if (input.hasGradient)
        ++(input.given ? returns : adds);
    break;
  case StageFunction::logits:
  case StageFunction::prefill:
  case StageFunction::generate:
    takes -= int64_t(stage.takes(kTargets));
    mayTakePositions = true;
    break;
  case StageFunction::forward:
  case StageFunction::forward_saving:
  case StageFunction::sum: // of a result: checkSum
    break;
  }
  if (failed(checkCounts(func,
                         stringifyStageFunction(function) + " function of stage " + stage.name,
                         takes, returns, adds, mayTakePositions)))
    return failure();
  return checkSaved(func, CallLayout::get(func), stage);
}

LogicalResult checkPredictable(FunctionOpInterface func, const Stage &stage) {
  for (const StageInput &each : stage.inputs)
    if (!each.isResult() && each.input != kTokens && !(stage.last && each.input == kTargets))
      return func.emitOpError("cannot predict: expected only tokens and results of stages but it "
                              "takes @")
             << each.input;
  return success();
}

static LogicalResult checkSum(FunctionOpInterface func, const StageResult &result) {
  return checkCounts(func, "sum function of " + result.name, result.given + int64_t(result.summed),
                     1, 0);
}

static func::FuncOp find(ModuleOp module, StringRef name, StageFunction function) {
  auto func = module.lookupSymbol<func::FuncOp>(getFunctionName(name, function));
  if (!func)
    module.emitError("expected a function @")
        << getFunctionName(name, function)
        << (function == StageFunction::forward ? "" : ", which --boa-differentiate makes");
  return func;
}

/// Checks the last stage, which returns the loss.
static LogicalResult checkEnd(ModuleOp module, const Stage &stage, bool predict) {
  func::FuncOp last = find(module, stage.name, StageFunction::forward);
  if (!predict && !stage.trains)
    return module.emitError("has nothing to train: every group is frozen");
  if (stage.results.size() != 1 || stage.repeat != 1)
    return last.emitOpError("expected the last stage to return the loss alone");
  if (predict && !findLoss(last, stage.find(kTargets)))
    return last.emitOpError("cannot predict: expected one boa.cross_entropy, and no other op, to "
                            "take the targets: its logits are the prediction");
  return success();
}

LogicalResult checkFunctions(ModuleOp module, ArrayRef<Stage> stages, bool predict) {
  if (stages.size() < 2)
    return module.emitError("expected at least two stages but found ") << stages.size();
  for (const Stage &stage : stages) {
    for (StageFunction function : {StageFunction::forward, StageFunction::backward,
                                   StageFunction::forward_saving, StageFunction::backward_saved}) {
      bool made = function != StageFunction::forward;
      if ((made && (predict || !stage.trains)) ||
          (function == StageFunction::forward_saving && !stage.saving) ||
          (function == StageFunction::backward_saved && !stage.savesSome()))
        continue;
      func::FuncOp func = find(module, stage.name, function);
      if (!func || failed(checkSignature(func, function, stage)) ||
          (predict && failed(checkPredictable(func, stage))))
        return failure();
    }
    for (const StageResult &result : stage.results)
      if (!predict && result.hasSum()) {
        func::FuncOp func = find(module, result.name, StageFunction::sum);
        if (!func || failed(checkSum(func, result)))
          return failure();
      }
  }
  return checkEnd(module, stages.back(), predict);
}

} // namespace boa
