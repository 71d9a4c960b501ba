//===- CrossEntropyOps.cpp - The loss -------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ComputeOps.h"

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
  operands.push_back(Value());
}
double CrossEntropyOp::getFlops() { return 10 * elements(getLogits()); }

LogicalResult CrossEntropyGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getDloss()})) ||
      failed(verifyShape(*this, "dlogits", getDlogits(), shapeOf(getLogits()))))
    return failure();
  return verifyCrossEntropy(*this, getLogits(), getTargets(), "dloss", getDloss());
}
double CrossEntropyGradOp::getFlops() { return 12 * elements(getLogits()); }

//===----------------------------------------------------------------------===//
// By blocks of the vocabulary
//===----------------------------------------------------------------------===//

/// Checks that `sums` is [batch, 3, time] for targets [batch, time].
static LogicalResult verifySums(Operation *op, StringRef name, Value sums, Shape targets) {
  if (targets.size() == 2)
    return verifyShape(op, name, sums, {targets[0], 3, targets[1]});
  return op->emitOpError("expected targets of rank 2 but found rank ") << targets.size();
}

LogicalResult CrossEntropyBeginOp::verify() {
  return verifySums(*this, "sums", getSums(), shapeOf(getTargets()));
}
double CrossEntropyBeginOp::getFlops() { return elements(getTargets()); }

LogicalResult CrossEntropyBlockOp::verify() {
  if (failed(verifyOneFloatType(*this, {getSums(), getNext()})) ||
      failed(verifyRank(*this, "logits", getLogits(), 3)) ||
      failed(verifyShape(*this, "a result", getNext(), shapeOf(getSums()))))
    return failure();
  return verifySums(*this, "sums", getSums(), shapeOf(getLogits()).drop_back());
}
void CrossEntropyBlockOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  auto grad =
      CrossEntropyBlockGradOp::create(builder, getLoc(), getSums().getType(), getLogits().getType(),
                                      getSums(), getLogits(), results[0]);
  llvm::append_range(operands, grad.getResults());
}
double CrossEntropyBlockOp::getFlops() { return 10 * elements(getLogits()); }

LogicalResult CrossEntropyBlockGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getSums(), getDnext(), getDsums()})) ||
      failed(verifyRank(*this, "logits", getLogits(), 3)) ||
      failed(verifyShape(*this, "dlogits", getDlogits(), shapeOf(getLogits()))) ||
      failed(verifyShape(*this, "dnext", getDnext(), shapeOf(getSums()))) ||
      failed(verifyShape(*this, "dsums", getDsums(), shapeOf(getSums()))))
    return failure();
  return verifySums(*this, "sums", getSums(), shapeOf(getLogits()).drop_back());
}
double CrossEntropyBlockGradOp::getFlops() { return 20 * elements(getLogits()); }

LogicalResult CrossEntropyEndOp::verify() {
  if (failed(verifyOneFloatType(*this)) || failed(verifyRank(*this, "a loss", getLoss(), 0)))
    return failure();
  return verifySums(*this, "sums", getSums(), shapeOf(getTargets()));
}
void CrossEntropyEndOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(CrossEntropyEndGradOp::create(builder, getLoc(), getSums().getType(),
                                                   getTargets(), results[0]));
  operands.push_back(Value());
}
double CrossEntropyEndOp::getFlops() { return 3 * elements(getTargets()); }

LogicalResult CrossEntropyEndGradOp::verify() {
  if (failed(verifyOneFloatType(*this)) || failed(verifyRank(*this, "dloss", getDloss(), 0)))
    return failure();
  return verifySums(*this, "dsums", getDsums(), shapeOf(getTargets()));
}
double CrossEntropyEndGradOp::getFlops() { return 3 * elements(getTargets()); }

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/CrossEntropyOps.cpp.inc"
