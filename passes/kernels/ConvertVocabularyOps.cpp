//===- ConvertVocabularyOps.cpp - Blocks of a vocabulary to linalg --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of --convert-boa-to-linalg: embedding, and cross-entropy that goes on from block to block.
//
//===----------------------------------------------------------------------===//

#include "dialect/Boa.h"
#include "passes/kernels/ConvertBoaToLinalg.h"
#include "passes/kernels/LinalgBuilder.h"

using namespace mlir;
using namespace boa;

namespace {

/// Whether 0 <= target < width. Without its sign, a negative target is above any other.
Scalar isWithin(Scalar target, int64_t width) {
  Scalar end = target.make<arith::ConstantOp>(IntegerAttr::get(target.getType(), width));
  return target.make<arith::CmpIOp>(arith::CmpIPredicate::ult, target, end);
}

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

struct EmbeddingToLinalg : OpRewritePattern<EmbeddingOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(EmbeddingOp op, PatternRewriter &rewriter) const override {
    Value rows = LinalgBuilder(rewriter, op.getLoc())
                     .elementwise(tensorOf(op.getY()), {{op.getTokens(), Indexing::Leading}},
                                  [&](ArrayRef<Scalar> a) {
                                    return op.getPartial() ? takeSome(op, a[0]) : take(op, a[0]);
                                  });
    rewriter.replaceOp(op, rows);
    return success();
  }

  static Scalar take(EmbeddingOp op, Scalar token) {
    Value row = token.toIndex(token);
    Value column = token.make<linalg::IndexOp>(tensorOf(op.getY()).getRank() - 1);
    return extractElement(token, op.getTable(), {row, column});
  }
  /// Zero for a token outside the table. The row that is read is one of the table.
  static Scalar takeSome(EmbeddingOp op, Scalar token) {
    Scalar within = isWithin(token, tensorOf(op.getTable()).getDimSize(0));
    Scalar element = take(op, token.make<arith::SelectOp>(within, token, token.zero()));
    return token.make<arith::SelectOp>(within, element, element.zero());
  }
};

struct RebaseToLinalg : OpRewritePattern<RebaseOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(RebaseOp op, PatternRewriter &rewriter) const override {
    RankedTensorType type = tensorOf(op.getResult());
    rewriter.replaceOp(op, LinalgBuilder(rewriter, op.getLoc())
                               .elementwise(type, {op.getTokens()}, [&](ArrayRef<Scalar> a) {
                                 Scalar by = a[0].make<arith::ConstantOp>(
                                     IntegerAttr::get(a[0].getType(), op.getBy()));
                                 return a[0].make<arith::SubIOp>(a[0], by);
                               }));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Cross-entropy
//===----------------------------------------------------------------------===//

/// The changes that the logits of a block make to the values of tokens.
struct Block {
  Value after; // the logarithm behind it
  int64_t width;

  Block(PatternRewriter &rewriter, Location loc, Value log, Value logits)
      : width(tensorOf(logits).getShape().back()) {
    LinalgBuilder linalg(rewriter, loc);
    RankedTensorType type = tensorOf(logits);
    Value max =
        linalg.reduceRows(type, Reduction::Max, {logits}, [](ArrayRef<Scalar> a) { return a[0]; });
    Value sum = linalg.reduceRows(type, Reduction::Sum, {logits, {max, Indexing::Leading}},
                                  [](ArrayRef<Scalar> a) { return (a[0] - a[1]).exp(); });
    after = linalg.elementwise(tensorOf(log), {log, max, sum}, [](ArrayRef<Scalar> a) {
      Scalar log = a[0], max = a[1], sum = a[2];
      Scalar most = log.make<arith::MaximumFOp>(log, max);
      return most + ((log - most).exp() + sum * (max - most).exp()).log();
    });
  }
};

struct BlockToLinalg : OpRewritePattern<CrossEntropyBlockOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CrossEntropyBlockOp op, PatternRewriter &rewriter) const override {
    LinalgBuilder linalg(rewriter, op.getLoc());
    Value logits = op.getLogits();
    const Block block(rewriter, op.getLoc(), op.getLog(), logits);
    RankedTensorType rows = tensorOf(op.getLog());
    Value logit =
        linalg.elementwise(rows, {op.getTargets(), op.getLogit()}, [&](ArrayRef<Scalar> a) {
          Scalar target = a[0], before = a[1], within = isWithin(target, block.width);
          SmallVector<Value> at;
          for (int64_t i = 0; i < rows.getRank(); ++i)
            at.push_back(target.make<linalg::IndexOp>(i));
          at.push_back(target.toIndex(target.make<arith::SelectOp>(within, target, target.zero())));
          return before.make<arith::SelectOp>(within, extractElement(target, logits, at), before);
        });
    rewriter.replaceOp(op, {block.after, logit});
    return success();
  }
};

struct BlockGradToLinalg : OpRewritePattern<CrossEntropyBlockGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CrossEntropyBlockGradOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    LinalgBuilder linalg(rewriter, loc);
    RankedTensorType type = tensorOf(op.getLogits()), rows = tensorOf(op.getLog());
    const Block block(rewriter, loc, op.getLog(), op.getLogits());
    Value dlogits = linalg.elementwise(
        type,
        {op.getLogits(),
         {block.after, Indexing::Leading},
         {op.getDnextLog(), Indexing::Leading},
         {op.getTargets(), Indexing::Leading},
         {op.getDnextLogit(), Indexing::Leading}},
        [&](ArrayRef<Scalar> a) {
          Scalar logit = a[0], after = a[1], dlog = a[2], target = a[3], dlogit = a[4];
          Value column = target.make<arith::IndexCastOp>(
              target.getType(), target.make<linalg::IndexOp>(type.getRank() - 1));
          Scalar hit = target.make<arith::CmpIOp>(arith::CmpIPredicate::eq, column, target);
          Scalar onehot = hit.make<arith::UIToFPOp>(type.getElementType(), hit);
          return (logit - after).exp() * dlog + onehot * dlogit;
        });
    Value before =
        linalg.elementwise(rows, {op.getLog(), block.after, op.getDnextLog()},
                           [](ArrayRef<Scalar> a) { return (a[0] - a[1]).exp() * a[2]; });
    Value passed =
        linalg.elementwise(rows, {op.getTargets(), op.getDnextLogit()}, [&](ArrayRef<Scalar> a) {
          return a[1].make<arith::SelectOp>(isWithin(a[0], block.width), a[1].constant(0), a[1]);
        });
    rewriter.replaceOp(op, {before, passed, dlogits});
    return success();
  }
};

struct EndToLinalg : OpRewritePattern<CrossEntropyEndOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CrossEntropyEndOp op, PatternRewriter &rewriter) const override {
    LinalgBuilder linalg(rewriter, op.getLoc());
    RankedTensorType type = tensorOf(op.getLoss()), rows = tensorOf(op.getLog());
    Value count = countTargets(linalg, op.getTargets(), type.getElementType());
    Value each = linalg.elementwise(
        rows, {op.getTargets(), op.getLog(), op.getLogit()}, [](ArrayRef<Scalar> a) {
          return a[1].make<arith::SelectOp>(isCounted(a[0]), a[1] - a[2], a[1].constant(0));
        });
    Value total = linalg.sumLeading(rows, linalg.filled(type, 0), {each},
                                    [](ArrayRef<Scalar> a) { return a[0]; });
    rewriter.replaceOp(op, linalg.elementwise(type, {total, count},
                                              [](ArrayRef<Scalar> a) { return a[0] / a[1]; }));
    return success();
  }
};

struct EndGradToLinalg : OpRewritePattern<CrossEntropyEndGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CrossEntropyEndGradOp op,
                                PatternRewriter &rewriter) const override {
    LinalgBuilder linalg(rewriter, op.getLoc());
    RankedTensorType rows = tensorOf(op.getDlog());
    Value count = countTargets(linalg, op.getTargets(), rows.getElementType());
    auto scaled = [&](double sign) {
      return linalg.elementwise(
          rows, {op.getTargets(), {op.getDloss(), Indexing::Trailing}, {count, Indexing::Trailing}},
          [&](ArrayRef<Scalar> a) { // target, dloss, count
            return a[1].make<arith::SelectOp>(isCounted(a[0]), a[1] / a[2] * sign,
                                              a[1].constant(0));
          });
    };
    rewriter.replaceOp(op, {scaled(1), scaled(-1)});
    return success();
  }
};

} // namespace

void boa::populateVocabularyPatterns(RewritePatternSet &patterns) {
  patterns.add<EmbeddingToLinalg, RebaseToLinalg, BlockToLinalg, BlockGradToLinalg, EndToLinalg,
               EndGradToLinalg>(patterns.getContext());
}
