//===- ConvertBoaToBlas.cpp - Matrix products and attention to calls ------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// boa.linear, boa.linear_weight_grad, boa.attention(_grad), boa.embedding_grad to
// library ops in destination style. Assumes static shapes. A boa.add of a product
// that nothing else uses is folded: the other addend is what the product is
// accumulated into. Both are sums in another order, which the design allows
// within rounding; the order is fixed by the program.
//
//===----------------------------------------------------------------------===//

#include "dialect/Boa.h"
#include "passes/KernelPasses.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace boa {
#define GEN_PASS_DEF_CONVERTBOATOBLAS
#include "passes/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

Value emptyTensor(OpBuilder &builder, Location loc, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor::EmptyOp::create(builder, loc, tensor.getShape(),
                                 tensor.getElementType());
}

Value zeroTensor(OpBuilder &builder, Location loc, Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getFloatAttr(element, 0));
  return linalg::FillOp::create(builder, loc, zero,
                                emptyTensor(builder, loc, type))
      .getResult(0);
}

/// With a bias the product is accumulated into the bias repeated on every row:
/// a broadcast costs what clearing the result would.
struct LinearToGemm : OpRewritePattern<LinearOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LinearOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getY().getType());
    Value init = emptyTensor(rewriter, op.getLoc(), type);
    if (Value bias = op.getBias()) {
      AffineMap all = rewriter.getMultiDimIdentityMap(type.getRank());
      AffineMap last = all.getMinorSubMap(1);
      SmallVector<utils::IteratorType> parallel(type.getRank(),
                                                utils::IteratorType::parallel);
      init = linalg::GenericOp::create(
                 rewriter, op.getLoc(), TypeRange(type), bias, init,
                 ArrayRef<AffineMap>{last, all}, parallel,
                 [](OpBuilder &b, Location loc, ValueRange args) {
                   linalg::YieldOp::create(b, loc, args[0]);
                 })
                 .getResult(0);
    }
    auto gemm = kernel::GemmOp::create(
        rewriter, op.getLoc(), TypeRange(type), op.getX(), op.getWeight(), init,
        /*transpose_a=*/false, op.getTranspose(),
        /*accumulate=*/static_cast<bool>(op.getBias()));
    rewriter.replaceOp(op, gemm.getResults());
    return success();
  }
};

struct WeightGradToGemm : OpRewritePattern<LinearWeightGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LinearWeightGradOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getDw().getType();
    Value init = emptyTensor(rewriter, op.getLoc(), type);
    Value a = op.getX(), b = op.getDy();
    if (op.getTranspose())
      std::swap(a, b);
    auto gemm = kernel::GemmOp::create(rewriter, op.getLoc(), TypeRange(type), a,
                                       b, init, /*transpose_a=*/true,
                                       /*transpose_b=*/false,
                                       /*accumulate=*/false);
    rewriter.replaceOp(op, gemm.getResults());
    return success();
  }
};

struct EmbeddingGradToScatter : OpRewritePattern<EmbeddingGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(EmbeddingGradOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getDtable().getType();
    Value init = zeroTensor(rewriter, op.getLoc(), type);
    auto scatter = kernel::ScatterRowsOp::create(
        rewriter, op.getLoc(), TypeRange(type), op.getTokens(), op.getDy(), init);
    rewriter.replaceOp(op, scatter.getResults());
    return success();
  }
};

struct AttentionToCall : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type y = op.getY().getType(), lse = op.getLse().getType();
    auto call = kernel::AttentionOp::create(
        rewriter, loc, TypeRange{y, lse}, op.getQ(), op.getK(), op.getV(),
        emptyTensor(rewriter, loc, y), emptyTensor(rewriter, loc, lse),
        op.getHeads(), op.getKvHeads(), op.getCausal());
    rewriter.replaceOp(op, call.getResults());
    return success();
  }
};

struct AttentionGradToCall : OpRewritePattern<AttentionGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionGradOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    SmallVector<Value> inits;
    for (Type type : op->getResultTypes())
      inits.push_back(emptyTensor(rewriter, loc, type));
    auto call = kernel::AttentionGradOp::create(
        rewriter, loc, op->getResultTypes(), op.getQ(), op.getK(), op.getV(),
        op.getY(), op.getLse(), op.getDy(), inits[0], inits[1], inits[2],
        op.getHeads(), op.getKvHeads(), op.getCausal());
    rewriter.replaceOp(op, call.getResults());
    return success();
  }
};

/// The bias that a product's init repeats, if that is what it is.
Value getBiasOfInit(Value init) {
  auto generic = init.getDefiningOp<linalg::GenericOp>();
  if (generic && generic->hasOneUse() && generic.getNumDpsInputs() == 1 &&
      llvm::hasSingleElement(generic.getBody()->getOperations()))
    return generic.getInputs()[0];
  return nullptr;
}

/// A product or scatter that nothing but its one user needs.
bool isFoldable(Value value) {
  Operation *op = value.getDefiningOp();
  return value.hasOneUse() &&
         isa_and_nonnull<kernel::GemmOp, kernel::ScatterRowsOp>(op);
}

/// add(u, product) and add(product, u), where nothing else uses the product, to
/// a product accumulated into u. What the product was accumulated into so far is
/// added to u: a bias elementwise, another product by the same rule.
struct AccumulateInto : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getLhs().getType() != op.getRhs().getType())
      return failure();
    if (succeeded(fold(op, op.getLhs(), op.getRhs(), rewriter)))
      return success();
    return fold(op, op.getRhs(), op.getLhs(), rewriter);
  }

  static LogicalResult fold(AddOp op, Value addend, Value product,
                            PatternRewriter &rewriter) {
    if (!isFoldable(product))
      return failure();
    Location loc = op.getLoc();
    Type type = product.getType();
    if (auto gemm = product.getDefiningOp<kernel::GemmOp>()) {
      if (gemm.getAccumulate()) {
        Value before = getBiasOfInit(gemm.getC());
        if (!before && isFoldable(gemm.getC()))
          before = gemm.getC();
        if (!before)
          return failure();
        addend = AddOp::create(rewriter, loc, type, addend, before);
      }
      rewriter.replaceOpWithNewOp<kernel::GemmOp>(
          op, TypeRange(type), gemm.getA(), gemm.getB(), addend,
          gemm.getTransposeA(), gemm.getTransposeB(), /*accumulate=*/true);
      rewriter.eraseOp(gemm);
      return success();
    }
    auto scatter = product.getDefiningOp<kernel::ScatterRowsOp>();
    if (isFoldable(scatter.getTable()))
      addend = AddOp::create(rewriter, loc, type, addend, scatter.getTable());
    else if (!scatter.getTable().getDefiningOp<linalg::FillOp>())
      return failure();
    rewriter.replaceOpWithNewOp<kernel::ScatterRowsOp>(
        op, TypeRange(type), scatter.getIndices(), scatter.getRows(), addend);
    rewriter.eraseOp(scatter);
    return success();
  }
};

struct ConvertBoaToBlas : boa::impl::ConvertBoaToBlasBase<ConvertBoaToBlas> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LinearToGemm, WeightGradToGemm, EmbeddingGradToScatter,
                 AttentionToCall, AttentionGradToCall, AccumulateInto>(
        &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
