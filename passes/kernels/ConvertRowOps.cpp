//===- ConvertRowOps.cpp - Norms and cross-entropy to linalg --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of --convert-boa-to-linalg: ops that reduce each row and then work
// elementwise with what was found, and the sums over rows in their gradients.
// Statistics are computed again in the gradient rather than kept; a common
// subexpression with the forward op is found by CSE, since both are built here.
//
//===----------------------------------------------------------------------===//

#include "dialect/Boa.h"
#include "passes/kernels/ConvertBoaToLinalg.h"
#include "passes/kernels/LinalgBuilder.h"

using namespace mlir;
using namespace boa;

namespace {

//===----------------------------------------------------------------------===//
// Sums over rows
//===----------------------------------------------------------------------===//

/// Replaces `result`, a sum over rows, by sum(init). If its only use is an addition to a tensor of
/// the same type, the sum starts from that tensor, and the addition is replaced, too.
void replaceSum(PatternRewriter &rewriter, Location loc, Value result,
                function_ref<Value(LinalgBuilder &, Value)> sum) {
  if (result.use_empty())
    return;
  OpBuilder::InsertionGuard guard(rewriter);
  auto add = dyn_cast<AddOp>(*result.getUsers().begin());
  if (result.hasOneUse() && add && add.getLhs().getType() == add.getRhs().getType()) {
    Value other = add.getLhs() == result ? add.getRhs() : add.getLhs();
    rewriter.setInsertionPoint(add);
    LinalgBuilder linalg(rewriter, loc);
    rewriter.replaceOp(add, sum(linalg, other));
    return;
  }
  LinalgBuilder linalg(rewriter, loc);
  rewriter.replaceAllUsesWith(result, sum(linalg, linalg.filled(tensorOf(result), 0)));
}

Scalar identity(ArrayRef<Scalar> args) { return args[0]; }

struct SumLeadingToLinalg : OpRewritePattern<SumLeadingOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SumLeadingOp op, PatternRewriter &rewriter) const override {
    replaceSum(rewriter, op.getLoc(), op.getY(), [&](LinalgBuilder &linalg, Value init) {
      return linalg.sumLeading(tensorOf(op.getX()), init, {op.getX()}, identity);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// Reshapes x to [..., heads, n] for a norm of each head; without heads x stays as it is.
Value cutHeads(PatternRewriter &rewriter, Location loc, Value x, std::optional<uint64_t> heads) {
  if (!heads)
    return x;
  RankedTensorType type = tensorOf(x);
  SmallVector<int64_t> shape(type.getShape().drop_back());
  SmallVector<ReassociationIndices> grouping;
  for (int64_t i = 0; i < type.getRank(); ++i)
    grouping.push_back({i});
  grouping.back().push_back(type.getRank());
  llvm::append_values(shape, int64_t(*heads), type.getShape().back() / int64_t(*heads));
  return tensor::ExpandShapeOp::create(rewriter, loc, type.clone(shape), x, grouping);
}

/// Reshapes [..., heads, n] to the rows of x again.
Value joinHeads(PatternRewriter &rewriter, Location loc, Value x, std::optional<uint64_t> heads) {
  if (!heads)
    return x;
  SmallVector<ReassociationIndices> grouping;
  for (int64_t i = 0; i + 1 < tensorOf(x).getRank(); ++i)
    grouping.push_back({i});
  grouping.back().push_back(tensorOf(x).getRank() - 1);
  return tensor::CollapseShapeOp::create(rewriter, loc, x, grouping);
}

/// What a norm makes of each row: n = (x - mean) r with r = 1 / sqrt(variance + eps), or n = x r
/// for a norm by the root mean square.
struct RowNorm {
  Value mean, inverse; // r; the mean may be null
  int64_t width;

  /// The statistics take two passes over the row: the difference of two large sums would lose
  /// digits.
  RowNorm(LinalgBuilder &linalg, Value x, double eps, bool hasMean)
      : width(tensorOf(x).getShape().back()) {
    SmallVector<Input> inputs{x};
    if (hasMean) {
      mean = divide(linalg, sumRows(linalg, tensorOf(x), {x}, identity));
      inputs.push_back({mean, Indexing::Leading});
    }
    Value squares = sumRows(linalg, tensorOf(x), inputs, [&](ArrayRef<Scalar> a) {
      Scalar d = hasMean ? a[0] - a[1] : a[0];
      return d * d;
    });
    inverse = linalg.elementwise(tensorOf(squares), {squares}, [&](ArrayRef<Scalar> a) {
      return 1.0 / (a[0] / static_cast<double>(width) + eps).sqrt();
    });
  }

  static Value sumRows(LinalgBuilder &linalg, RankedTensorType type, ArrayRef<Input> inputs,
                       Body body) {
    return linalg.reduceRows(type, Reduction::Sum, inputs, body);
  }
  /// sum / width for each row.
  Value divide(LinalgBuilder &linalg, Value sum) const {
    return linalg.elementwise(tensorOf(sum), {sum}, [&](ArrayRef<Scalar> a) {
      return a[0] / static_cast<double>(width);
    });
  }
  /// Adds what `normalise` takes, behind other inputs.
  void addTo(SmallVectorImpl<Input> &inputs) const {
    if (mean)
      inputs.push_back({mean, Indexing::Leading});
    inputs.push_back({inverse, Indexing::Leading});
  }
  /// n, of x and of what `addTo` added.
  Scalar normalise(Scalar x, ArrayRef<Scalar> added) const {
    return mean ? (x - added[0]) * added[1] : x * added[0];
  }
};

template <typename Op> struct NormToLinalg : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    constexpr bool isLayer = std::is_same_v<Op, LayerNormOp>;
    LinalgBuilder linalg(rewriter, op.getLoc());
    Value x = cutHeads(rewriter, op.getLoc(), op.getX(), op.getHeads());
    const RowNorm norm(linalg, x, op.getEps().convertToDouble(), isLayer);
    SmallVector<Input> inputs{x};
    norm.addTo(inputs);
    const size_t weight = inputs.size();
    inputs.push_back({op.getWeight(), Indexing::Trailing});
    if constexpr (isLayer)
      inputs.push_back({op.getBias(), Indexing::Trailing});
    Value y = linalg.elementwise(tensorOf(x), inputs, [&](ArrayRef<Scalar> a) {
      Scalar scaled = norm.normalise(a[0], a.drop_front()) * a[weight];
      return isLayer ? scaled + a[weight + 1] : scaled;
    });
    rewriter.replaceOp(op, joinHeads(rewriter, op.getLoc(), y, op.getHeads()));
    return success();
  }
};

// With g = dy weight: dx = r (g - mean(g) - n mean(g n)), or without mean(g) if nothing is
// subtracted from x; dweight = sum of dy n, dbias = sum of dy.
template <typename Op> struct NormGradToLinalg : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    constexpr bool isLayer = std::is_same_v<Op, LayerNormGradOp>;
    LinalgBuilder linalg(rewriter, op.getLoc());
    Value x = cutHeads(rewriter, op.getLoc(), op.getX(), op.getHeads());
    Value dy = cutHeads(rewriter, op.getLoc(), op.getDy(), op.getHeads());
    RankedTensorType type = tensorOf(x);
    const RowNorm norm(linalg, x, op.getEps().convertToDouble(), isLayer);
    const Input weight(op.getWeight(), Indexing::Trailing);
    SmallVector<Input> inputs{x, dy};
    norm.addTo(inputs);
    inputs.push_back(weight);
    const size_t last = inputs.size() - 1; // the weight; r is before it
    auto n = [&](ArrayRef<Scalar> a) { return norm.normalise(a[0], a.drop_front(2)); };
    SmallVector<Input> all(inputs);
    Value sumG;
    if (isLayer)
      sumG =
          norm.sumRows(linalg, type, {dy, weight}, [](ArrayRef<Scalar> a) { return a[0] * a[1]; });
    Value sumGN = norm.sumRows(linalg, type, inputs, [&](ArrayRef<Scalar> a) {
      Scalar g = a[1] * a[last];
      return g * n(a);
    });
    if (isLayer)
      all.push_back({norm.divide(linalg, sumG), Indexing::Leading});
    all.push_back({norm.divide(linalg, sumGN), Indexing::Leading});
    Value dx = linalg.elementwise(type, all, [&](ArrayRef<Scalar> a) {
      Scalar g = a[1] * a[last], rest = isLayer ? g - a[last + 1] : g;
      return a[last - 1] * (rest - n(a) * a.back());
    });
    rewriter.replaceAllUsesWith(op.getDx(), joinHeads(rewriter, op.getLoc(), dx, op.getHeads()));
    replaceSum(rewriter, op.getLoc(), op.getDweight(), [&](LinalgBuilder &at, Value init) {
      return at.sumLeading(type, init, ArrayRef<Input>(inputs).drop_back(),
                           [&](ArrayRef<Scalar> a) { return a[1] * n(a); });
    });
    if constexpr (isLayer)
      replaceSum(rewriter, op.getLoc(), op.getDbias(), [&](LinalgBuilder &at, Value init) {
        return at.sumLeading(type, init, {dy}, identity);
      });
    rewriter.eraseOp(op);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Cross-entropy
//===----------------------------------------------------------------------===//

} // namespace

Scalar boa::isCounted(Scalar target) {
  return target.make<arith::CmpIOp>(arith::CmpIPredicate::sge, target, target.zero());
}

Value boa::countTargets(LinalgBuilder &linalg, Value targets, Type element) {
  RankedTensorType scalar = RankedTensorType::get({}, element);
  Value count = linalg.sumLeading(
      tensorOf(targets), linalg.filled(scalar, 0), {targets},
      [&](ArrayRef<Scalar> a) { return a[0].make<arith::UIToFPOp>(element, isCounted(a[0])); });
  return linalg.elementwise(scalar, {count}, [](ArrayRef<Scalar> a) {
    return a[0].make<arith::MaximumFOp>(a[0], a[0].constant(1));
  });
}

namespace {

/// log(sum of exp(logits)) of each row.
Value logSumExp(LinalgBuilder &linalg, Value logits) {
  RankedTensorType type = tensorOf(logits);
  Value max = linalg.reduceRows(type, Reduction::Max, {logits}, identity);
  Value sum = linalg.reduceRows(type, Reduction::Sum, {logits, {max, Indexing::Leading}},
                                [](ArrayRef<Scalar> a) { return (a[0] - a[1]).exp(); });
  return linalg.elementwise(tensorOf(sum), {sum, max},
                            [](ArrayRef<Scalar> a) { return a[1] + a[0].log(); });
}

struct CrossEntropyToLinalg : OpRewritePattern<CrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CrossEntropyOp op, PatternRewriter &rewriter) const override {
    LinalgBuilder linalg(rewriter, op.getLoc());
    Value logits = op.getLogits(), targets = op.getTargets();
    RankedTensorType type = tensorOf(logits), loss = tensorOf(op.getLoss());
    Value count = countTargets(linalg, targets, type.getElementType());
    Value lse = logSumExp(linalg, logits);
    RankedTensorType rows = LinalgBuilder::getRowsType(type);
    Value each = linalg.elementwise(rows, {targets, lse}, [&](ArrayRef<Scalar> a) {
      Scalar target = a[0], lse = a[1], counted = isCounted(target);
      SmallVector<Value> at;
      for (int64_t i = 0; i < rows.getRank(); ++i)
        at.push_back(target.make<linalg::IndexOp>(i));
      at.push_back(target.toIndex(target.make<arith::MaxSIOp>(target, target.zero())));
      Scalar logit = extractElement(target, logits, at);
      return lse.make<arith::SelectOp>(counted, lse - logit, lse.constant(0));
    });
    Value total = linalg.sumLeading(rows, linalg.filled(loss, 0), {each}, identity);
    Value mean =
        linalg.elementwise(loss, {total, count}, [](ArrayRef<Scalar> a) { return a[0] / a[1]; });
    rewriter.replaceOp(op, mean);
    return success();
  }
};

struct CrossEntropyGradToLinalg : OpRewritePattern<CrossEntropyGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CrossEntropyGradOp op, PatternRewriter &rewriter) const override {
    LinalgBuilder linalg(rewriter, op.getLoc());
    Value logits = op.getLogits(), targets = op.getTargets();
    RankedTensorType type = tensorOf(logits);
    Value count = countTargets(linalg, targets, type.getElementType());
    Value lse = logSumExp(linalg, logits);
    Value scale = linalg.elementwise(
        LinalgBuilder::getRowsType(type),
        {targets, {op.getDloss(), Indexing::Trailing}, {count, Indexing::Trailing}},
        [](ArrayRef<Scalar> a) { // target, dloss, count
          return a[1].make<arith::SelectOp>(isCounted(a[0]), a[1] / a[2], a[1].constant(0));
        });
    Value dlogits = linalg.elementwise(
        type,
        {logits,
         {lse, Indexing::Leading},
         {scale, Indexing::Leading},
         {targets, Indexing::Leading}},
        [&](ArrayRef<Scalar> a) {
          Scalar logit = a[0], lse = a[1], scale = a[2], target = a[3];
          Value column = target.make<arith::IndexCastOp>(
              target.getType(), target.make<linalg::IndexOp>(type.getRank() - 1));
          Scalar hit = target.make<arith::CmpIOp>(arith::CmpIPredicate::eq, column, target);
          Scalar onehot = hit.make<arith::UIToFPOp>(type.getElementType(), hit);
          return ((logit - lse).exp() - onehot) * scale;
        });
    rewriter.replaceOp(op, dlogits);
    return success();
  }
};

} // namespace

void boa::populateRowSumPatterns(RewritePatternSet &patterns) {
  patterns
      .add<SumLeadingToLinalg, NormGradToLinalg<LayerNormGradOp>, NormGradToLinalg<RmsNormGradOp>>(
          patterns.getContext());
}

void boa::populateRowOpPatterns(RewritePatternSet &patterns) {
  patterns.add<NormToLinalg<LayerNormOp>, NormToLinalg<RmsNormOp>, CrossEntropyToLinalg,
               CrossEntropyGradToLinalg>(patterns.getContext());
}
