//===- CpuPipeline.cpp - Kernels for a CPU, to the LLVM dialect -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/target/cpu/CpuPipeline.h"
#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/KernelPipeline.h"
#include "passes/target/cpu/CpuPasses.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void boa::buildCpuPipeline(OpPassManager &pm, int64_t blockRows) {
  auto each = [&](std::unique_ptr<Pass> pass) { pm.addNestedPass<func::FuncOp>(std::move(pass)); };
  buildKernelPipeline(pm, {/*bytes=*/32 << 20, /*least=*/128, blockRows});
  each(createFormKernelGroups());
  each(createEmitGroups());
  each(createCanonicalizerPass());
  each(createAssignWorkspace());
  pm.addPass(createOutlineKernelLoops());
  pm.addPass(createEmitOptimizer());
  each(createExpandKernelMath());
  // Slices to address arithmetic, all of it constant.
  each(memref::createExpandStridedMetadataPass());
  each(createLowerAffinePass());
  // Index arithmetic that all loops of a body share.
  each(createCanonicalizerPass());
  each(createCSEPass());
  each(createLoopInvariantCodeMotionPass());
  each(createSCFToControlFlowPass());
  pm.addPass(createConvertKernelToLLVM());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

void boa::registerCpuPipeline() {
  registerBoaCpuPasses();
  PassPipelineRegistration<>("boa-kernel-pipeline", "from outlined kernels to the LLVM dialect",
                             [](OpPassManager &pm) { buildCpuPipeline(pm); });
}
