//===- NarrowAttention.h - Attention of bf16 on tensor cores ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CUDA_NARROWATTENTION_H
#define BOA_PASSES_TARGET_CUDA_NARROWATTENTION_H

#include "passes/kernels/KernelDialect.h"

namespace boa {

/// Whether all operands but statistics and documents are in bf16.
bool isNarrow(mlir::Operation *attention);

/// Emits one launch.
void emitNarrowForward(mlir::OpBuilder &builder, kernel::AttentionOp op);
/// Emits dq: one launch. `delta` has the sums of y * dy by row.
void emitNarrowQueries(mlir::OpBuilder &builder, kernel::AttentionGradOp op, mlir::Value delta);
/// Emits dk and dv: one launch, or two for long heads. `delta` has the sums of y * dy by row.
void emitNarrowKeys(mlir::OpBuilder &builder, kernel::AttentionGradOp op, mlir::Value delta);

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_NARROWATTENTION_H
