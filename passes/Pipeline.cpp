//===- Pipeline.cpp -------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline.h"

#include "dialect/Config.h"
#include "passes/model/CanonicalText.h"
#include "passes/Passes.h"
#include "passes/storage/FitMemory.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace boa {

/// Keeps the text of the model phase on the module until the descriptor takes it.
struct KeepCanonicalText : PassWrapper<KeepCanonicalText, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KeepCanonicalText)
  StringRef getName() const override { return "KeepCanonicalText"; }
  void runOnOperation() override {
    ModuleOp module = getOperation();
    module->setAttr(kCanonicalTextAttr, StringAttr::get(&getContext(), printCanonicalText(module)));
    markAllAnalysesPreserved();
  }
};

static void buildModelAndStep(OpPassManager &pm, const PipelineOptions &options) {
  if (options.purpose == Purpose::generate) {
    pm.addPass(createCacheAttention());
    pm.addPass(createBuildGeneration());
  } else {
    // Before gradients: each block has its own.
    if (options.purpose == Purpose::train) {
      pm.addPass(createBlockVocabulary());
      pm.addPass(createMaskDocuments());
      pm.addPass(createSeedDropout());
      pm.addPass(createDifferentiate());
    }
    BuildStepOptions build;
    build.predict = options.purpose == Purpose::predict;
    pm.addPass(createBuildStep(build));
  }
  // Order first: where a gradient is complete depends on it.
  pm.addPass(createVerticalSchedule());
  pm.addPass(createSplitOptimizer());
  // How long a value lives is known once the order is.
  pm.addPass(createContractStorage());
  shareConstants(pm);
  pm.addPass(createVerifyStep());
}

static void buildStorage(OpPassManager &pm, const NaiveProgram &naive) {
  pm.addPass(createInsertOffload());
  pm.addPass(createKeepNaiveProgram(naive));
  buildTransfers(pm);
  pm.addPass(createVerifyStorage());
}

/// Leaves out the kernels that are described.
struct DropKernels : PassWrapper<DropKernels, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DropKernels)
  explicit DropKernels(ModuleOp described) : described(described) {}
  StringRef getName() const override { return "DropKernels"; }
  void runOnOperation() override {
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      if (described.lookupSymbol(kernel.getSymName()))
        kernel.erase();
  }

private:
  ModuleOp described;
};

/// Adds the descriptions of kernels that are launched, and puts the size of their constants on the
/// module. If there are none yet, describes the kernels of the program, which are in the LLVM
/// dialect.
struct DescribeKernels : PassWrapper<DescribeKernels, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DescribeKernels)
  explicit DescribeKernels(OwningOpRef<ModuleOp> *described) : described(described) {}
  StringRef getName() const override { return "DescribeKernels"; }
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!*described)
      *described = describe(module);
    else if (Attribute bytes = (**described)->getAttr(kConstantsAttr))
      module->setAttr(kConstantsAttr, bytes);
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto add = [&](StringRef name) {
      auto kernel = (*described)->lookupSymbol<KernelOp>(name);
      if (!kernel || module.lookupSymbol(name))
        return PreparedAttr();
      builder.clone(*kernel);
      return kernel.getPreparedAttr();
    };
    module.walk([&](LaunchOp launch) {
      if (PreparedAttr prepared = add(launch.getKernel()))
        add(prepared.getKernel().getValue());
    });
  }

private:
  /// Makes a module of the kernels, without their bodies.
  static OwningOpRef<ModuleOp> describe(ModuleOp program) {
    OwningOpRef<ModuleOp> described = ModuleOp::create(program.getLoc());
    if (Attribute bytes = program->getAttr(kConstantsAttr))
      (*described)->setAttr(kConstantsAttr, bytes);
    OpBuilder builder(described->getBodyRegion());
    for (auto kernel : program.getOps<KernelOp>()) {
      auto copy = cast<KernelOp>(builder.cloneWithoutRegions(*kernel));
      OpBuilder inside = OpBuilder::atBlockBegin(copy.addEntryBlock());
      ReturnOp::create(inside, kernel.getLoc(), ValueRange());
    }
    return described;
  }

  OwningOpRef<ModuleOp> *described;
};

static void assignBuffers(OpPassManager &pm, const PipelineOptions &options,
                          const NaiveProgram &naive) {
  const Streamed streamed = options.onlyFits ? Streamed::all : Streamed::few;
  // A plan says where the weights of a training are.
  if (options.purpose == Purpose::train)
    return pm.addPass(createFitMemory(naive, streamed));
  pm.addPass(createFitMemory(naive, streamed, /*placesWeights=*/true));
  pm.addPass(createPlaceWeights());
  pm.addPass(createAssignBuffers());
}

static void buildKernels(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createOutlineKernels());
  if (options.described && *options.described)
    pm.addPass(std::make_unique<DropKernels>(**options.described));
  options.target->buildKernels(pm, options.kernels);
  if (options.described)
    pm.addPass(std::make_unique<DescribeKernels>(options.described));
}

/// Compiles the kernels of a copy, and writes on the module how much memory they need.
struct MeasureKernels : PassWrapper<MeasureKernels, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MeasureKernels)
  explicit MeasureKernels(PipelineOptions options) : options(options) {
    this->options.kernels.code = DeviceCode::none; // no kernel runs
  }
  StringRef getName() const override { return "MeasureKernels"; }
  void runOnOperation() override {
    ModuleOp module = getOperation();
    OwningOpRef<ModuleOp> copy = module.clone();
    MachineSettings machine = Config(*copy).machine;
    machine.device_memory = machine.host_memory = 0; // nothing is refused here
    writeConfig(*copy, kMachineConfig, machine);
    PassManager pm(&getContext());
    buildKernels(pm, options);
    pm.addPass(createAssignBuffers());
    if (failed(pm.run(*copy)))
      return signalPassFailure();
    for (StringRef name : {kWorkspaceAttr, kAttentionScratchAttr, kConstantsAttr})
      if (Attribute bytes = (*copy)->getAttr(name))
        module->setAttr(name, bytes);
  }

private:
  PipelineOptions options;
};

static void buildCode(OpPassManager &pm, const PipelineOptions &options,
                      const NaiveProgram &naive) {
  // Kernels, then buffers: the workspace of kernels is part of the arena.
  buildKernels(pm, options);
  assignBuffers(pm, options, naive);
  // In what memory is left: a form saves less time than a slot to look ahead.
  pm.addPass(createPrepareOperands());
  pm.addPass(createVerifyStorage());
  pm.addPass(createConvertBoaToRuntime());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

void buildPipeline(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createVerifyModel());
  if (options.stop == Phase::model)
    return;
  // Before gradients are added to it; what stops earlier prints its program without it.
  if (options.stop == Phase::llvm)
    pm.addPass(std::make_unique<KeepCanonicalText>());
  buildModelAndStep(pm, options);
  if (options.stop == Phase::step)
    return;
  const auto naive = std::make_shared<OwningOpRef<ModuleOp>>();
  buildStorage(pm, naive);
  if (options.stop == Phase::storage) {
    pm.addPass(std::make_unique<MeasureKernels>(options));
    assignBuffers(pm, options, naive);
    return;
  }
  buildCode(pm, options, naive);
}

namespace {
struct PipelineArguments : PassPipelineOptions<PipelineArguments> {
  Option<bool> onlyFits{*this, "only-fits",
                        llvm::cl::desc("ask whether it fits the memory, without trials that make "
                                       "it faster")};
};
} // namespace

void registerPipeline() {
  PassPipelineRegistration<PipelineArguments>(
      "boa-pipeline", "a training step, as boa.config @plan says",
      [](OpPassManager &pm, const PipelineArguments &arguments) {
        PipelineOptions options;
        options.onlyFits = arguments.onlyFits;
        buildPipeline(pm, options);
      });
}

} // namespace boa
