//===- ConvertVocabularyOps.cpp - Blocks of a vocabulary to linalg --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of --convert-boa-to-linalg: embedding and cross-entropy that go on from block to block. Each
// of the three sums of a row is taken out first: what follows reads rows by their own number, so
// that
// --kernel-block-rows can cut them.
//
//===----------------------------------------------------------------------===//

#include "dialect/Boa.h"
#include "dialect/TokenDigits.h"
#include "passes/kernels/ConvertBoaToLinalg.h"
#include "passes/kernels/LinalgBuilder.h"

using namespace mlir;
using namespace boa;

namespace {

/// The logarithm of a sum of no exponentials. It is finite, so that a difference of two is a
/// number.
constexpr double kLogOfNone = -1e30;

/// The places in sums [batch, 3, time].
enum Sum { Log, Logit, Target };

struct Slice {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  Slice(OpBuilder &b, RankedTensorType sums, Sum which) {
    for (int64_t extent : {sums.getDimSize(0), int64_t(1), sums.getDimSize(2)}) {
      offsets.push_back(b.getIndexAttr(0));
      sizes.push_back(b.getIndexAttr(extent));
      strides.push_back(b.getIndexAttr(1));
    }
    offsets[1] = b.getIndexAttr(which);
  }
};

/// Whether 0 <= target < width. Without its sign, a negative target is above any other.
Scalar isWithin(Scalar target, int64_t width) {
  Scalar end = target.make<arith::ConstantOp>(IntegerAttr::get(target.getType(), width));
  return target.make<arith::CmpIOp>(arith::CmpIPredicate::ult, target, end);
}

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

/// The `count` values of each row of [batch, time, values] from `first` on; a single one as [batch,
/// time].
Value takeOfRows(PatternRewriter &rewriter, Location loc, Value all, int64_t first, int64_t count) {
  SmallVector<int64_t> shape(tensorOf(all).getShape().drop_back());
  if (count > 1)
    shape.push_back(count);
  SmallVector<OpFoldResult> offsets(3, rewriter.getIndexAttr(0)),
      strides(3, rewriter.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes =
      getAsIndexOpFoldResult(rewriter.getContext(), tensorOf(all).getShape());
  offsets.back() = rewriter.getIndexAttr(first);
  sizes.back() = rewriter.getIndexAttr(count);
  return tensor::ExtractSliceOp::create(rewriter, loc, tensorOf(all).clone(shape), all, offsets,
                                        sizes, strides);
}

/// A digit of a row's token. Three of them follow a row [width], the least first. They are 0 to
/// 255, and the last one has the sign. So they are exact in bf16, too.
Scalar makeDigit(Scalar token, Scalar place, Type element) {
  Type i32 = token.getType();
  auto integer = [&](int64_t value) {
    return token.make<arith::ConstantOp>(IntegerAttr::get(i32, value));
  };
  Scalar shift = token.make<arith::MulIOp>(token.make<arith::IndexCastOp>(i32, place), integer(8));
  Scalar rest = token.make<arith::ShRSIOp>(token, shift);
  Scalar low = token.make<arith::AndIOp>(rest, integer(255));
  Scalar digit = token.make<arith::SelectOp>(isWithin(place, kTokenDigits - 1), low, rest);
  return token.make<arith::SIToFPOp>(element, digit);
}

/// The value, or 0 where a read of it would be out of bounds.
Scalar clamp(Scalar holds, Scalar value) {
  return value.make<arith::SelectOp>(holds, value, value.zero());
}

struct EmbeddingBeginToLinalg : OpRewritePattern<EmbeddingBeginOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(EmbeddingBeginOp op, PatternRewriter &rewriter) const override {
    RankedTensorType type = tensorOf(op.getFound());
    const int64_t width = type.getDimSize(2) - kTokenDigits;
    Value found = LinalgBuilder(rewriter, op.getLoc())
                      .elementwise(type, {{op.getTokens(), Indexing::Leading}},
                                   [&](ArrayRef<Scalar> a) { return make(a[0], width, type); });
    rewriter.replaceOp(op, found);
    return success();
  }

  static Scalar make(Scalar token, int64_t width, RankedTensorType type) {
    Scalar column = token.make<linalg::IndexOp>(2), isOfRow = isWithin(column, width);
    Scalar digit = makeDigit(token, placeOf(column, isOfRow, width), type.getElementType());
    return token.make<arith::SelectOp>(isOfRow, digit.zero(), digit);
  }
  /// The place of a digit; 0 for a column of the row.
  static Scalar placeOf(Scalar column, Scalar isOfRow, int64_t width) {
    Scalar first = column.make<arith::ConstantIndexOp>(width);
    Scalar place = column.make<arith::SubIOp>(column, first);
    return column.make<arith::SelectOp>(isOfRow, column.zero(), place);
  }
};

struct EmbeddingBlockToLinalg : OpRewritePattern<EmbeddingBlockOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(EmbeddingBlockOp op, PatternRewriter &rewriter) const override {
    Value tokens = takeTokens(rewriter, op.getLoc(), op.getFound());
    Value next =
        LinalgBuilder(rewriter, op.getLoc())
            .elementwise(tensorOf(op.getNext()), {op.getFound(), {tokens, Indexing::Leading}},
                         [&](ArrayRef<Scalar> a) { return make(op, a[0], a[1]); });
    rewriter.replaceOp(op, next);
    return success();
  }

  static Scalar make(EmbeddingBlockOp op, Scalar found, Scalar token) {
    const int64_t rows = tensorOf(op.getTable()).getDimSize(0),
                  width = tensorOf(op.getTable()).getDimSize(1);
    Scalar column = token.make<linalg::IndexOp>(2), isOfRow = isWithin(column, width);
    Scalar within = isWithin(token, rows), row = token.toIndex(clamp(within, token));
    Scalar element = extractElement(token, op.getTable(), {row, clamp(isOfRow, column)});
    Scalar taken = found.make<arith::SelectOp>(within, element, found);
    Scalar later = token.make<arith::SubIOp>(
        token, token.make<arith::ConstantOp>(IntegerAttr::get(token.getType(), rows)));
    Scalar digit =
        makeDigit(later, EmbeddingBeginToLinalg::placeOf(column, isOfRow, width), found.getType());
    return found.make<arith::SelectOp>(isOfRow, taken, digit);
  }
};

//===----------------------------------------------------------------------===//
// Cross-entropy
//===----------------------------------------------------------------------===//

RankedTensorType rowsOf(RankedTensorType sums) {
  return RankedTensorType::get({sums.getDimSize(0), sums.getDimSize(2)}, sums.getElementType());
}

/// One of the sums, [batch, time].
Value take(PatternRewriter &rewriter, Location loc, Value sums, Sum which) {
  RankedTensorType type = tensorOf(sums);
  Slice slice(rewriter, type, which);
  return tensor::ExtractSliceOp::create(rewriter, loc, rowsOf(type), sums, slice.offsets,
                                        slice.sizes, slice.strides);
}

Value join(PatternRewriter &rewriter, Location loc, RankedTensorType type, ArrayRef<Value> parts) {
  Value all = LinalgBuilder(rewriter, loc).empty(type);
  for (auto [i, part] : llvm::enumerate(parts)) {
    Slice slice(rewriter, type, Sum(i));
    all = tensor::InsertSliceOp::create(rewriter, loc, part, all, slice.offsets, slice.sizes,
                                        slice.strides);
  }
  return all;
}

/// The changes that the logits of a block make to the sums.
struct Block {
  Value log, logit, target; // before it; the target as an i32
  Value after;              // the logarithm behind it
  int64_t width;

  Block(PatternRewriter &rewriter, Location loc, Value sums, Value logits)
      : width(tensorOf(logits).getShape().back()) {
    LinalgBuilder linalg(rewriter, loc);
    log = take(rewriter, loc, sums, Log);
    logit = take(rewriter, loc, sums, Logit);
    RankedTensorType rows = tensorOf(log);
    target = linalg.elementwise(rows.clone(rewriter.getI32Type()),
                                {take(rewriter, loc, sums, Target)}, [&](ArrayRef<Scalar> a) {
                                  return a[0].make<arith::FPToSIOp>(rewriter.getI32Type(), a[0]);
                                });
    RankedTensorType type = tensorOf(logits);
    Value max =
        linalg.reduceRows(type, Reduction::Max, {logits}, [](ArrayRef<Scalar> a) { return a[0]; });
    Value sum = linalg.reduceRows(type, Reduction::Sum, {logits, {max, Indexing::Leading}},
                                  [](ArrayRef<Scalar> a) { return (a[0] - a[1]).exp(); });
    after = linalg.elementwise(rows, {log, max, sum}, [](ArrayRef<Scalar> a) {
      Scalar log = a[0], max = a[1], sum = a[2];
      Scalar most = log.make<arith::MaximumFOp>(log, max);
      return most + ((log - most).exp() + sum * (max - most).exp()).log();
    });
  }
};

struct BeginToLinalg : OpRewritePattern<CrossEntropyBeginOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CrossEntropyBeginOp op, PatternRewriter &rewriter) const override {
    LinalgBuilder linalg(rewriter, op.getLoc());
    RankedTensorType type = tensorOf(op.getSums()), rows = rowsOf(type);
    Value target = linalg.elementwise(rows, {op.getTargets()}, [&](ArrayRef<Scalar> a) {
      return a[0].make<arith::SIToFPOp>(type.getElementType(), a[0]);
    });
    rewriter.replaceOp(op, join(rewriter, op.getLoc(), type,
                                {linalg.filled(rows, kLogOfNone), linalg.filled(rows, 0), target}));
    return success();
  }
};

struct BlockToLinalg : OpRewritePattern<CrossEntropyBlockOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CrossEntropyBlockOp op, PatternRewriter &rewriter) const override {
    LinalgBuilder linalg(rewriter, op.getLoc());
    Value logits = op.getLogits();
    const Block block(rewriter, op.getLoc(), op.getSums(), logits);
    RankedTensorType rows = tensorOf(block.log);
    Value logit = linalg.elementwise(rows, {block.target, block.logit}, [&](ArrayRef<Scalar> a) {
      Scalar target = a[0], before = a[1], within = isWithin(target, block.width);
      SmallVector<Value> at;
      for (int64_t i = 0; i < rows.getRank(); ++i)
        at.push_back(target.make<linalg::IndexOp>(i));
      at.push_back(target.toIndex(target.make<arith::SelectOp>(within, target, target.zero())));
      return before.make<arith::SelectOp>(within, extractElement(target, logits, at), before);
    });
    Value target =
        linalg.elementwise(rows, {take(rewriter, op.getLoc(), op.getSums(), Target)},
                           [&](ArrayRef<Scalar> a) { return a[0] + -double(block.width); });
    rewriter.replaceOp(
        op, join(rewriter, op.getLoc(), tensorOf(op.getNext()), {block.after, logit, target}));
    return success();
  }
};

struct BlockGradToLinalg : OpRewritePattern<CrossEntropyBlockGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CrossEntropyBlockGradOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    LinalgBuilder linalg(rewriter, loc);
    RankedTensorType type = tensorOf(op.getLogits());
    const Block block(rewriter, loc, op.getSums(), op.getLogits());
    RankedTensorType rows = tensorOf(block.log);
    Value dlog = take(rewriter, loc, op.getDnext(), Log);
    Value dlogit = take(rewriter, loc, op.getDnext(), Logit);
    Value dlogits = linalg.elementwise(
        type,
        {op.getLogits(),
         {block.after, Indexing::Leading},
         {dlog, Indexing::Leading},
         {block.target, Indexing::Leading},
         {dlogit, Indexing::Leading}},
        [&](ArrayRef<Scalar> a) {
          Scalar logit = a[0], after = a[1], dlog = a[2], target = a[3], dlogit = a[4];
          Value column = target.make<arith::IndexCastOp>(
              target.getType(), target.make<linalg::IndexOp>(type.getRank() - 1));
          Scalar hit = target.make<arith::CmpIOp>(arith::CmpIPredicate::eq, column, target);
          Scalar onehot = hit.make<arith::UIToFPOp>(type.getElementType(), hit);
          return (logit - after).exp() * dlog + onehot * dlogit;
        });
    Value before = linalg.elementwise(rows, {block.log, block.after, dlog}, [](ArrayRef<Scalar> a) {
      return (a[0] - a[1]).exp() * a[2];
    });
    Value passed = linalg.elementwise(rows, {block.target, dlogit}, [&](ArrayRef<Scalar> a) {
      return a[1].make<arith::SelectOp>(isWithin(a[0], block.width), a[1].constant(0), a[1]);
    });
    rewriter.replaceAllUsesWith(op.getDlogits(), dlogits);
    rewriter.replaceAllUsesWith(op.getDsums(), join(rewriter, loc, tensorOf(op.getDsums()),
                                                    {before, passed, linalg.filled(rows, 0)}));
    rewriter.eraseOp(op);
    return success();
  }
};

struct EndToLinalg : OpRewritePattern<CrossEntropyEndOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CrossEntropyEndOp op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    LinalgBuilder linalg(rewriter, loc);
    RankedTensorType type = tensorOf(op.getLoss());
    Value log = take(rewriter, loc, op.getSums(), Log);
    Value logit = take(rewriter, loc, op.getSums(), Logit);
    RankedTensorType rows = tensorOf(log);
    Value count = countTargets(linalg, op.getTargets(), type.getElementType());
    Value each = linalg.elementwise(rows, {op.getTargets(), log, logit}, [](ArrayRef<Scalar> a) {
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
    RankedTensorType type = tensorOf(op.getDsums()), rows = rowsOf(type);
    Value count = countTargets(linalg, op.getTargets(), type.getElementType());
    auto scaled = [&](double sign) {
      return linalg.elementwise(
          rows, {op.getTargets(), {op.getDloss(), Indexing::Trailing}, {count, Indexing::Trailing}},
          [&](ArrayRef<Scalar> a) { // target, dloss, count
            return a[1].make<arith::SelectOp>(isCounted(a[0]), a[1] / a[2] * sign,
                                              a[1].constant(0));
          });
    };
    rewriter.replaceOp(
        op, join(rewriter, op.getLoc(), type, {scaled(1), scaled(-1), linalg.filled(rows, 0)}));
    return success();
  }
};

} // namespace

Value boa::takeRows(PatternRewriter &rewriter, Location loc, Value found) {
  return takeOfRows(rewriter, loc, found, 0, tensorOf(found).getDimSize(2) - kTokenDigits);
}

Value boa::takeTokens(PatternRewriter &rewriter, Location loc, Value found) {
  const int64_t width = tensorOf(found).getDimSize(2) - kTokenDigits;
  SmallVector<Input> digits;
  for (int64_t place = 0; place < kTokenDigits; ++place)
    digits.push_back(takeOfRows(rewriter, loc, found, width + place, 1));
  IntegerType i32 = rewriter.getI32Type();
  return LinalgBuilder(rewriter, loc)
      .elementwise(tensorOf(digits[0].value).clone(i32), digits, [&](ArrayRef<Scalar> a) {
        Scalar token = (a[2] * 256 + a[1]) * 256 + a[0];
        return token.make<arith::FPToSIOp>(i32, token);
      });
}

void boa::populateVocabularyPatterns(RewritePatternSet &patterns) {
  patterns.add<EmbeddingBeginToLinalg, EmbeddingBlockToLinalg, BeginToLinalg, BlockToLinalg,
               BlockGradToLinalg, EndToLinalg, EndGradToLinalg>(patterns.getContext());
}
