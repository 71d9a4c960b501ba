//===- ExpandKernelMath.cpp - Math functions that vectorise ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes scalar code in loops; LLVM vectorises the polynomials with the loop. exp
// is our own: upstream's spends as much on the ends of its range as on the rest.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/CodeBuilder.h"
#include "passes/kernels/KernelPasses.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"

namespace boa {
#define GEN_PASS_DEF_EXPANDKERNELMATH
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;
using boa::CodeBuilder;

namespace {

/// Expands exp in f32, with an error of 1e-7: x = n ln 2 + r, e^x = 2^n p(r). It saturates: below
/// -87 the result is the least normal number, above 88 one near the greatest. NaN stays.
struct ExpToPolynomial : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    CodeBuilder b(rewriter, op.getLoc());
    // One instruction each: min and max that return the second of a NaN.
    auto clamp = [&](arith::CmpFPredicate outside, Value value, double limit) {
      Value bound = b.number(limit);
      return b.select(b.make<arith::CmpFOp>(outside, value, bound), bound, value);
    };
    Value x = op.getOperand();
    x = clamp(arith::CmpFPredicate::OGT, x, 88.3762626647949);
    x = clamp(arith::CmpFPredicate::OLT, x, -87.3365447505531);
    Value scaled = b.mulf(x, b.number(1.44269504088896341));
    // Added to 1.5 * 2^23 it is rounded to even, and n stands in the low bits. A conversion to an
    // integer takes more instructions, and that of NaN is poison.
    const float shift = 12582912;
    Value shifted = b.addf(scaled, b.number(shift));
    Value n = b.subf(shifted, b.number(shift));
    Value r = b.fma(n, b.number(-0.693359375), x);
    r = b.fma(n, b.number(2.12194440e-4), r);
    Value p = b.number(1.9875691500e-4);
    for (double c :
         {1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1})
      p = b.fma(p, r, b.number(c));
    p = b.fma(p, b.mulf(r, r), r);
    p = b.addf(p, b.number(1));
    Value exponent = b.add(b.shiftLeft(b.bitsOf(shifted), 23), 127 << 23);
    rewriter.replaceOp(op, b.mulf(p, b.floatOf(exponent)));
    return success();
  }
};

struct PowerOfTwoToExp : OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::Exp2Op op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    CodeBuilder b(rewriter, op.getLoc());
    Value scaled = b.mulf(op.getOperand(), b.number(0.69314718055994531));
    rewriter.replaceOpWithNewOp<math::ExpOp>(op, scaled);
    return success();
  }
};

struct ExpandKernelMath : boa::impl::ExpandKernelMathBase<ExpandKernelMath> {
  using ExpandKernelMathBase::ExpandKernelMathBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return llvm::is_contained({"math.log", "math.tanh"}, name);
    });
    patterns.add<ExpToPolynomial>(&getContext());
    if (!device) {
      patterns.add<PowerOfTwoToExp>(&getContext());
      arith::populateExpandBFloat16Patterns(patterns);
    }
    boa::applyUntilNoneMatches(getOperation(), std::move(patterns));
  }
};

} // namespace
