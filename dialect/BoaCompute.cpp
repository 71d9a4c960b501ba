//===- BoaCompute.cpp - Verifiers and costs of the compute ops ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Costs count one floating-point operation for each multiply and each add;
// transcendental functions count as 8.
//
//===----------------------------------------------------------------------===//
#include "dialect/Boa.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace boa {

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }
static int64_t lastDim(Value value) { return tensorType(value).getShape().back(); }
static double elements(Value value) { return double(tensorType(value).getNumElements()); }
/// Rows: all leading dimensions together.
static double rows(Value value) { return elements(value) / double(lastDim(value)); }

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult LinearOp::verify() {
  auto weight = tensorType(getWeight());
  if (weight.getRank() != 2)
    return emitOpError("expected a weight of rank 2 but found ") << weight;
  int64_t in = weight.getDimSize(getTranspose() ? 1 : 0);
  int64_t out = weight.getDimSize(getTranspose() ? 0 : 1);
  if (lastDim(getX()) != in)
    return emitOpError("expected the last dimension of x to be ")
           << in << " but found " << lastDim(getX());
  SmallVector<int64_t> shape(tensorType(getX()).getShape());
  shape.back() = out;
  if (tensorType(getY()).getShape() != ArrayRef<int64_t>(shape))
    return emitOpError("expected a result whose last dimension is ")
           << out << " but found " << getY().getType();
  if (getBias() && tensorType(getBias()).getShape() != ArrayRef<int64_t>{out})
    return emitOpError("expected a bias of ")
           << out << " elements but found " << getBias().getType();
  return success();
}

static LogicalResult verifyBroadcast(Operation *op, Value lhs, Value rhs, Value result) {
  if (lhs.getType() != result.getType())
    return op->emitOpError("expected the result to have the type of lhs");
  auto left = tensorType(lhs).getShape(), right = tensorType(rhs).getShape();
  if (right.size() > left.size() || left.take_back(right.size()) != right)
    return op->emitOpError("expected the shape of rhs to be a suffix of that of lhs, found ")
           << lhs.getType() << " and " << rhs.getType();
  return success();
}
LogicalResult AddOp::verify() { return verifyBroadcast(*this, getLhs(), getRhs(), getResult()); }
LogicalResult MulOp::verify() { return verifyBroadcast(*this, getLhs(), getRhs(), getResult()); }

LogicalResult SplitOp::verify() {
  int64_t sum = 0;
  for (Value part : getParts())
    sum += lastDim(part);
  if (sum != lastDim(getX()))
    return emitOpError("expected parts that add up to ") << lastDim(getX()) << " but found " << sum;
  return success();
}

LogicalResult AttentionOp::verify() {
  if (getHeads() <= 0 || getKvHeads() <= 0 || getHeads() % getKvHeads() != 0)
    return emitOpError("expected kv_heads to divide heads, found ")
           << getHeads() << " and " << getKvHeads();
  if (lastDim(getQ()) % getHeads() != 0)
    return emitOpError("expected heads to divide the width ") << lastDim(getQ());
  int64_t d = lastDim(getQ()) / int64_t(getHeads());
  int64_t kvWidth = d * int64_t(getKvHeads());
  if (lastDim(getK()) != kvWidth || lastDim(getV()) != kvWidth)
    return emitOpError("expected k and v of width ")
           << kvWidth << " but found " << lastDim(getK()) << " and " << lastDim(getV());
  return success();
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

double LinearOp::getFlops() { return 2 * elements(getY()) * double(lastDim(getX())); }
double LinearWeightGradOp::getFlops() { return 2 * elements(getDw()) * rows(getX()); }
double AddOp::getFlops() { return elements(getResult()); }
double MulOp::getFlops() { return elements(getResult()); }
double ScaleOp::getFlops() { return elements(getResult()); }
double CastOp::getFlops() { return 0; }
double SumLeadingOp::getFlops() { return elements(getX()); }
double SplitOp::getFlops() { return 0; }
double ConcatOp::getFlops() { return 0; }
double GeluOp::getFlops() { return 16 * elements(getY()); }
double GeluGradOp::getFlops() { return 24 * elements(getDx()); }
double SiluOp::getFlops() { return 12 * elements(getY()); }
double SiluGradOp::getFlops() { return 16 * elements(getDx()); }
double LayerNormOp::getFlops() { return 8 * elements(getY()); }
double LayerNormGradOp::getFlops() { return 16 * elements(getDx()); }
double RmsNormOp::getFlops() { return 5 * elements(getY()); }
double RmsNormGradOp::getFlops() { return 11 * elements(getDx()); }
double RotaryOp::getFlops() { return 3 * elements(getY()); }
double EmbeddingOp::getFlops() { return 0; }
double EmbeddingGradOp::getFlops() { return elements(getDy()); }
double CrossEntropyOp::getFlops() { return 10 * elements(getLogits()); }
double CrossEntropyGradOp::getFlops() { return 12 * elements(getLogits()); }

/// One product of [time, d] with [d, time] for every head, halved when causal.
static double attentionProduct(Value q, int64_t heads, bool causal) {
  auto type = tensorType(q);
  double batch = double(type.getDimSize(0)), time = double(type.getDimSize(1));
  return 2 * batch * time * time * double(lastDim(q)) * (causal ? 0.5 : 1);
}
double AttentionOp::getFlops() { return 2 * attentionProduct(getQ(), getHeads(), getCausal()); }
double AttentionGradOp::getFlops() { return 5 * attentionProduct(getQ(), getHeads(), getCausal()); }

} // namespace boa
