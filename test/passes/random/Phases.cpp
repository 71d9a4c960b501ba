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
#include "passes/target/cuda/CudaPasses.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

#include <map>

using namespace mlir;

namespace boa::random {

static void addFlatten(OpPassManager &pm) {
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(arith::createArithExpandOpsPass());
  pm.addPass(createSCFToControlFlowPass());
}

namespace {
/// A list that grows by passes, each of which may begin a phase.
class KernelPasses {
public:
  explicit KernelPasses(std::vector<PhasePass> &passes) : passes(passes) {}

  void module(const char *name, std::function<void(OpPassManager &)> add, bool begins = false) {
    passes.push_back({name, std::move(add), begins});
  }
  template <typename Make> void function(const char *name, Make make, bool begins = false) {
    module(name, [make](OpPassManager &pm) { pm.addNestedPass<func::FuncOp>(make()); }, begins);
  }

private:
  std::vector<PhasePass> &passes;
};
} // namespace

/// buildCpuPipeline.
static void addCpuPasses(KernelPasses passes) {
  // No function of these programs is large enough to be computed block by block.
  passes.module(
      "(the kernels' pipeline)",
      [](OpPassManager &pm) { buildKernelPipeline(pm, {32 << 20, 128, 0}); }, true);
  passes.function("kernel-form-groups", createFormKernelGroups);
  passes.function("cpu-emit-groups", createCpuEmitGroups, true);
  passes.function("canonicalize", [] { return createCanonicalizerPass(); });
  passes.function("kernel-assign-workspace", createAssignWorkspace, true);
  passes.module("cpu-outline-loops", [](OpPassManager &pm) {
    pm.addPass(createCpuOutlineLoops());
    pm.addPass(createEmitOptimizer());
  });
  passes.function("kernel-expand-math", [] { return createExpandKernelMath(); });
  passes.function("expand-strided-metadata",
                  [] { return memref::createExpandStridedMetadataPass(); });
  passes.function("lower-affine", [] { return createLowerAffinePass(); });
  passes.function("cpu-keep-outer-loops", createCpuKeepOuterLoops);
  passes.function("convert-scf-to-cf", [] { return createSCFToControlFlowPass(); });
  passes.module("cpu-convert-kernel-to-llvm", [](OpPassManager &pm) {
    pm.addPass(createCpuConvertKernelToLLVM());
    pm.addPass(createReconcileUnrealizedCastsPass());
  });
}

/// buildCudaPipeline.
static void addCudaPasses(KernelPasses passes) {
  passes.module(
      "(the kernels' pipeline)",
      [](OpPassManager &pm) { buildKernelPipeline(pm, {256 << 20, 512, 0}); }, true);
  passes.function("cuda-read-addends-in-place", createCudaReadAddendsInPlace, true);
  passes.function("cuda-legalize-products", createCudaLegalizeProducts);
  passes.function("cuda-pad-rows", createCudaPadRows);
  passes.function("kernel-form-groups", createFormKernelGroups);
  passes.function("cuda-emit-groups", createCudaEmitGroups, true);
  passes.function("cuda-offer-attention", createCudaOfferAttention);
  passes.function("cuda-emit-attention", createCudaEmitAttention);
  passes.function("cuda-split-products", createCudaSplitProducts);
  passes.function("cuda-emit-products", createCudaEmitProducts);
  passes.function("canonicalize", [] { return createCanonicalizerPass(); });
  passes.function("kernel-assign-workspace", createAssignWorkspace, true);
  passes.module("cuda-outline-launches",
                [](OpPassManager &pm) { pm.addPass(createCudaOutlineLaunches()); });
  passes.module("cuda-emit-updates",
                [](OpPassManager &pm) { pm.addPass(createCudaEmitUpdates()); });
  passes.module("cuda-emit-checksums",
                [](OpPassManager &pm) { pm.addPass(createCudaEmitChecksums()); });
  passes.module(
      "(the device's functions)",
      [](OpPassManager &pm) {
        OpPassManager &device = pm.nest<gpu::GPUModuleOp>();
        ExpandKernelMathOptions math;
        math.device = true;
        device.addPass(createExpandKernelMath(math));
        addFlatten(device);
      },
      true);
  passes.module("cuda-convert-device-to-nvvm", [](OpPassManager &pm) {
    OpPassManager &device = pm.nest<gpu::GPUModuleOp>();
    device.addPass(createCudaConvertDeviceToNVVM());
    device.addPass(createReconcileUnrealizedCastsPass());
  });
  passes.module("kernel-emit-optimizer", [](OpPassManager &pm) {
    pm.addPass(createEmitOptimizer());
    addFlatten(pm.nest<func::FuncOp>());
  });
  passes.module("cuda-convert-kernel-to-llvm=drop-device=true", [](OpPassManager &pm) {
    CudaConvertKernelToLLVMOptions options;
    options.dropDevice = true;
    pm.addPass(createCudaConvertKernelToLLVM(options));
    pm.addPass(createReconcileUnrealizedCastsPass());
  });
}

static std::vector<PhasePass> makePasses(Purpose purpose, DeviceKind device) {
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
  if (device == DeviceKind::cuda)
    addCudaPasses(KernelPasses(passes));
  else
    addCpuPasses(KernelPasses(passes));
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

const std::vector<PhasePass> &passesOf(Purpose purpose, DeviceKind device) {
  static std::map<std::pair<Purpose, DeviceKind>, std::vector<PhasePass>> all;
  auto [found, isNew] = all.try_emplace({purpose, device});
  if (isNew)
    found->second = makePasses(purpose, device);
  return found->second;
}

} // namespace boa::random
