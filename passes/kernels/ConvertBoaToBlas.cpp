//===- ConvertBoaToBlas.cpp - Matrix products and attention to calls ------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// boa.linear, boa.linear_weight_grad, boa.attention(_grad), boa.cached_attention and
// boa.embedding(_block)_grad to library ops in destination style. Assumes static shapes. A boa.add
// of a product that nothing else uses is folded: the other addend is what the product is
// accumulated into. Both are sums in another order, which the design allows within rounding; the
// order is fixed by the program. Of bf16 such a sum is rounded once, by the product that makes it.
//
//===----------------------------------------------------------------------===//

#include "dialect/Boa.h"
#include "passes/kernels/ConvertBoaToLinalg.h"
#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/LinalgBuilder.h"

#include "mlir/IR/Remarks.h"

namespace boa {
#define GEN_PASS_DEF_CONVERTBOATOBLAS
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

Value emptyTensor(OpBuilder &builder, Location loc, Type type) {
  return LinalgBuilder(builder, loc).empty(cast<RankedTensorType>(type));
}

/// An operand as it is stored: the product widens bf16 to f32 on the way.
Value getStored(Value operand) {
  auto cast = operand.getDefiningOp<CastOp>();
  if (!cast || !getElementTypeOrSelf(operand).isF32() ||
      !getElementTypeOrSelf(cast.getX()).isBF16())
    return operand;
  return cast.getX();
}

/// The value before it was rounded to bf16, if nothing else uses it.
Value getUnrounded(Value operand) {
  auto widened = operand.getDefiningOp<CastOp>();
  auto rounded = widened ? widened.getX().getDefiningOp<CastOp>() : CastOp();
  if (!rounded || !widened->hasOneUse() || !rounded->hasOneUse() ||
      rounded.getX().getType() != operand.getType())
    return operand;
  return rounded.getX();
}

/// Creates the product of a and b, each as it is stored. An a in bf16 stays so only beside such a
/// b.
kernel::GemmOp createGemm(PatternRewriter &rewriter, Location loc, Type type, Value a, Value b,
                          Value bias, bool transposeA, bool transposeB) {
  b = getStored(b);
  if (getElementTypeOrSelf(b).isBF16())
    a = getStored(a);
  return kernel::GemmOp::create(rewriter, loc, TypeRange(type), a, b, bias,
                                emptyTensor(rewriter, loc, type), /*scratch=*/Value(),
                                /*addend=*/Value(), /*prepared=*/Value(), transposeA, transposeB,
                                /*accumulate=*/false);
}

struct LinearToGemm : OpRewritePattern<LinearOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LinearOp op, PatternRewriter &rewriter) const override {
    auto gemm = createGemm(rewriter, op.getLoc(), op.getY().getType(), op.getX(), op.getWeight(),
                           op.getBias(), /*transposeA=*/false, /*transposeB=*/op.getTranspose());
    if (Attribute shared = op->getAttr(kSharedAttr))
      gemm->setAttr(kSharedAttr, shared);
    rewriter.replaceOp(op, gemm.getResults());
    return success();
  }
};

struct WeightGradToGemm : OpRewritePattern<LinearWeightGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LinearWeightGradOp op, PatternRewriter &rewriter) const override {
    Value a = op.getX(), b = op.getDy();
    if (op.getTranspose())
      std::swap(a, b);
    auto gemm = createGemm(rewriter, op.getLoc(), op.getDw().getType(), a, b, /*bias=*/Value(),
                           /*transposeA=*/true, /*transposeB=*/false);
    rewriter.replaceOp(op, gemm.getResults());
    return success();
  }
};

struct EmbeddingGradToScatter : OpRewritePattern<EmbeddingGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(EmbeddingGradOp op, PatternRewriter &rewriter) const override {
    Type type = op.getDtable().getType();
    Value init = LinalgBuilder(rewriter, op.getLoc()).filled(tensorOf(op.getDtable()), 0);
    auto scatter = kernel::ScatterRowsOp::create(rewriter, op.getLoc(), TypeRange(type),
                                                 op.getTokens(), op.getDy(), init, op.getPartial());
    rewriter.replaceOp(op, scatter.getResults());
    return success();
  }
};

struct AttentionToCall : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type y = op.getY().getType(), lse = op.getLse().getType();
    auto call = kernel::AttentionOp::create(
        rewriter, loc, TypeRange{y, lse}, op.getQ(), op.getK(), op.getV(), op.getDocumentStarts(),
        emptyTensor(rewriter, loc, y), emptyTensor(rewriter, loc, lse), op.getHeads(),
        op.getKvHeads(), op.getCausal(), op.getWindowAttr());
    rewriter.replaceOp(op, call.getResults());
    return success();
  }
};

struct CachedAttentionToCall : OpRewritePattern<CachedAttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CachedAttentionOp op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value y = emptyTensor(rewriter, loc, op.getY().getType());
    auto call = kernel::CachedAttentionOp::create(
        rewriter, loc, op->getResultTypes(), op.getQ(), op.getK(), op.getV(), op.getPositions(), y,
        op.getKeys(), op.getValues(), op.getHeads(), op.getKvHeads(), op.getWindowAttr());
    rewriter.replaceOp(op, call.getResults());
    return success();
  }
};

struct AttentionGradToCall : OpRewritePattern<AttentionGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionGradOp op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    SmallVector<Value> inits;
    for (Type type : op->getResultTypes())
      inits.push_back(emptyTensor(rewriter, loc, type));
    auto call = kernel::AttentionGradOp::create(
        rewriter, loc, op->getResultTypes(), op.getQ(), op.getK(), op.getV(), op.getY(),
        op.getLse(), op.getDy(), op.getDocumentStarts(), inits[0], inits[1], inits[2],
        op.getHeads(), op.getKvHeads(), op.getCausal(), op.getWindowAttr());
    rewriter.replaceOp(op, call.getResults());
    return success();
  }
};

/// Whether it is a product or scatter that only its one user needs, also in the forward function.
bool isFoldable(Value value) {
  Operation *op = value.getDefiningOp();
  return value.hasOneUse() && isa_and_nonnull<kernel::GemmOp, kernel::ScatterRowsOp>(op) &&
         !op->hasAttr(kSharedAttr);
}

/// Turns add(u, product) and add(product, u), where nothing else uses the product, into a product
/// accumulated into u. If the product was accumulated into another product, that one is added to u
/// by the same rule.
struct AccumulateInto : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    if (op.getLhs().getType() != op.getRhs().getType())
      return failure();
    if (succeeded(fold(op, op.getLhs(), op.getRhs(), rewriter)))
      return success();
    return fold(op, op.getRhs(), op.getLhs(), rewriter);
  }

  static LogicalResult fold(AddOp op, Value addend, Value other, PatternRewriter &rewriter) {
    Value product = getUnrounded(other);
    if (!isFoldable(product))
      return failure();
    Location loc = op.getLoc();
    Type type = product.getType();
    if (auto gemm = product.getDefiningOp<kernel::GemmOp>()) {
      if (gemm.getAccumulate()) {
        if (!isFoldable(gemm.getC()))
          return failure();
        addend = AddOp::create(rewriter, loc, type, addend, gemm.getC());
      }
      rewriter.replaceOpWithNewOp<kernel::GemmOp>(
          op, TypeRange(type), gemm.getA(), gemm.getB(), gemm.getBias(), addend,
          /*scratch=*/Value(), /*addend=*/Value(), /*prepared=*/Value(), gemm.getTransposeA(),
          gemm.getTransposeB(),
          /*accumulate=*/true);
      eraseUnused(other, product, rewriter);
      return success();
    }
    auto scatter = product.getDefiningOp<kernel::ScatterRowsOp>();
    if (isFoldable(scatter.getTable()))
      addend = AddOp::create(rewriter, loc, type, addend, scatter.getTable());
    else if (!scatter.getTable().getDefiningOp<linalg::FillOp>())
      return failure();
    rewriter.replaceOpWithNewOp<kernel::ScatterRowsOp>(
        op, TypeRange(type), scatter.getIndices(), scatter.getRows(), addend, scatter.getSome());
    eraseUnused(other, product, rewriter);
    return success();
  }

  /// Erases the product, and the casts that rounded it on the way to `last`.
  static void eraseUnused(Value last, Value product, PatternRewriter &rewriter) {
    while (last != product) {
      auto cast = last.getDefiningOp<CastOp>();
      last = cast.getX();
      rewriter.eraseOp(cast);
    }
    rewriter.eraseOp(product.getDefiningOp());
  }
};

/// Lets a product of bf16 round its result, if the result is rounded to bf16 and used nowhere else.
struct RoundProduct : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CastOp op, PatternRewriter &rewriter) const override {
    auto gemm = op.getX().getDefiningOp<kernel::GemmOp>();
    Type type = op.getY().getType();
    auto isNarrow = [](Value value) { return getElementTypeOrSelf(value).isBF16(); };
    if (!gemm || !op.getX().hasOneUse() || !isNarrow(op.getY()) || !isNarrow(gemm.getA()) ||
        !isNarrow(gemm.getB()))
      return failure();
    Value into =
        gemm.getAccumulate() ? getStored(gemm.getC()) : emptyTensor(rewriter, op.getLoc(), type);
    if (into.getType() != type)
      return failure();
    rewriter.replaceOpWithNewOp<kernel::GemmOp>(
        op, TypeRange(type), gemm.getA(), gemm.getB(), gemm.getBias(), into, /*scratch=*/Value(),
        /*addend=*/Value(), /*prepared=*/Value(), gemm.getTransposeA(), gemm.getTransposeB(),
        gemm.getAccumulate());
    rewriter.eraseOp(gemm);
    return success();
  }
};

/// Moves each gradient of a weight up to where its operands are: activations that
/// only it needs die before those of the next gradient are made.
void hoistWeightGradients(Operation *func) {
  SmallVector<kernel::GemmOp> products;
  func->walk([&](kernel::GemmOp op) {
    if (op.getTransposeA())
      products.push_back(op);
  });
  for (kernel::GemmOp op : products) {
    Operation *last = nullptr, *empty = nullptr;
    for (Value operand : op->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (isa_and_nonnull<tensor::EmptyOp>(definition) && definition->hasOneUse())
        empty = definition;
      else if (definition && (!last || last->isBeforeInBlock(definition)))
        last = definition;
    }
    if (last)
      op->moveAfter(last);
    else
      op->moveBefore(op->getBlock(), op->getBlock()->begin());
    if (empty)
      empty->moveBefore(op);
  }
}

struct ConvertBoaToBlas : boa::impl::ConvertBoaToBlasBase<ConvertBoaToBlas> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LinearToGemm, WeightGradToGemm, EmbeddingGradToScatter, AttentionToCall,
                 CachedAttentionToCall, AttentionGradToCall, AccumulateInto>(&getContext());
    applyUntilNoneMatches(getOperation(), std::move(patterns));
    // Once it is known what is added to what before it is rounded.
    RewritePatternSet rounding(&getContext());
    rounding.add<RoundProduct>(&getContext());
    applyUntilNoneMatches(getOperation(), std::move(rounding));
    hoistWeightGradients(getOperation());
    getOperation()->walk([](FunctionOpInterface func) {
      int64_t products = 0, accumulated = 0;
      func->walk([&](kernel::GemmOp op) {
        op->removeAttr(kSharedAttr);
        ++products;
        accumulated += op.getAccumulate();
      });
      remark::passed(func.getLoc(),
                     remark::RemarkOpts::name("convert-to-blas").category("boa-kernel"))
          << "in @" << func.getName() << ": " << remark::metric("products", products)
          << remark::metric("accumulated", accumulated);
    });
  }
};

} // namespace
