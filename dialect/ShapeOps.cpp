//===- ShapeOps.cpp - Parts of rows ---------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ComputeOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace boa {

/// Checks that the parts divide the last dimension of the whole, and are like it in all others.
static LogicalResult verifyParts(Operation *op, ValueRange parts, Value whole) {
  if (failed(verifyRank(op, "a tensor", whole, 1, /*exact=*/false)))
    return failure();
  int64_t sum = 0;
  for (Value part : parts) {
    if (tensorType(part).getRank() != tensorType(whole).getRank() ||
        shapeOf(part).drop_back() != shapeOf(whole).drop_back())
      return op->emitOpError("expected parts that differ from ")
             << whole.getType() << " in the last dimension only but found " << part.getType();
    sum += lastDim(part);
  }
  if (sum != lastDim(whole))
    return op->emitOpError("expected parts that add up to ")
           << lastDim(whole) << " but found " << sum;
  return success();
}

//===----------------------------------------------------------------------===//
// boa.split
//===----------------------------------------------------------------------===//

LogicalResult SplitOp::verify() { return verifyParts(*this, getParts(), getX()); }

void SplitOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  SmallVector<Value> parts;
  for (auto [grad, part] : llvm::zip(results, getParts()))
    parts.push_back(grad ? grad
                         : Value(arith::ConstantOp::create(builder, getLoc(),
                                                           builder.getZeroAttr(part.getType()))));
  operands.push_back(ConcatOp::create(builder, getLoc(), getX().getType(), parts));
}

//===----------------------------------------------------------------------===//
// boa.concat
//===----------------------------------------------------------------------===//

LogicalResult ConcatOp::verify() { return verifyParts(*this, getParts(), getY()); }
void ConcatOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  auto split = SplitOp::create(builder, getLoc(), TypeRange(getParts()), results[0]);
  llvm::append_range(operands, split.getParts());
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/ShapeOps.cpp.inc"
