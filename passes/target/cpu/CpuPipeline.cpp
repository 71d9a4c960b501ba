//===- CpuPipeline.cpp - Kernels for a CPU, to the LLVM dialect -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/KernelPipeline.h"
#include "passes/target/Target.h"
#include "passes/target/cpu/CpuPasses.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace boa;

namespace {

/// Empties the kernels of a program that never runs them. Their names and workspace stay.
struct EmptyKernels : PassWrapper<EmptyKernels, OperationPass<KernelOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmptyKernels)
  StringRef getName() const override { return "EmptyKernels"; }
  void runOnOperation() override {
    Block &block = getOperation().getBody().front();
    while (block.without_terminator().begin() != block.without_terminator().end())
      std::prev(Block::iterator(block.getTerminator()))->erase();
  }
};

} // namespace

/// Lowers loops to blocks, in kernels and in the functions of their loops.
static void flatten(OpPassManager &pm) {
  pm.addPass(createExpandKernelMath());
  // Slices to address arithmetic, all of it constant.
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  // Index arithmetic that all loops of a body share.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(createCpuKeepOuterLoops());
  pm.addPass(createSCFToControlFlowPass());
}

namespace {

/// With DeviceCode::none the kernels do nothing: they say what memory they would need.
struct CpuTarget : Target {
  void buildKernels(OpPassManager &pm, const KernelOptions &options) const override {
    const bool code = options.code != DeviceCode::none;
    auto each = [&](std::unique_ptr<Pass> pass) { pm.addNestedPass<KernelOp>(std::move(pass)); };
    buildKernelPipeline(pm, {/*bytes=*/32 << 20, /*least=*/128, options.blockRows});
    each(createFormKernelGroups());
    each(createCpuEmitGroups());
    each(createCanonicalizerPass());
    each(createAssignWorkspace());
    pm.addPass(createCpuPrepareProducts());
    if (!code)
      each(std::make_unique<EmptyKernels>());
    pm.addPass(createCpuOutlineLoops());
    if (code)
      pm.addPass(createEmitOptimizer());
    flatten(pm.nest<KernelOp>());
    flatten(pm.nest<func::FuncOp>());
    pm.addPass(createCpuConvertKernelToLLVM());
    pm.addPass(createReconcileUnrealizedCastsPass());
  }
};

} // namespace

std::shared_ptr<const Target> Target::getCpu() { return std::make_shared<CpuTarget>(); }

void boa::registerCpuPipeline() {
  registerBoaCpuPasses();
  PassPipelineRegistration<>("cpu-kernel-pipeline", "from outlined kernels to the LLVM dialect",
                             [](OpPassManager &pm) { Target::get({})->buildKernels(pm, {}); });
}
