//===- StepSize.cpp -------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/schedule/StepSize.h"

#include "dialect/Config.h"

using namespace mlir;

namespace boa {

constexpr int64_t kMostLayerRuns = 131072;

static int64_t countLayers(ModuleOp module) {
  int64_t layers = 0;
  for (auto stage : module.getOps<StageOp>())
    layers += int64_t(stage.getRepeat());
  return layers;
}

int64_t countLayerRuns(ModuleOp module) {
  return countLayers(module) * Config(module).microBatches();
}

LogicalResult checkLayerRuns(ModuleOp module) {
  if (countLayerRuns(module) <= kMostLayerRuns)
    return success();
  const Config config(module);
  SmallVector<StageOp> stages(module.getOps<StageOp>());
  StageOp deepest = *llvm::max_element(
      stages, [](StageOp a, StageOp b) { return a.getRepeat() < b.getRepeat(); });
  return deepest.emitError("a step runs ")
         << countLayers(module) << " layers and stages for " << config.microBatches()
         << " micro-batches: the compiler places each such run by itself, and takes at most "
         << kMostLayerRuns << "; make micro_batch larger, or batch"
         << (config.plan.vocabulary_blocks > 1 ? ", vocabulary_blocks" : "")
         << " or the depth smaller";
}

} // namespace boa
