//===- CpuPipeline.h - Kernels for a CPU, to the LLVM dialect ---*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CPU_CPUPIPELINE_H
#define BOA_PASSES_TARGET_CPU_CPUPIPELINE_H

#include "mlir/Pass/PassManager.h"

namespace boa {

/// Bodies of kernels, as --boa-outline-kernels leaves them, to the LLVM dialect. They take
/// (ptr buffers, ptr workspace, ptr queue). The pass manager is for modules. Other functions stay
/// as they were, except that func.func becomes llvm.func. `blockRows`: the most rows of wide
/// products at once, for tests; 0: the compiler chooses (RowBlocks). Without `code` the
/// kernels do nothing: they say what memory they would need.
void buildCpuPipeline(mlir::OpPassManager &pm, int64_t blockRows = 0, bool code = true);

/// `--cpu-kernel-pipeline` for boa-opt.
void registerCpuPipeline();

} // namespace boa

#endif // BOA_PASSES_TARGET_CPU_CPUPIPELINE_H
