//===- Activations.h - What the plan says of a value ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inner activations are the results of ops in a stage's body. A layer that saves its activations
// keeps those that its backward function needs, unless the plan says to compute them again from
// others. The plan stands on the op: boa.name and boa.activation.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_MODEL_ACTIVATIONS_H
#define BOA_PASSES_MODEL_ACTIVATIONS_H

#include "dialect/Boa.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace boa {

/// The name by which a plan finds the results of an op: boa.name, or that of the op, "gelu".
llvm::StringRef getActivationName(mlir::Operation *op);

/// Whether results are never saved: they cost nothing, or they are a rounded argument (a
/// parameter), which is there anyway.
bool isFree(mlir::Operation *op);

/// Whether a backward function computes the results itself, also where the layer saves.
bool isComputedAgain(mlir::Operation *op);

/// The place that the plan gives to the results of an op alone; null if there is none.
mlir::Attribute getOwnPlace(mlir::Operation *op);

/// Checks what no single attribute can show. The plan must be for values that can be saved. Values
/// of one name, which lie in one storage, must have one place.
mlir::LogicalResult verifyActivations(mlir::func::FuncOp forward);

/// Removes the plan from the ops of a function that carries it out.
void dropActivationAttrs(mlir::func::FuncOp func);

} // namespace boa

#endif // BOA_PASSES_MODEL_ACTIVATIONS_H
