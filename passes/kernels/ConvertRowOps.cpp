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

/// 1 / sqrt(sum / width + eps) for each row.
Value inverseDeviation(LinalgBuilder &linalg, Value sum, int64_t width, double eps) {
  return linalg.elementwise(tensorOf(sum), {sum}, [&](ArrayRef<Scalar> a) {
    return 1.0 / (a[0] / static_cast<double>(width) + eps).sqrt();
  });
}

/// sum / width for each row.
Value meanOf(LinalgBuilder &linalg, Value sum, int64_t width) {
  return linalg.elementwise(tensorOf(sum), {sum},
                            [&](ArrayRef<Scalar> a) { return a[0] / static_cast<double>(width); });
}

/// Mean and inverse deviation of each row of x, in two passes over the row: the
/// difference of two large sums would lose digits.
std::pair<Value, Value> rowStatistics(LinalgBuilder &linalg, Value x, double eps) {
  RankedTensorType type = tensorOf(x);
  int64_t width = type.getShape().back();
  Value sum = linalg.reduceRows(type, Reduction::Sum, {x}, identity);
  Value mean = meanOf(linalg, sum, width);
  Value squares = linalg.reduceRows(type, Reduction::Sum, {x, {mean, Indexing::Leading}},
                                    [](ArrayRef<Scalar> a) {
                                      Scalar d = a[0] - a[1];
                                      return d * d;
                                    });
  return {mean, inverseDeviation(linalg, squares, width, eps)};
}

Value inverseRootMeanSquare(LinalgBuilder &linalg, Value x, double eps) {
  RankedTensorType type = tensorOf(x);
  Value squares =
      linalg.reduceRows(type, Reduction::Sum, {x}, [](ArrayRef<Scalar> a) { return a[0] * a[0]; });
  return inverseDeviation(linalg, squares, type.getShape().back(), eps);
}

struct LayerNormToLinalg : OpRewritePattern<LayerNormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LayerNormOp op, PatternRewriter &rewriter) const override {
    LinalgBuilder linalg(rewriter, op.getLoc());
    Value x = cutHeads(rewriter, op.getLoc(), op.getX(), op.getHeads());
    auto [mean, inverse] = rowStatistics(linalg, x, op.getEps().convertToDouble());
    Value y = linalg.elementwise(tensorOf(x),
                                 {x,
                                  {mean, Indexing::Leading},
                                  {inverse, Indexing::Leading},
                                  {op.getWeight(), Indexing::Trailing},
                                  {op.getBias(), Indexing::Trailing}},
                                 [](ArrayRef<Scalar> a) { // x, mean, inverse, weight, bias
                                   return (a[0] - a[1]) * a[2] * a[3] + a[4];
                                 });
    rewriter.replaceOp(op, joinHeads(rewriter, op.getLoc(), y, op.getHeads()));
    return success();
  }
};

// With n = (x - mean) r and g = dy weight:
//   dx = r (g - mean(g) - n mean(g n)), dweight = sum of dy n, dbias = sum of dy.
struct LayerNormGradToLinalg : OpRewritePattern<LayerNormGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LayerNormGradOp op, PatternRewriter &rewriter) const override {
    LinalgBuilder linalg(rewriter, op.getLoc());
    Value x = cutHeads(rewriter, op.getLoc(), op.getX(), op.getHeads());
    Value dy = cutHeads(rewriter, op.getLoc(), op.getDy(), op.getHeads());
    Value weight = op.getWeight();
    RankedTensorType type = tensorOf(x);
    int64_t width = type.getShape().back();
    auto [mean, inverse] = rowStatistics(linalg, x, op.getEps().convertToDouble());
    SmallVector<Input> inputs{x,
                              dy,
                              {mean, Indexing::Leading},
                              {inverse, Indexing::Leading},
                              {weight, Indexing::Trailing}};
    struct Terms {
      Scalar n, g, inverse;
    };
    auto terms = [](ArrayRef<Scalar> a) {
      Scalar x = a[0], dy = a[1], mean = a[2], inverse = a[3], weight = a[4];
      return Terms{(x - mean) * inverse, dy * weight, inverse};
    };
    Value sumG = linalg.reduceRows(type, Reduction::Sum, {dy, {weight, Indexing::Trailing}},
                                   [](ArrayRef<Scalar> a) { return a[0] * a[1]; });
    Value sumGN = linalg.reduceRows(type, Reduction::Sum, inputs, [&](ArrayRef<Scalar> a) {
      Terms t = terms(a);
      return t.g * t.n;
    });
    Value meanG = meanOf(linalg, sumG, width);
    Value meanGN = meanOf(linalg, sumGN, width);
    SmallVector<Input> all(inputs);
    all.push_back({meanG, Indexing::Leading});
    all.push_back({meanGN, Indexing::Leading});
    Value dx = linalg.elementwise(type, all, [&](ArrayRef<Scalar> a) {
      Terms t = terms(a);
      Scalar meanG = a[5], meanGN = a[6];
      return t.inverse * (t.g - meanG - t.n * meanGN);
    });
    rewriter.replaceAllUsesWith(op.getDx(), joinHeads(rewriter, op.getLoc(), dx, op.getHeads()));
    replaceSum(rewriter, op.getLoc(), op.getDweight(), [&](LinalgBuilder &at, Value init) {
      return at.sumLeading(type, init, ArrayRef<Input>(inputs).drop_back(), [](ArrayRef<Scalar> a) {
        Scalar x = a[0], dy = a[1], mean = a[2], inverse = a[3];
        return dy * ((x - mean) * inverse);
      });
    });
    replaceSum(rewriter, op.getLoc(), op.getDbias(), [&](LinalgBuilder &at, Value init) {
      return at.sumLeading(type, init, {dy}, identity);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct RmsNormToLinalg : OpRewritePattern<RmsNormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(RmsNormOp op, PatternRewriter &rewriter) const override {
    LinalgBuilder linalg(rewriter, op.getLoc());
    Value x = cutHeads(rewriter, op.getLoc(), op.getX(), op.getHeads());
    Value inverse = inverseRootMeanSquare(linalg, x, op.getEps().convertToDouble());
    Value y = linalg.elementwise(
        tensorOf(x), {x, {inverse, Indexing::Leading}, {op.getWeight(), Indexing::Trailing}},
        [](ArrayRef<Scalar> a) { return a[0] * a[1] * a[2]; });
    rewriter.replaceOp(op, joinHeads(rewriter, op.getLoc(), y, op.getHeads()));
    return success();
  }
};

// With n = x r and g = dy weight: dx = r (g - n mean(g n)), dweight = sum of dy n.
struct RmsNormGradToLinalg : OpRewritePattern<RmsNormGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(RmsNormGradOp op, PatternRewriter &rewriter) const override {
    LinalgBuilder linalg(rewriter, op.getLoc());
    Value x = cutHeads(rewriter, op.getLoc(), op.getX(), op.getHeads());
    Value dy = cutHeads(rewriter, op.getLoc(), op.getDy(), op.getHeads());
    Value weight = op.getWeight();
    RankedTensorType type = tensorOf(x);
    int64_t width = type.getShape().back();
    Value inverse = inverseRootMeanSquare(linalg, x, op.getEps().convertToDouble());
    SmallVector<Input> inputs{x, dy, {inverse, Indexing::Leading}, {weight, Indexing::Trailing}};
    Value sumGN = linalg.reduceRows(type, Reduction::Sum, inputs, [](ArrayRef<Scalar> a) {
      Scalar x = a[0], dy = a[1], inverse = a[2], weight = a[3];
      return dy * weight * (x * inverse);
    });
    SmallVector<Input> all(inputs);
    all.push_back({meanOf(linalg, sumGN, width), Indexing::Leading});
    Value dx = linalg.elementwise(type, all, [](ArrayRef<Scalar> a) {
      Scalar x = a[0], dy = a[1], inverse = a[2], weight = a[3], meanGN = a[4];
      return inverse * (dy * weight - x * inverse * meanGN);
    });
    rewriter.replaceAllUsesWith(op.getDx(), joinHeads(rewriter, op.getLoc(), dx, op.getHeads()));
    replaceSum(rewriter, op.getLoc(), op.getDweight(), [&](LinalgBuilder &at, Value init) {
      return at.sumLeading(type, init, ArrayRef<Input>(inputs).drop_back(),
                           [](ArrayRef<Scalar> a) { // x, dy, inverse
                             return a[1] * (a[0] * a[2]);
                           });
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
  patterns.add<SumLeadingToLinalg, LayerNormGradToLinalg, RmsNormGradToLinalg>(
      patterns.getContext());
}

void boa::populateRowOpPatterns(RewritePatternSet &patterns) {
  patterns.add<LayerNormToLinalg, RmsNormToLinalg, CrossEntropyToLinalg, CrossEntropyGradToLinalg>(
      patterns.getContext());
}
