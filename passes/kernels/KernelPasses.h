//===- KernelPasses.h - Compute bodies to code ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// KernelPasses.td documents each pass; KernelPipeline.h runs them in order.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_KERNELPASSES_H
#define BOA_PASSES_KERNELS_KERNELPASSES_H

#include "dialect/Boa.h"
#include "passes/kernels/KernelDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/Pass.h"

namespace boa {

/// Applies the patterns until none matches. Each lowers or removes an op, so there is an end.
/// Upstream gives up after ten rounds, without a message; a long chain takes more.
void applyUntilNoneMatches(mlir::Operation *op, mlir::RewritePatternSet patterns);

/// What a pass says of a kernel that it changed, or did not.
inline mlir::remark::RemarkOpts kernelRemark(llvm::StringRef name) {
  return mlir::remark::RemarkOpts::name(name).category("boa-kernel");
}

#define GEN_PASS_DECL
#include "passes/kernels/KernelPasses.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/kernels/KernelPasses.h.inc"

} // namespace boa

#endif // BOA_PASSES_KERNELS_KERNELPASSES_H
