//===- UpdateBody.h - One element of an update ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operations on one element that all targets share, beside the body of boa.optimizer: the forms
// in which weights and states are stored. Targets add loops or threads. Nothing is fused, so all
// of them make the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_UPDATEBODY_H
#define BOA_PASSES_KERNELS_UPDATEBODY_H

#include "dialect/Boa.h"
#include "passes/kernels/CodeBuilder.h"

namespace boa {

/// The master weight of its halves, both i16. `splitMaster` returns the halves, high and low.
mlir::Value joinMaster(CodeBuilder &, mlir::Value high, mlir::Value low);
std::pair<mlir::Value, mlir::Value> splitMaster(CodeBuilder &, mlir::Value master);

/// Returns 32 random bits for an element, i32, and for the `state`th of its states.
mlir::Value random(CodeBuilder &, mlir::Value seed, mlir::Value element, unsigned state);
/// The f32 of a bf16, given as i16; and a bf16 of an f32, rounded up or down at random: with the
/// greater odds to the nearer one.
mlir::Value widen(CodeBuilder &, mlir::Value narrow);
mlir::Value narrow(CodeBuilder &, mlir::Value value, mlir::Value random);
/// The f32 of a code (i8; `type` is si8 or ui8) in a block with this scale; and a code of an f32,
/// rounded at random.
mlir::Value decode(CodeBuilder &, mlir::Type type, mlir::Value code, mlir::Value scale);
mlir::Value encode(CodeBuilder &, mlir::Type type, mlir::Value value, mlir::Value scale,
                   mlir::Value random);
/// The magnitude of an f32 as an i32. Its order is that of magnitudes.
mlir::Value magnitude(CodeBuilder &, mlir::Value value);

} // namespace boa

#endif // BOA_PASSES_KERNELS_UPDATEBODY_H
