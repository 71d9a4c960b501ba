//===- Logits.h - The last stage without its loss ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_MODEL_LOGITS_H
#define BOA_PASSES_MODEL_LOGITS_H

#include "dialect/Boa.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace boa {

/// The op that compares the logits with the targets; none if other ops take the targets, too.
/// `targets` is the number of the argument that takes them.
CrossEntropyOp findLoss(mlir::func::FuncOp head, std::optional<unsigned> targets);

/// Makes @NAME_logits: the last stage without its loss and its targets. The logits are in f32.
/// The stage must have a loss that `findLoss` finds.
mlir::func::FuncOp createLogits(mlir::func::FuncOp head, llvm::StringRef stage, unsigned targets);

} // namespace boa

#endif // BOA_PASSES_MODEL_LOGITS_H
