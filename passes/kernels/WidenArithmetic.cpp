//===- WidenArithmetic.cpp - Ops on bf16 to ops on f32 --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes whole compute ops. What only moves values (a split, a table lookup) stays
// as it is, and so does attention, which the library takes in bf16, and a rotation, of
// which each iteration widens what it reads and rounds what it writes. Every result is
// rounded, used where it may be: what a value is does not depend on what is computed
// together; but for a product that only a sum of the same function uses, which is not
// rounded before (ConvertBoaToBlas).
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelPasses.h"

namespace boa {
#define GEN_PASS_DEF_WIDENARITHMETIC
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// The type in f32 for a tensor of bf16; none for any other type.
std::optional<RankedTensorType> widened(Type type) {
  if (!getElementTypeOrSelf(type).isBF16())
    return std::nullopt;
  return getSumType(type);
}

void widen(Operation *op) {
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands())
    if (auto type = widened(operand.get().getType()))
      operand.set(CastOp::create(builder, op->getLoc(), *type, operand.get()));
  builder.setInsertionPointAfter(op);
  for (OpResult result : op->getResults()) {
    Type narrow = result.getType();
    auto type = widened(narrow);
    if (!type)
      continue;
    result.setType(*type);
    auto rounded = CastOp::create(builder, op->getLoc(), narrow, result);
    result.replaceAllUsesExcept(rounded, rounded);
  }
}

struct WidenArithmetic : boa::impl::WidenArithmeticBase<WidenArithmetic> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](CostOpInterface op) {
      if (op.getFlops() > 0 && !op->hasTrait<WidensItself>())
        ops.push_back(op);
    });
    llvm::for_each(ops, widen);
  }
};

} // namespace
