//===- Stages.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/model/Stages.h"

#include "dialect/CallLayout.h"

using namespace mlir;

namespace boa {

/// Whether a stage takes a parameter that is trained, or has no forward function.
static bool takesTrained(ModuleOp module, StageOp stage) {
  auto func = module.lookupSymbol<FunctionOpInterface>(stage.getCallee());
  for (unsigned i = 0; func && i < func.getNumArguments(); ++i)
    if (auto param = func.getArgAttrOfType<SymbolRefAttr>(i, kParamAttr)) {
      auto group = module.lookupSymbol<GroupOp>(param.getRootReference());
      if (!group || !group.getFrozen())
        return true;
    }
  return !func;
}

SmallVector<Stage> findStages(ModuleOp module) {
  SmallVector<Stage> stages;
  llvm::StringMap<unsigned> numbers;
  for (auto op : module.getOps<StageOp>()) {
    Stage &stage = stages.emplace_back(
        Stage{op.getStageName().str(), int64_t(op.getRepeat()), stages.empty(), false});
    stage.targets = op.getTargets();
    stage.documents = op.getDocuments();
    if (op.getDropout())
      stage.keys = countKeys(ArrayRef(stages).drop_back());
    for (StringRef side : op.getSideNames())
      stage.sides.push_back(numbers.lookup(side));
    numbers[stage.name] = unsigned(stages.size() - 1);
    stage.isLayer =
        stage.repeat > 1 || llvm::any_of(module.getOps<GroupOp>(), [&](GroupOp group) {
          return group->hasAttr(kLayerAttr) && getUserName(group.getSymName()) == stage.name;
        });
    auto saves = op.getSaves();
    if (saves || module.lookupSymbol(getFunctionName(stage.name, StageFunction::forward_saving)))
      stage.saving = saves.value_or(stage.repeat);
    const bool before = stages.size() > 1 && stages[stages.size() - 2].trains;
    stage.trains = before || takesTrained(module, op);
    // A layer gives one to the layer before it.
    stage.givesGradient = !stage.first && (before || (stage.trains && stage.repeat > 1));
  }
  for (const Stage &stage : stages)
    for (unsigned side : stage.sides)
      stages[side].isSide = stages[side].trains;
  if (!stages.empty())
    stages.back().last = stages.back().targets = true;
  return stages;
}

int64_t countKeys(ArrayRef<Stage> stages) {
  int64_t keys = 0;
  for (const Stage &stage : stages)
    keys += stage.keys ? stage.repeat : 0;
  return keys;
}

SmallVector<ResultStorage> assignEntries(MutableArrayRef<Stage> stages, ModuleOp module) {
  auto typeOf = [&](const Stage &stage) {
    auto func = module.lookupSymbol<FunctionOpInterface>(
        getFunctionName(stage.name, StageFunction::forward));
    return func.getResultTypes()[0];
  };
  SmallVector<ResultStorage> storages;
  for (Stage &stage : stages.drop_back()) {
    if (storages.empty() || storages.back().type != typeOf(stage))
      storages.push_back({stage.name, typeOf(stage), 0, 0});
    ResultStorage &storage = storages.back();
    stage.result = {storage.of, storage.results};
    stage.gradient = {storage.of, storage.gradients};
    storage.results += stage.repeat;
    if (stage.trains)
      storage.gradients += stage.repeat + (stage.isSide ? 1 : 0);
    else if ((&stage)[1].givesGradient) { // nobody reads what its first layer gives
      stage.gradient.entry -= stage.repeat - 1;
      ++storage.gradients;
    }
  }
  if (storages.size() == 1) {
    storages.front().of.clear();
    for (Stage &stage : stages)
      stage.result.of = stage.gradient.of = "";
  }
  return storages;
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
  else if (!isa<func::ReturnOp>(func.getBody().front().getTerminator()) ||
           func.getNumResults() != 1 ||
           !isa<FloatType>(getElementTypeOrSelf(func.getResultTypes()[0])))
    (void)(refuse() << "@" << stage.getCallee()
                    << " to return one tensor of floating-point numbers");
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

LogicalResult checkSignature(FunctionOpInterface func, StageFunction function, const Stage &stage,
                             ArrayRef<Stage> stages) {
  if (std::string why = CallLayout::findFault(func); !why.empty())
    return func.emitOpError(why);
  using Slots = ArrayRef<CallSlot>;
  auto count = [](Slots slots, auto is) { return int64_t(llvm::count_if(slots, is)); };
  auto isOf = [](CallSlot::Kind kind) {
    return [kind](const CallSlot &slot) { return slot.kind == kind; };
  };
  const CallLayout layout = CallLayout::get(func);
  int64_t inputs = count(layout.inputs, isOf(CallSlot::Kind::activation));
  const int64_t outputs = count(layout.outputs, isOf(CallSlot::Kind::activation));
  const int64_t sums = count(layout.outputs, isOf(CallSlot::Kind::sum));
  int64_t takes = 1 + int64_t(stage.sides.size()), returns = 1, adds = 0;
  switch (function) {
  case StageFunction::backward:
  case StageFunction::backward_saved:
    takes += 1; // the gradient of the result
    returns = int64_t(stage.last) + int64_t(stage.givesGradient);
    adds = llvm::count_if(stage.sides, [&](unsigned side) { return stages[side].trains; });
    [[fallthrough]];
  case StageFunction::forward:
  case StageFunction::forward_saving:
    takes += int64_t(stage.targets) + int64_t(stage.documents) + int64_t(stage.keys.has_value());
    break;
  case StageFunction::sum:
    takes = 2;
    break;
  case StageFunction::logits:
  case StageFunction::prefill:
  case StageFunction::generate: {
    // Positions, where attention or a table of them asks for any.
    auto isPositions = [&](const CallSlot &slot) {
      return slot.kind == CallSlot::Kind::activation && slot.type.getElementType().isInteger() &&
             &slot != layout.inputs.begin();
    };
    inputs -= count(layout.inputs, isPositions);
    break;
  }
  }
  if (inputs == takes && outputs == returns && sums == adds &&
      count(layout.inputs, isOf(CallSlot::Kind::sum)) == 0)
    return checkSaved(func, layout, stage);
  return func.emitOpError("expected the ")
         << stringifyStageFunction(function) << " function of stage " << stage.name << " to take "
         << takes << " activations and to return " << returns << ", and " << adds
         << " gradients of side inputs, but found " << inputs << ", " << outputs << " and " << sums;
}

} // namespace boa
