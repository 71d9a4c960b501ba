//===- BoaVJP.cpp - Vector-Jacobian products of the compute ops -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ComputeOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace boa {

static Value zeros(OpBuilder &builder, Location loc, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(tensor, builder.getZeroAttr(tensor.getElementType())));
}

void AddOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(results[0]);
  operands.push_back(sumTo(builder, getLoc(), results[0], getRhs()));
}

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

void GeluOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(GeluGradOp::create(builder, getLoc(), getX(), results[0], getExact()));
}
void SiluOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(SiluGradOp::create(builder, getLoc(), getX(), results[0]));
}

void CastOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(builder.createOrFold<CastOp>(getLoc(), getX().getType(), results[0]));
}

void SplitOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  SmallVector<Value> parts;
  for (auto [grad, part] : llvm::zip(results, getParts()))
    parts.push_back(grad ? grad : zeros(builder, getLoc(), part.getType()));
  operands.push_back(ConcatOp::create(builder, getLoc(), getX().getType(), parts));
}
void ConcatOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  auto split = SplitOp::create(builder, getLoc(), TypeRange(getParts()), results[0]);
  llvm::append_range(operands, split.getParts());
}

void LayerNormOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  auto grad =
      LayerNormGradOp::create(builder, getLoc(), getX().getType(),
                              getSumType(getWeight().getType()), getSumType(getBias().getType()),
                              getX(), getWeight(), results[0], getEpsAttr(), getHeadsAttr());
  llvm::append_range(operands, grad.getResults());
}
void RmsNormOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  auto grad =
      RmsNormGradOp::create(builder, getLoc(), getX().getType(), getSumType(getWeight().getType()),
                            getX(), getWeight(), results[0], getEpsAttr(), getHeadsAttr());
  llvm::append_range(operands, grad.getResults());
}

// A rotation's adjoint is its inverse.
void RotaryOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(RotaryOp::create(builder, getLoc(), getX().getType(), results[0],
                                      getPositions(), getHeads(), getBase(), !getInverse(),
                                      getFactorAttr(), getLowAttr(), getHighAttr(),
                                      getOriginalContextAttr(), getLengthAttr()));
  if (getPositions())
    operands.push_back(Value());
}

void AttentionOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  auto grad = AttentionGradOp::create(builder, getLoc(), getQ().getType(), getK().getType(),
                                      getV().getType(), getQ(), getK(), getV(), getY(), getLse(),
                                      results[0], getDocumentStarts(), getHeads(), getKvHeads(),
                                      getCausal(), getWindowAttr());
  llvm::append_range(operands, grad.getResults());
  if (getDocumentStarts())
    operands.push_back(Value());
}

void EmbeddingOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(EmbeddingGradOp::create(builder, getLoc(), getSumType(getTable().getType()),
                                             getTokens(), results[0]));
  operands.push_back(Value());
}

// A row that a block finds was zero before, whatever is found in earlier blocks.
void EmbeddingBlockOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(results[0]);
  operands.push_back(EmbeddingBlockGradOp::create(
      builder, getLoc(), getSumType(getTable().getType()), getFound(), results[0]));
}

void CrossEntropyOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(CrossEntropyGradOp::create(builder, getLoc(), getLogits().getType(),
                                                getLogits(), getTargets(), results[0]));
  operands.push_back(Value());
}

void CrossEntropyBlockOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  auto grad =
      CrossEntropyBlockGradOp::create(builder, getLoc(), getSums().getType(), getLogits().getType(),
                                      getSums(), getLogits(), results[0]);
  llvm::append_range(operands, grad.getResults());
}
void CrossEntropyEndOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(CrossEntropyEndGradOp::create(builder, getLoc(), getSums().getType(),
                                                   getTargets(), results[0]));
  operands.push_back(Value());
}

} // namespace boa
