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

/// Turns functions marked `boa.kernel`, as --boa-outline-kernels leaves them, into LLVM functions
/// `void (ptr buffers, ptr workspace, ptr queue)` of the same names, with `boa.workspace` = bytes.
/// The pass manager is for modules. Other functions stay as they were, except that func.func
/// becomes llvm.func. `blockRows` is the most rows of wide products at once, for tests; 0: the
/// compiler chooses (RowBlocks). Without `code` the functions do nothing: they have the memory that
/// they would need.
void buildCpuPipeline(mlir::OpPassManager &pm, int64_t blockRows = 0, bool code = true);

/// Registers `--cpu-kernel-pipeline` for boa-opt.
void registerCpuPipeline();

} // namespace boa

#endif // BOA_PASSES_TARGET_CPU_CPUPIPELINE_H
