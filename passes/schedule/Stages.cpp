//===- Stages.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/schedule/Stages.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace boa {

SmallVector<Stage> findStages(ModuleOp module) {
  SmallVector<Stage> stages;
  llvm::StringMap<unsigned> numbers;
  for (auto op : module.getOps<StageOp>()) {
    Stage &stage = stages.emplace_back(
        Stage{op.getStageName().str(), int64_t(op.getRepeat()), stages.empty(), false});
    for (StringRef side : op.getSideNames())
      stage.sides.push_back(numbers.lookup(side));
    numbers[stage.name] = unsigned(stages.size() - 1);
  }
  for (const Stage &stage : stages)
    for (unsigned side : stage.sides)
      stages[side].isSide = true;
  if (!stages.empty())
    stages.back().last = true;
  return stages;
}

SmallVector<Run> assignRows(MutableArrayRef<Stage> stages, ModuleOp module) {
  auto typeOf = [&](const Stage &stage) {
    auto func = module.lookupSymbol<FunctionOpInterface>(
        getFunctionName(stage.name, StageFunction::forward));
    return func.getResultTypes()[0];
  };
  SmallVector<Run> runs;
  for (Stage &stage : stages.drop_back()) {
    if (runs.empty() || runs.back().type != typeOf(stage))
      runs.push_back({stage.name, typeOf(stage), 0, 0});
    Run &run = runs.back();
    stage.result = {run.of, run.results};
    stage.gradient = {run.of, run.gradients};
    run.results += stage.repeat;
    run.gradients += stage.repeat + (stage.isSide ? 1 : 0);
  }
  if (runs.size() == 1) {
    runs.front().of.clear();
    for (Stage &stage : stages)
      stage.result.of = stage.gradient.of = "";
  }
  return runs;
}

} // namespace boa
