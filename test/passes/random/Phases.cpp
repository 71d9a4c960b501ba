//===- Phases.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/Phases.h"

#include "passes/Passes.h"
#include "passes/target/cpu/CpuPipeline.h"

#include "mlir/Conversion/Passes.h"

using namespace mlir;

namespace boa::random {

static std::vector<PhasePass> makePasses(Purpose purpose) {
  std::vector<PhasePass> passes;
  auto add = [&](const char *name, auto make, bool begins = false, bool closes = false) {
    passes.push_back({name, [make](OpPassManager &pm) { pm.addPass(make()); }, begins, closes});
  };
  add("verify-model", createVerifyModel, true, true);
  if (purpose == Purpose::generate) {
    add("cache-attention", [] { return createCacheAttention(); });
    add("build-generation", createBuildGeneration, true);
  } else {
    if (purpose == Purpose::train) {
      add("block-vocabulary", createBlockVocabulary);
      add("mask-documents", createMaskDocuments);
      add("differentiate", [] { return createDifferentiate(); });
    }
    BuildStepOptions options;
    options.predict = purpose == Purpose::predict;
    add("build-step", [options] { return createBuildStep(options); }, purpose == Purpose::train);
  }
  add("vertical-schedule", [] { return createVerticalSchedule(); }, true);
  add("split-optimizer", [] { return createSplitOptimizer(); });
  add("contract-storage", createContractStorage);
  add("verify-step", createVerifyStep, true, true);
  add("insert-offload", createInsertOffload);
  add("hoist-prefetch", createHoistPrefetch, true);
  add("elide-transfers", createElideTransfers);
  add("retain-buffers", createRetainBuffers);
  add("elide-offloads", createElideOffloads);
  add("verify-storage", createVerifyStorage, true, true);
  add("outline-kernels", createOutlineKernels);
  passes.push_back({"the kernels' passes",
                    [](OpPassManager &pm) { buildCpuPipeline(pm, /*blockRows=*/0, true); }, true});
  if (purpose != Purpose::train)
    add("place-weights", createPlaceWeights);
  add("assign-buffers", createAssignBuffers, true);
  add("verify-storage", createVerifyStorage, false, true);
  add("convert-boa-to-runtime", createConvertBoaToRuntime, true);
  add("convert-scf-to-cf", [] { return createSCFToControlFlowPass(); });
  add("convert-to-llvm", [] { return createConvertToLLVMPass(); });
  add("reconcile-unrealized-casts", [] { return createReconcileUnrealizedCastsPass(); });
  return passes;
}

const std::vector<PhasePass> &passesOf(Purpose purpose) {
  static const std::vector<PhasePass> all[] = {
      makePasses(Purpose::train), makePasses(Purpose::predict), makePasses(Purpose::generate)};
  return all[int(purpose)];
}

} // namespace boa::random
