//===- KernelPipeline.h - From compute bodies to memory ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_KERNELPIPELINE_H
#define BOA_PASSES_KERNELS_KERNELPIPELINE_H

#include "mlir/Pass/PassManager.h"

namespace boa {

/// How large the blocks are in which products of wide rows are computed: see
/// --kernel-block-rows, of which these are the options.
struct RowBlocks {
  int64_t bytes, least, rows;
};

/// Functions marked `boa.kernel`, as --boa-outline-kernels leaves them, to functions of
/// the runtime's signature, of library calls and linalg on definite memory. What every
/// target begins with; --kernel-form-groups follows, once the target has said what its
/// library takes. The pass manager is for modules.
void buildKernelPipeline(mlir::OpPassManager &pm, const RowBlocks &blocks);

/// Adds the dialects of kernels and the external models (bufferization, translation
/// to LLVM IR) that the pipelines use.
void registerKernelDialects(mlir::DialectRegistry &registry);

} // namespace boa

#endif // BOA_PASSES_KERNELS_KERNELPIPELINE_H
