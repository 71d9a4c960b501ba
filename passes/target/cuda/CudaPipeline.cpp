//===- CudaPipeline.cpp - Kernels for CUDA, to PTX and calls --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/KernelPipeline.h"
#include "passes/target/Target.h"
#include "passes/target/cuda/CudaPasses.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace boa;

void boa::registerCudaDialects(DialectRegistry &registry) {
  registry.insert<gpu::GPUDialect, nvgpu::NVGPUDialect, NVVM::NVVMDialect>();
  registerGPUDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

/// Turns slices into address arithmetic, and loops into blocks.
static void flatten(OpPassManager &pm) {
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(arith::createArithExpandOpsPass()); // divisions that round up
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(createSCFToControlFlowPass());
}

/// The half of the pipeline that begins with launches and products. The kernels enqueue functions
/// of the image in the global `boa_device_image` (runtime/abi/abi.h), which is absent with
/// DeviceCode::none. `printsWork`: on standard output, --cuda-print-work.
static void buildCodePipeline(OpPassManager &pm, DeviceCode code, bool tf32 = false,
                              bool printsWork = false) {
  const bool emulated = code == DeviceCode::emulated;
  pm.addNestedPass<KernelOp>(createAssignWorkspace());
  pm.addPass(createCudaOutlineLaunches());
  if (printsWork)
    pm.addPass(createCudaPrintWork());
  pm.addPass(createCudaEmitUpdates());
  pm.addPass(createCudaEmitChecksums());
  if (emulated)
    pm.addPass(createCudaEmulate());

  if (code != DeviceCode::none) {
    OpPassManager &device = pm.nest<gpu::GPUModuleOp>();
    ExpandKernelMathOptions math;
    math.device = !emulated;
    device.addPass(createExpandKernelMath(math));
    flatten(device);
    if (!emulated) {
      device.addPass(createCudaConvertDeviceToNVVM());
      device.addPass(createCanonicalizerPass());
      device.addPass(createReconcileUnrealizedCastsPass());
    }
  }

  pm.addPass(createEmitOptimizer());
  flatten(pm.nest<KernelOp>());
  flatten(pm.nest<func::FuncOp>());
  CudaConvertKernelToLLVMOptions host;
  host.dropDevice = code == DeviceCode::none;
  host.tf32 = tf32;
  pm.addPass(createCudaConvertKernelToLLVM(host));
  pm.addPass(createReconcileUnrealizedCastsPass());
  CudaEmbedImageOptions embed;
  embed.emulated = emulated;
  pm.addPass(createCudaEmbedImage(embed));
}

static void buildPipeline(OpPassManager &pm, const MachineSettings &machine,
                          const KernelOptions &options, bool printsWork = false) {
  auto each = [&](std::unique_ptr<Pass> pass) { pm.addNestedPass<KernelOp>(std::move(pass)); };
  // More rows than on a CPU: a gradient of a weight goes through memory once a block.
  buildKernelPipeline(pm, {/*bytes=*/256 << 20, /*least=*/512, options.blockRows});
  // While copies are ops of their own.
  each(createCudaReadAddendsInPlace());
  // The casts of operands are grouped with what else goes over them.
  each(createCudaLegalizeProducts());
  // After the casts: widened weights are padded, too.
  each(createCudaPadRows());
  each(createFormKernelGroups());
  each(createCudaEmitGroups());
  if (machine.attention == AttentionKind::cudnn)
    each(createCudaOfferAttention());
  each(createCudaEmitAttention());
  // After groups, whose rows are whole.
  each(createCudaSplitProducts());
  if (machine.gemm == GemmKind::own)
    each(createCudaEmitProducts());
  each(createCanonicalizerPass());
  buildCodePipeline(pm, options.code, machine.products == ProductKind::tf32, printsWork);
}

namespace {
struct CudaTarget : Target {
  explicit CudaTarget(const MachineSettings &machine) : machine(machine) {}
  void buildKernels(OpPassManager &pm, const KernelOptions &options) const override {
    buildPipeline(pm, machine, options);
  }
  const MachineSettings machine;
};

struct CudaOptions : PassPipelineOptions<CudaOptions> {
  Option<DeviceCode> code{
      *this, "code", llvm::cl::desc("form of the device's functions"),
      llvm::cl::init(DeviceCode::ptx),
      llvm::cl::values(clEnumValN(DeviceCode::ptx, "ptx", "PTX"),
                       clEnumValN(DeviceCode::emulated, "emulated", "functions of the host"),
                       clEnumValN(DeviceCode::none, "none", "nothing"))};
  Option<bool> work{*this, "work", llvm::cl::desc("prints the work of kernels on a GPU"),
                    llvm::cl::init(false)};
};
} // namespace

std::shared_ptr<const Target> Target::getCuda(const MachineSettings &machine) {
  return std::make_shared<CudaTarget>(machine);
}

void boa::registerCudaPipeline() {
  registerBoaCudaPasses();
  PassPipelineRegistration<CudaOptions>("cuda-kernel-pipeline",
                                        "from outlined kernels to the LLVM dialect and PTX",
                                        [](OpPassManager &pm, const CudaOptions &options) {
                                          buildPipeline(pm, {}, {options.code}, options.work);
                                        });
  PassPipelineRegistration<CudaOptions>(
      "cuda-code-pipeline", "from launches to the LLVM dialect and PTX",
      [](OpPassManager &pm, const CudaOptions &options) { buildCodePipeline(pm, options.code); });
}
