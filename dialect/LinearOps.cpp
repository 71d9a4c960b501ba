//===- LinearOps.cpp - Matrix products ------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ComputeOps.h"

using namespace mlir;

namespace boa {

/// Checks `y`[rows, out] of a product of `x`[rows, in] and `weight`, [in, out] or [out, in].
static LogicalResult verifyLinear(Operation *op, Value x, Value weight, Value y, bool transpose) {
  if (failed(verifyRank(op, "x", x, 1, /*exact=*/false)))
    return failure();
  auto type = tensorType(weight);
  if (type.getRank() != 2)
    return op->emitOpError("expected a weight of rank 2 but found ") << type;
  int64_t in = type.getDimSize(transpose ? 1 : 0), out = type.getDimSize(transpose ? 0 : 1);
  if (lastDim(x) != in)
    return op->emitOpError("expected the last dimension of x to be ")
           << in << " but found " << lastDim(x);
  SmallVector<int64_t> shape(shapeOf(x));
  shape.back() = out;
  if (shapeOf(y) != Shape(shape))
    return op->emitOpError("expected a result whose last dimension is ")
           << out << " but found " << y.getType();
  return success();
}

//===----------------------------------------------------------------------===//
// boa.linear
//===----------------------------------------------------------------------===//

LogicalResult LinearOp::verify() {
  if (failed(verifyLinear(*this, getX(), getWeight(), getY(), getTranspose())))
    return failure();
  if (getBias() && shapeOf(getBias()) != Shape{lastDim(getY())})
    return emitOpError("expected a bias of ")
           << lastDim(getY()) << " elements but found " << getBias().getType();
  return success();
}

// y = x w + b: dx = dy w^T, dw = x^T dy, db = sum over rows of dy.
void LinearOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  Value dy = results[0];
  operands.push_back(LinearOp::create(builder, getLoc(), getX().getType(), dy, getWeight(), Value(),
                                      !getTranspose()));
  operands.push_back(LinearWeightGradOp::create(
      builder, getLoc(), getSumType(getWeight().getType()), getX(), dy, getTranspose()));
  if (getBias())
    operands.push_back(sumTo(builder, getLoc(), dy, getBias()));
}

//===----------------------------------------------------------------------===//
// boa.linear_weight_grad
//===----------------------------------------------------------------------===//

LogicalResult LinearWeightGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getDw()})))
    return failure();
  return verifyLinear(*this, getX(), getDw(), getDy(), getTranspose());
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/LinearOps.cpp.inc"
