//===- CudaPipeline.h - Kernels for CUDA, to PTX and calls ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CUDA_CUDAPIPELINE_H
#define BOA_PASSES_TARGET_CUDA_CUDAPIPELINE_H

#include "passes/target/Target.h"

namespace boa {

/// Carries out Target::buildKernels for CUDA. The kernels enqueue functions of the image in the
/// global `boa_device_image` (runtime/abi/abi.h), which is absent with DeviceCode::none.
/// `printsWork`: on standard output, --cuda-print-work.
void buildCudaPipeline(mlir::OpPassManager &pm, const MachineSettings &machine,
                       const KernelOptions &options = {}, bool printsWork = false);

/// The half of that pipeline that begins with launches and products.
void buildCudaCodePipeline(mlir::OpPassManager &pm, DeviceCode code, bool tf32 = false,
                           bool printsWork = false);

/// Adds the dialects and external models that the pipeline uses beyond those of
/// kernels.
void registerCudaDialects(mlir::DialectRegistry &registry);

/// Registers `--cuda-kernel-pipeline` and `--cuda-code-pipeline` for boa-opt.
void registerCudaPipeline();

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_CUDAPIPELINE_H
