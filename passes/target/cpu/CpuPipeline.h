//===- CpuPipeline.h - Kernels for a CPU, to the LLVM dialect ---*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CPU_CPUPIPELINE_H
#define BOA_PASSES_TARGET_CPU_CPUPIPELINE_H

#include "passes/target/Target.h"

namespace boa {

/// Carries out Target::buildKernels for a CPU. With DeviceCode::none the kernels do nothing: they
/// say what memory they would need.
void buildCpuPipeline(mlir::OpPassManager &pm, const KernelOptions &options = {});

/// Registers `--cpu-kernel-pipeline` for boa-opt.
void registerCpuPipeline();

} // namespace boa

#endif // BOA_PASSES_TARGET_CPU_CPUPIPELINE_H
