//===- Stages.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/model/Stages.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

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

} // namespace boa
