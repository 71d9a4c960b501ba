//===- Phases.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/Phases.h"

#include "passes/Passes.h"
#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/KernelPipeline.h"
#include "passes/target/cpu/CpuPasses.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace boa::random {

/// buildCpuPipeline, in two parts.
static void addKernelPasses(std::vector<PhasePass> &passes) {
  auto add = [&](const char *name, auto make) {
    passes.push_back({name, [make](OpPassManager &pm) { pm.addNestedPass<func::FuncOp>(make()); }});
  };
  // No function of these programs is large enough to be computed block by block.
  passes.push_back({"(the kernels' pipeline)",
                    [](OpPassManager &pm) { buildKernelPipeline(pm, {32 << 20, 128, 0}); }, true});
  add("kernel-form-groups", createFormKernelGroups);
  add("cpu-emit-groups", createCpuEmitGroups);
  passes.back().beginsPhase = true;
  add("canonicalize", [] { return createCanonicalizerPass(); });
  add("kernel-assign-workspace", createAssignWorkspace);
  passes.back().beginsPhase = true;
  passes.push_back({"cpu-outline-loops", [](OpPassManager &pm) {
                      pm.addPass(createCpuOutlineLoops());
                      pm.addPass(createEmitOptimizer());
                    }});
  add("kernel-expand-math", [] { return createExpandKernelMath(); });
  add("expand-strided-metadata", [] { return memref::createExpandStridedMetadataPass(); });
  add("lower-affine", [] { return createLowerAffinePass(); });
  add("cpu-keep-outer-loops", createCpuKeepOuterLoops);
  add("convert-scf-to-cf", [] { return createSCFToControlFlowPass(); });
  passes.push_back({"cpu-convert-kernel-to-llvm", [](OpPassManager &pm) {
                      pm.addPass(createCpuConvertKernelToLLVM());
                      pm.addPass(createReconcileUnrealizedCastsPass());
                    }});
}

static std::vector<PhasePass> makePasses(Purpose purpose) {
  std::vector<PhasePass> passes;
  auto add = [&](const char *name, auto make, bool begins = false, bool closes = false) {
    passes.push_back({name, [make](OpPassManager &pm) { pm.addPass(make()); }, begins, closes});
  };
  add("boa-verify-model", createVerifyModel, true, true);
  if (purpose == Purpose::generate) {
    add("boa-cache-attention", [] { return createCacheAttention(); });
    add("boa-build-generation", createBuildGeneration, true);
  } else {
    if (purpose == Purpose::train) {
      add("boa-block-vocabulary", createBlockVocabulary);
      add("boa-mask-documents", createMaskDocuments);
      add("boa-differentiate", [] { return createDifferentiate(); });
    }
    BuildStepOptions options;
    options.predict = purpose == Purpose::predict;
    add(
        options.predict ? "boa-build-step=predict=true" : "boa-build-step",
        [options] { return createBuildStep(options); }, purpose == Purpose::train);
  }
  add("boa-vertical-schedule", [] { return createVerticalSchedule(); }, true);
  add("boa-split-optimizer", [] { return createSplitOptimizer(); });
  add("boa-contract-storage", createContractStorage);
  add("boa-verify-step", createVerifyStep, true, true);
  add("boa-insert-offload", createInsertOffload);
  add("boa-hoist-prefetch", [] { return createHoistPrefetch(); }, true);
  add("boa-elide-transfers", [] { return createElideTransfers(); });
  add("boa-retain-buffers", [] { return createRetainBuffers(); });
  add("boa-elide-offloads", createElideOffloads);
  add("boa-verify-storage", createVerifyStorage, true, true);
  add("boa-outline-kernels", createOutlineKernels);
  addKernelPasses(passes);
  if (purpose != Purpose::train)
    add("boa-place-weights", createPlaceWeights);
  add("boa-assign-buffers", createAssignBuffers, true);
  add("boa-verify-storage", createVerifyStorage, false, true);
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
