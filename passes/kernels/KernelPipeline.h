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

/// The size of the blocks in which products of wide rows are computed: the options of
/// --kernel-block-rows.
struct RowBlocks {
  int64_t bytes, least, rows;
};

/// Turns kernels, as --boa-outline-kernels leaves them, into kernels of the runtime's signature, of
/// library calls and linalg on definite memory. Every target begins with these passes. Then the
/// target adapts the calls to its library, and --kernel-form-groups follows. The pass manager is
/// for modules.
void buildKernelPipeline(mlir::OpPassManager &pm, const RowBlocks &blocks);

/// Adds the dialects of kernels and the external models (bufferization, translation
/// to LLVM IR) that the pipelines use.
void registerKernelDialects(mlir::DialectRegistry &registry);

} // namespace boa

#endif // BOA_PASSES_KERNELS_KERNELPIPELINE_H
