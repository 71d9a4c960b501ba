//===- KernelDialect.h - What a compute kernel is made of -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel dialect. Begin at KernelOps.td.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_KERNELDIALECT_H
#define BOA_PASSES_KERNELS_KERNELDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

#include "passes/kernels/KernelDialect.h.inc"
#include "passes/kernels/KernelEnums.h.inc"
#define GET_OP_CLASSES
#include "passes/kernels/KernelOps.h.inc"

namespace boa::kernel {

/// The address `offset` elements behind `base`, of any size: the constant indices of
/// llvm.getelementptr themselves hold 30 bits.
mlir::Value offsetPointer(mlir::OpBuilder &, mlir::Location, mlir::Value base, mlir::Type element,
                          int64_t offset);
/// Whether 0 <= integer < end. Without its sign, a negative integer is above any other.
mlir::Value isWithin(mlir::OpBuilder &, mlir::Location, mlir::Value integer, int64_t end);

} // namespace boa::kernel

#endif // BOA_PASSES_KERNELS_KERNELDIALECT_H
