//===- AttentionOps.cpp - Attention, rotary embedding ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ComputeOps.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// boa.rotary
//===----------------------------------------------------------------------===//

/// The widest head. The compiler has a frequency for each pair of its columns.
static constexpr int64_t kMostHeadWidth = 1 << 16;

LogicalResult RotaryOp::verify() {
  if (failed(verifyRank(*this, "x", getX(), 3)))
    return failure();
  int64_t heads = getHeads(), width = lastDim(getX());
  if (heads <= 0 || width % heads != 0)
    return emitOpError("expected heads to divide the width ") << width << " but found " << heads;
  if (width / heads % 2 != 0)
    return emitOpError("expected heads of even size, which are rotated in pairs, but found ")
           << width / heads;
  double base = getBase().convertToDouble();
  if (!(base > 0) || !std::isfinite(base))
    return emitOpError("expected a base above 0 but found ") << base;
  if (bool low = getLow().has_value(), high = getHigh().has_value(), any = low || high;
      low != high || any != getOriginalContext().has_value() || (any && !getFactor()))
    return emitOpError("expected low, high and original_context together, and a factor with them");
  if (width / heads > kMostHeadWidth)
    return emitOpError("expected heads of at most ")
           << kMostHeadWidth << " elements but found " << width / heads;
  if (bool(getPositions()) != getLength().has_value())
    return emitOpError("expected positions and their length together");
  if (int64_t length = getLength().value_or(1); length < 1 || length > kMostExtent)
    return emitOpError("expected a length of 1 to ") << kMostExtent << " but found " << length;
  if (Value positions = getPositions())
    if (failed(verifyShape(*this, "positions", positions, shapeOf(getX()).drop_back())))
      return failure();
  if (double factor = getFactor() ? getFactor()->convertToDouble() : 1;
      !(factor > 0) || !std::isfinite(factor))
    return emitOpError("expected a factor above 0 but found ") << factor;
  if (getOriginalContext()) {
    double low = getLow()->convertToDouble(), high = getHigh()->convertToDouble();
    if (!(low > 0 && low < high && std::isfinite(high)))
      return emitOpError("expected 0 < low < high but found ") << low << " and " << high;
    if (int64_t context = *getOriginalContext(); context <= 0)
      return emitOpError("expected an original_context of 1 or more but found ") << context;
  }
  if (!llvm::all_of(getFrequencies(), [](double frequency) { return std::isfinite(frequency); }))
    return emitOpError("expected finite frequencies: its base or its factor is too near to 0");
  return success();
}

SmallVector<double> RotaryOp::getFrequencies() {
  int64_t half = lastDim(getX()) / int64_t(getHeads()) / 2;
  double base = getBase().convertToDouble();
  double factor = getFactor() ? getFactor()->convertToDouble() : 1;
  SmallVector<double> frequencies;
  for (int64_t i = 0; i < half; ++i) {
    double f = std::pow(base, -double(i) / double(half));
    if (getOriginalContext()) {
      double low = getLow()->convertToDouble(), high = getHigh()->convertToDouble();
      double turns = double(int64_t(*getOriginalContext())) * f / (2 * M_PI);
      double s = std::clamp((turns - low) / (high - low), 0.0, 1.0);
      // Both ends to the bit.
      f = s == 1 ? f : s == 0 ? f / factor : (1 - s) * f / factor + s * f;
    } else if (getFactor()) {
      f /= factor;
    }
    frequencies.push_back(f);
  }
  return frequencies;
}

// A rotation's adjoint is its inverse.
void RotaryOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(RotaryOp::create(builder, getLoc(), getX().getType(), results[0],
                                      getPositions(), getHeads(), getBase(), !getInverse(),
                                      getFactorAttr(), getLowAttr(), getHighAttr(),
                                      getOriginalContextAttr(), getLengthAttr()));
}

//===----------------------------------------------------------------------===//
// boa.attention
//===----------------------------------------------------------------------===//

template <typename Op> static LogicalResult verifyAttention(Op op) {
  Value q = op.getQ(), k = op.getK(), v = op.getV();
  int64_t heads = op.getHeads(), kvHeads = op.getKvHeads();
  for (auto [name, value] : {std::pair<StringRef, Value>{"q", q}, {"k", k}, {"v", v}})
    if (failed(verifyRank(op, name, value, 3)))
      return failure();
  if (heads <= 0 || kvHeads <= 0 || heads % kvHeads != 0)
    return op->emitOpError("expected kv_heads to divide heads, found ")
           << heads << " and " << kvHeads;
  if (lastDim(q) % heads != 0)
    return op->emitOpError("expected heads to divide the width ") << lastDim(q);
  int64_t kvWidth = lastDim(q) / heads * kvHeads;
  if (lastDim(k) != kvWidth || lastDim(v) != kvWidth)
    return op->emitOpError("expected k and v of width ")
           << kvWidth << " but found " << lastDim(k) << " and " << lastDim(v);
  int64_t batch = shapeOf(q)[0], time = shapeOf(q)[1];
  if (failed(verifyShape(op, "k", k, {batch, time, kvWidth})) ||
      failed(verifyShape(op, "v", v, {batch, time, kvWidth})) ||
      failed(verifyShape(op, "y", op.getY(), shapeOf(q))))
    return failure();
  if (int64_t window = op.getWindow().value_or(1); window <= 0)
    return op->emitOpError("expected a window of 1 or more keys but found ") << window;
  if (op.getWindow() && !op.getCausal())
    return op->emitOpError("expected causal attention with a window");
  if (Value starts = op.getDocumentStarts())
    if (failed(verifyShape(op, "document starts", starts, {batch, time})))
      return failure();
  return verifyShape(op, "lse", op.getLse(), {batch, heads, time});
}

/// The operations of one product of [time, d] with [d, time] for each head, as far as it is seen:
/// half if causal.
template <typename Op> static double attentionProduct(Op op) {
  auto type = tensorType(op.getQ());
  double batch = double(type.getDimSize(0)), time = double(type.getDimSize(1));
  double window = std::min(double(op.getWindow().value_or(type.getDimSize(1))), time);
  double seen = op.getCausal() ? window * (time - 0.5 * window) : time * time;
  return 2 * batch * seen * double(lastDim(op.getQ()));
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyOneFloatType(*this, {getLse()})))
    return failure();
  return verifyAttention(*this);
}
void AttentionOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  auto grad = AttentionGradOp::create(builder, getLoc(), getQ().getType(), getK().getType(),
                                      getV().getType(), getQ(), getK(), getV(), getY(), getLse(),
                                      results[0], getDocumentStarts(), getHeads(), getKvHeads(),
                                      getCausal(), getWindowAttr());
  llvm::append_range(operands, grad.getResults());
}

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getLse()})) ||
      failed(verifyShape(*this, "dy", getDy(), shapeOf(getQ()))) ||
      failed(verifyShape(*this, "dq", getDq(), shapeOf(getQ()))) ||
      failed(verifyShape(*this, "dk", getDk(), shapeOf(getK()))) ||
      failed(verifyShape(*this, "dv", getDv(), shapeOf(getV()))))
    return failure();
  return verifyAttention(*this);
}

//===----------------------------------------------------------------------===//
// boa.cached_attention
//===----------------------------------------------------------------------===//

LogicalResult CachedAttentionOp::verify() {
  for (auto [name, value] : {std::pair<StringRef, Value>{"q", getQ()}, {"keys", getKeys()}})
    if (failed(verifyRank(*this, name, value, 3)))
      return failure();
  int64_t heads = getHeads(), kvHeads = getKvHeads();
  if (heads <= 0 || kvHeads <= 0 || heads % kvHeads != 0 || lastDim(getQ()) % heads != 0)
    return emitOpError("expected kv_heads to divide heads, and heads the width of q, found ")
           << heads << " and " << kvHeads;
  int64_t rows = shapeOf(getQ())[1], context = shapeOf(getKeys())[1];
  int64_t kvWidth = lastDim(getQ()) / heads * kvHeads;
  if (rows > context)
    return emitOpError("expected at most ") << context << " rows but found " << rows;
  if (int64_t window = getWindow().value_or(1); window <= 0)
    return emitOpError("expected a window of 1 or more keys but found ") << window;
  for (auto [name, value] : {std::pair<StringRef, Value>{"k", getK()}, {"v", getV()}})
    if (failed(verifyShape(*this, name, value, {1, rows, kvWidth})))
      return failure();
  for (auto [name, value] : {std::pair<StringRef, Value>{"keys", getKeys()},
                             {"values", getValues()},
                             {"next_keys", getNextKeys()},
                             {"next_values", getNextValues()}})
    if (failed(verifyShape(*this, name, value, {1, context, kvWidth})))
      return failure();
  if (failed(verifyShape(*this, "q", getQ(), {1, rows, lastDim(getQ())})) ||
      failed(verifyShape(*this, "y", getY(), shapeOf(getQ()))))
    return failure();
  return verifyShape(*this, "positions", getPositions(), {1, rows});
}
/// The operations of one product, for the last rows of a context.
static double cachedProduct(CachedAttentionOp op) {
  double context = double(shapeOf(op.getKeys())[1]);
  return 2 * elements(op.getQ()) * std::min(double(op.getWindow().value_or(context)), context);
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/AttentionOps.cpp.inc"
