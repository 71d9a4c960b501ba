//===- BoaCompute.cpp - Verifiers and costs of the compute ops ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ComputeOps.h"
#include "dialect/TokenDigits.h"

#include <algorithm>
#include <cmath>

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
LogicalResult AddOp::verify() { return verifySuffix(*this, "rhs", getRhs(), "lhs", getLhs()); }
LogicalResult MulOp::verify() { return verifySuffix(*this, "rhs", getRhs(), "lhs", getLhs()); }
LogicalResult SumLeadingOp::verify() {
  if (failed(verifyOneFloatType(*this, {getY()})))
    return failure();
  return verifySuffix(*this, "y", getY(), "x", getX());
}
LogicalResult CastOp::verify() { return verifyShape(*this, "a result", getY(), shapeOf(getX())); }

bool CastOp::isExact() {
  auto semantics = [](Value value) -> const llvm::fltSemantics & {
    return cast<FloatType>(tensorType(value).getElementType()).getFloatSemantics();
  };
  return APFloat::isRepresentableBy(semantics(getX()), semantics(getY()));
}

/// A cast to the same type is none; one of what was cast exactly is one of what it was
/// cast from. (After one that rounds there is something to lose.)
OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getX().getType() == getY().getType())
    return getX();
  auto inner = getX().getDefiningOp<CastOp>();
  if (!inner || !inner.isExact())
    return {};
  getXMutable().assign(inner.getX());
  return getY();
}

/// Parts of the last dimension, in all others like the whole.
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
LogicalResult SplitOp::verify() { return verifyParts(*this, getParts(), getX()); }
LogicalResult ConcatOp::verify() { return verifyParts(*this, getParts(), getY()); }

/// `like` has the shape of x; vectors have its last dimension, or that of one of its heads.
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
LogicalResult LayerNormOp::verify() {
  return verifyNorm(*this, "a result", getY(), {{"a weight", getWeight()}, {"a bias", getBias()}});
}
LogicalResult LayerNormGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getDweight(), getDbias()})) ||
      failed(verifyShape(*this, "dx", getDx(), shapeOf(getX()))))
    return failure();
  return verifyNorm(*this, "dy", getDy(),
                    {{"a weight", getWeight()}, {"dweight", getDweight()}, {"dbias", getDbias()}});
}
LogicalResult RmsNormOp::verify() {
  return verifyNorm(*this, "a result", getY(), {{"a weight", getWeight()}});
}
LogicalResult RmsNormGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getDweight()})) ||
      failed(verifyShape(*this, "dx", getDx(), shapeOf(getX()))))
    return failure();
  return verifyNorm(*this, "dy", getDy(), {{"a weight", getWeight()}, {"dweight", getDweight()}});
}

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
  if (bool(getPositions()) != getLength().has_value())
    return emitOpError("expected positions and their length together");
  if (Value positions = getPositions())
    if (failed(verifyShape(*this, "positions", positions, shapeOf(getX()).drop_back())))
      return failure();
  if (double factor = getFactor() ? getFactor()->convertToDouble() : 1;
      !(factor > 0) || !std::isfinite(factor))
    return emitOpError("expected a factor above 0 but found ") << factor;
  if (!getOriginalContext())
    return success();
  double low = getLow()->convertToDouble(), high = getHigh()->convertToDouble();
  if (!(low > 0 && low < high && std::isfinite(high)))
    return emitOpError("expected 0 < low < high but found ") << low << " and " << high;
  if (int64_t context = *getOriginalContext(); context <= 0)
    return emitOpError("expected an original_context of 1 or more but found ") << context;
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
LogicalResult AttentionOp::verify() {
  if (failed(verifyOneFloatType(*this, {getLse()})))
    return failure();
  return verifyAttention(*this);
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
  if (failed(verifyShape(*this, "y", getY(), shapeOf(getQ()))))
    return failure();
  return verifyShape(*this, "positions", getPositions(), {1, rows});
}

static LogicalResult verifyEmbedding(Operation *op, StringRef tableName, Value table, Value tokens,
                                     StringRef name, Value rows) {
  if (failed(verifyRank(op, tableName, table, 2)))
    return failure();
  SmallVector<int64_t> shape(shapeOf(tokens));
  shape.push_back(lastDim(table));
  return verifyShape(op, name, rows, shape);
}
LogicalResult EmbeddingOp::verify() {
  return verifyEmbedding(*this, "a table", getTable(), getTokens(), "a result", getY());
}
LogicalResult EmbeddingGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getDtable()})))
    return failure();
  return verifyEmbedding(*this, "dtable", getDtable(), getTokens(), "dy", getDy());
}

/// `found` [batch, time, width + 3] for a table [tokens, width].
static LogicalResult verifyFound(Operation *op, Value found, StringRef tableName, Value table) {
  if (failed(verifyRank(op, "rows", found, 3)) || failed(verifyRank(op, tableName, table, 2)))
    return failure();
  if (lastDim(found) == lastDim(table) + kTokenDigits)
    return success();
  return op->emitOpError("expected rows of ") << lastDim(table) << " values and " << kTokenDigits
                                              << " digits but found " << found.getType();
}
LogicalResult EmbeddingBeginOp::verify() {
  if (failed(verifyOneFloatType(*this)) || failed(verifyRank(*this, "rows", getFound(), 3)))
    return failure();
  return verifyShape(*this, "tokens", getTokens(), shapeOf(getFound()).drop_back());
}
LogicalResult EmbeddingBlockOp::verify() {
  if (failed(verifyOneFloatType(*this)) ||
      failed(verifyShape(*this, "a result", getNext(), shapeOf(getFound()))))
    return failure();
  return verifyFound(*this, getFound(), "a table", getTable());
}
LogicalResult EmbeddingBlockGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getDtable()})) ||
      failed(verifyShape(*this, "dnext", getDnext(), shapeOf(getFound()))))
    return failure();
  return verifyFound(*this, getFound(), "dtable", getDtable());
}

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
LogicalResult CrossEntropyGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getDloss()})) ||
      failed(verifyShape(*this, "dlogits", getDlogits(), shapeOf(getLogits()))))
    return failure();
  return verifyCrossEntropy(*this, getLogits(), getTargets(), "dloss", getDloss());
}

/// `sums` [batch, 3, time] for targets [batch, time].
static LogicalResult verifySums(Operation *op, StringRef name, Value sums, Shape targets) {
  if (targets.size() == 2)
    return verifyShape(op, name, sums, {targets[0], 3, targets[1]});
  return op->emitOpError("expected targets of rank 2 but found rank ") << targets.size();
}
LogicalResult CrossEntropyBeginOp::verify() {
  return verifySums(*this, "sums", getSums(), shapeOf(getTargets()));
}
LogicalResult CrossEntropyBlockOp::verify() {
  if (failed(verifyOneFloatType(*this, {getSums(), getNext()})) ||
      failed(verifyRank(*this, "logits", getLogits(), 3)) ||
      failed(verifyShape(*this, "a result", getNext(), shapeOf(getSums()))))
    return failure();
  return verifySums(*this, "sums", getSums(), shapeOf(getLogits()).drop_back());
}
LogicalResult CrossEntropyBlockGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getSums(), getDnext(), getDsums()})) ||
      failed(verifyRank(*this, "logits", getLogits(), 3)) ||
      failed(verifyShape(*this, "dlogits", getDlogits(), shapeOf(getLogits()))) ||
      failed(verifyShape(*this, "dnext", getDnext(), shapeOf(getSums()))) ||
      failed(verifyShape(*this, "dsums", getDsums(), shapeOf(getSums()))))
    return failure();
  return verifySums(*this, "sums", getSums(), shapeOf(getLogits()).drop_back());
}
LogicalResult CrossEntropyEndOp::verify() {
  if (failed(verifyOneFloatType(*this)) || failed(verifyRank(*this, "a loss", getLoss(), 0)))
    return failure();
  return verifySums(*this, "sums", getSums(), shapeOf(getTargets()));
}
LogicalResult CrossEntropyEndGradOp::verify() {
  if (failed(verifyOneFloatType(*this)) || failed(verifyRank(*this, "dloss", getDloss(), 0)))
    return failure();
  return verifySums(*this, "dsums", getDsums(), shapeOf(getTargets()));
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

double AddOp::getFlops() { return elements(getResult()); }
double MulOp::getFlops() { return elements(getResult()); }
double ScaleOp::getFlops() { return elements(getResult()); }
double CastOp::getFlops() { return isExact() ? 0 : elements(getY()); }
double SumLeadingOp::getFlops() { return elements(getX()); }
double SplitOp::getFlops() { return 0; }
double ConcatOp::getFlops() { return 0; }
double GeluOp::getFlops() { return (getExact() ? 48 : 16) * elements(getY()); }
double GeluGradOp::getFlops() { return (getExact() ? 52 : 24) * elements(getDx()); }
double SiluOp::getFlops() { return 12 * elements(getY()); }
double SiluGradOp::getFlops() { return 16 * elements(getDx()); }
double LayerNormOp::getFlops() { return 8 * elements(getY()); }
double LayerNormGradOp::getFlops() { return 16 * elements(getDx()); }
double RmsNormOp::getFlops() { return 5 * elements(getY()); }
double RmsNormGradOp::getFlops() { return 11 * elements(getDx()); }
double RotaryOp::getFlops() { return 3 * elements(getY()); }
double EmbeddingOp::getFlops() { return 0; }
double EmbeddingGradOp::getFlops() { return elements(getDy()); }
double EmbeddingBeginOp::getFlops() { return elements(getTokens()); }
double EmbeddingBlockOp::getFlops() { return elements(getNext()); }
double EmbeddingBlockGradOp::getFlops() { return elements(getDnext()); }
double CrossEntropyOp::getFlops() { return 10 * elements(getLogits()); }
double CrossEntropyGradOp::getFlops() { return 12 * elements(getLogits()); }
double CrossEntropyBeginOp::getFlops() { return elements(getTargets()); }
double CrossEntropyBlockOp::getFlops() { return 10 * elements(getLogits()); }
double CrossEntropyBlockGradOp::getFlops() { return 20 * elements(getLogits()); }
double CrossEntropyEndOp::getFlops() { return 3 * elements(getTargets()); }
double CrossEntropyEndGradOp::getFlops() { return 3 * elements(getTargets()); }

/// One product of [time, d] with [d, time] for every head, of what is seen: half when causal.
template <typename Op> static double attentionProduct(Op op) {
  auto type = tensorType(op.getQ());
  double batch = double(type.getDimSize(0)), time = double(type.getDimSize(1));
  double window = std::min(double(op.getWindow().value_or(type.getDimSize(1))), time);
  double seen = op.getCausal() ? window * (time - 0.5 * window) : time * time;
  return 2 * batch * seen * double(lastDim(op.getQ()));
}
double AttentionOp::getFlops() { return 2 * attentionProduct(*this); }
/// Of the last rows of a context.
double CachedAttentionOp::getFlops() {
  double context = double(shapeOf(getKeys())[1]);
  return 4 * elements(getQ()) * std::min(double(getWindow().value_or(context)), context);
}
double AttentionGradOp::getFlops() { return 5 * attentionProduct(*this); }

} // namespace boa
