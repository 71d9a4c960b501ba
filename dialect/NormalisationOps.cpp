//===- NormalisationOps.cpp - Layer norm and RMS norm ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ComputeOps.h"

using namespace mlir;

namespace boa {

/// Checks that `like` has the shape of x. Vectors must have its last dimension, or that of one of
/// its heads.
template <typename Op>
static LogicalResult verifyNorm(Op op, StringRef name, Value like,
                                ArrayRef<std::pair<StringRef, Value>> vectors) {
  Value x = op.getX();
  APFloat eps = op.getEps();
  int64_t heads = op.getHeads().value_or(1);
  if (failed(verifyRank(op, "x", x, 1, /*exact=*/false)) ||
      failed(verifyShape(op, name, like, shapeOf(x))))
    return failure();
  if (heads <= 0 || lastDim(x) % heads != 0)
    return op->emitOpError("expected heads to divide the width ")
           << lastDim(x) << " but found " << heads;
  for (auto [vector, value] : vectors)
    if (failed(verifyShape(op, vector, value, {lastDim(x) / heads})))
      return failure();
  if (!eps.isFinite() || eps.isNegative())
    return op->emitOpError("expected an eps of 0 or more but found ") << eps.convertToDouble();
  return success();
}

//===----------------------------------------------------------------------===//
// boa.layer_norm
//===----------------------------------------------------------------------===//

LogicalResult LayerNormOp::verify() {
  return verifyNorm(*this, "a result", getY(), {{"a weight", getWeight()}, {"a bias", getBias()}});
}
void LayerNormOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  auto grad =
      LayerNormGradOp::create(builder, getLoc(), getX().getType(),
                              getSumType(getWeight().getType()), getSumType(getBias().getType()),
                              getX(), getWeight(), results[0], getEpsAttr(), getHeadsAttr());
  llvm::append_range(operands, grad.getResults());
}

LogicalResult LayerNormGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getDweight(), getDbias()})) ||
      failed(verifyShape(*this, "dx", getDx(), shapeOf(getX()))))
    return failure();
  return verifyNorm(*this, "dy", getDy(),
                    {{"a weight", getWeight()}, {"dweight", getDweight()}, {"dbias", getDbias()}});
}

//===----------------------------------------------------------------------===//
// boa.rms_norm
//===----------------------------------------------------------------------===//

LogicalResult RmsNormOp::verify() {
  return verifyNorm(*this, "a result", getY(), {{"a weight", getWeight()}});
}
void RmsNormOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  auto grad =
      RmsNormGradOp::create(builder, getLoc(), getX().getType(), getSumType(getWeight().getType()),
                            getX(), getWeight(), results[0], getEpsAttr(), getHeadsAttr());
  llvm::append_range(operands, grad.getResults());
}

LogicalResult RmsNormGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getDweight()})) ||
      failed(verifyShape(*this, "dx", getDx(), shapeOf(getX()))))
    return failure();
  return verifyNorm(*this, "dy", getDy(), {{"a weight", getWeight()}, {"dweight", getDweight()}});
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/NormalisationOps.cpp.inc"
