//===- EmitKernels.h - Kernels as functions ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_EMITKERNELS_H
#define BOA_PASSES_KERNELS_EMITKERNELS_H

#include "dialect/Boa.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace boa {

/// Makes functions of the kernels of a module, whose bodies are in the LLVM dialect, once nothing
/// asks any more what they need.
inline void emitKernels(mlir::ModuleOp module) {
  for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>())) {
    mlir::OpBuilder builder(kernel);
    mlir::Type none = mlir::LLVM::LLVMVoidType::get(module.getContext());
    auto type = mlir::LLVM::LLVMFunctionType::get(none, kernel.getArgumentTypes());
    auto func = mlir::LLVM::LLVMFuncOp::create(builder, kernel.getLoc(), kernel.getSymName(), type);
    func.getBody().takeBody(kernel.getBody());
    kernel.erase();
    for (auto end : llvm::make_early_inc_range(func.getOps<ReturnOp>())) {
      builder.setInsertionPoint(end);
      mlir::LLVM::ReturnOp::create(builder, end.getLoc(), mlir::ValueRange());
      end.erase();
    }
  }
}

} // namespace boa

#endif // BOA_PASSES_KERNELS_EMITKERNELS_H
