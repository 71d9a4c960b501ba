//===- ElementwiseOps.cpp - Elementwise, casts and sums -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ComputeOps.h"

using namespace mlir;

namespace boa {

static LogicalResult verifySuffix(Operation *op, StringRef name, Value part, StringRef ofName,
                                  Value whole) {
  Shape left = shapeOf(whole), right = shapeOf(part);
  if (right.size() > left.size() || left.take_back(right.size()) != right)
    return op->emitOpError("expected the shape of ")
           << name << " to be a suffix of that of " << ofName << ", found " << whole.getType()
           << " and " << part.getType();
  return success();
}

//===----------------------------------------------------------------------===//
// boa.add, boa.mul, boa.scale
//===----------------------------------------------------------------------===//

LogicalResult AddOp::verify() { return verifySuffix(*this, "rhs", getRhs(), "lhs", getLhs()); }
void AddOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(results[0]);
  operands.push_back(sumTo(builder, getLoc(), results[0], getRhs()));
}

LogicalResult MulOp::verify() { return verifySuffix(*this, "rhs", getRhs(), "lhs", getLhs()); }
void MulOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  Value dy = results[0], lhs = getLhs();
  operands.push_back(MulOp::create(builder, getLoc(), dy, getRhs()));
  if (getRhs().getType() != dy.getType()) { // summed over rows: products, too, are not rounded
    Type wide = getSumType(dy.getType());
    lhs = builder.createOrFold<CastOp>(getLoc(), wide, lhs);
    dy = builder.createOrFold<CastOp>(getLoc(), wide, dy);
  }
  operands.push_back(sumTo(builder, getLoc(), MulOp::create(builder, getLoc(), dy, lhs), getRhs()));
}

void ScaleOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(ScaleOp::create(builder, getLoc(), results[0], getFactor()));
}

//===----------------------------------------------------------------------===//
// boa.dropout
//===----------------------------------------------------------------------===//

LogicalResult DropoutOp::verify() {
  if (double p = getProbability().convertToDouble(); !(p >= 0 && p < 1))
    return emitOpError("expected a probability of at least 0 and below 1 but found ") << p;
  if (getKeys() && shapeOf(getKeys()) != shapeOf(getX()).drop_back())
    return emitOpError("expected one key for each row of ")
           << getX().getType() << " but found " << getKeys().getType();
  return success();
}
void DropoutOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(DropoutOp::create(builder, getLoc(), results[0].getType(), results[0],
                                       getKeys(), getProbabilityAttr(), getSiteAttr()));
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

void GeluOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(GeluGradOp::create(builder, getLoc(), getX(), results[0], getExact()));
}

//===----------------------------------------------------------------------===//
// boa.cast
//===----------------------------------------------------------------------===//

LogicalResult CastOp::verify() { return verifyShape(*this, "a result", getY(), shapeOf(getX())); }

bool CastOp::isExact() {
  auto semantics = [](Value value) -> const llvm::fltSemantics & {
    return cast<FloatType>(tensorType(value).getElementType()).getFloatSemantics();
  };
  return APFloat::isRepresentableBy(semantics(getX()), semantics(getY()));
}

/// Removes a cast to the same type, and a cast back of what was cast exactly. (A cast that rounds
/// loses something.)
OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getX().getType() == getY().getType())
    return getX();
  auto inner = getX().getDefiningOp<CastOp>();
  if (!inner || !inner.isExact())
    return {};
  getXMutable().assign(inner.getX());
  return getY();
}

void CastOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(builder.createOrFold<CastOp>(getLoc(), getX().getType(), results[0]));
}

//===----------------------------------------------------------------------===//
// boa.sum_leading
//===----------------------------------------------------------------------===//

LogicalResult SumLeadingOp::verify() {
  if (failed(verifyOneFloatType(*this, {getY()})))
    return failure();
  return verifySuffix(*this, "y", getY(), "x", getX());
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/ElementwiseOps.cpp.inc"
