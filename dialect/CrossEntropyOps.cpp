//===- CrossEntropyOps.cpp - The loss -------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ComputeOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// boa.cross_entropy
//===----------------------------------------------------------------------===//

static LogicalResult verifyCrossEntropy(Operation *op, Value logits, Value targets, StringRef name,
                                        Value loss) {
  if (failed(verifyRank(op, "logits", logits, 3)) || failed(verifyRank(op, name, loss, 0)))
    return failure();
  return verifyShape(op, "targets", targets, shapeOf(logits).drop_back());
}

LogicalResult CrossEntropyOp::verify() {
  if (failed(verifyOneFloatType(*this, {getLoss()})))
    return failure();
  return verifyCrossEntropy(*this, getLogits(), getTargets(), "a loss", getLoss());
}
void CrossEntropyOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(CrossEntropyGradOp::create(builder, getLoc(), getLogits().getType(),
                                                getLogits(), getTargets(), results[0]));
}

LogicalResult CrossEntropyGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getDloss()})) ||
      failed(verifyShape(*this, "dlogits", getDlogits(), shapeOf(getLogits()))))
    return failure();
  return verifyCrossEntropy(*this, getLogits(), getTargets(), "dloss", getDloss());
}

//===----------------------------------------------------------------------===//
// By blocks of the vocabulary
//===----------------------------------------------------------------------===//

/// Checks that values of each token have the shape of the targets.
static LogicalResult verifyValues(Operation *op, ValueRange values, Value targets) {
  if (failed(verifyRank(op, "targets", targets, 2)))
    return failure();
  for (Value value : values)
    if (failed(verifyShape(op, "values of tokens", value, shapeOf(targets))))
      return failure();
  return success();
}
static LogicalResult verifyBlock(Operation *op, ValueRange values, Value targets, Value logits) {
  if (failed(verifyOneFloatType(op, values)) || failed(verifyRank(op, "logits", logits, 3)) ||
      failed(verifyShape(op, "targets", targets, shapeOf(logits).drop_back())))
    return failure();
  return verifyValues(op, values, targets);
}

LogicalResult CrossEntropyBlockOp::verify() {
  return verifyBlock(*this, {getLog(), getLogit(), getNextLog(), getNextLogit()}, getTargets(),
                     getLogits());
}
void CrossEntropyBlockOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  SmallVector<Value> gradients(results);
  for (Value &gradient : gradients)
    if (!gradient)
      gradient =
          arith::ConstantOp::create(builder, getLoc(), builder.getZeroAttr(getLog().getType()));
  auto grad = CrossEntropyBlockGradOp::create(
      builder, getLoc(), getLog().getType(), getLogit().getType(), getLogits().getType(), getLog(),
      getTargets(), getLogits(), gradients[0], gradients[1]);
  operands.append({grad.getDlog(), grad.getDlogit(), Value(), grad.getDlogits()});
}

LogicalResult CrossEntropyBlockGradOp::verify() {
  if (failed(verifyShape(*this, "dlogits", getDlogits(), shapeOf(getLogits()))))
    return failure();
  return verifyBlock(*this, {getLog(), getDnextLog(), getDnextLogit(), getDlog(), getDlogit()},
                     getTargets(), getLogits());
}

LogicalResult CrossEntropyEndOp::verify() {
  if (failed(verifyOneFloatType(*this)) || failed(verifyRank(*this, "a loss", getLoss(), 0)))
    return failure();
  return verifyValues(*this, {getLog(), getLogit()}, getTargets());
}
void CrossEntropyEndOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  auto grad = CrossEntropyEndGradOp::create(builder, getLoc(), getLog().getType(),
                                            getLogit().getType(), getTargets(), results[0]);
  operands.append({grad.getDlog(), grad.getDlogit()});
}

LogicalResult CrossEntropyEndGradOp::verify() {
  if (failed(verifyOneFloatType(*this)) || failed(verifyRank(*this, "dloss", getDloss(), 0)))
    return failure();
  return verifyValues(*this, {getDlog(), getDlogit()}, getTargets());
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/CrossEntropyOps.cpp.inc"
