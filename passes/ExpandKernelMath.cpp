//===- ExpandKernelMath.cpp - Math functions that vectorise ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes scalar code in loops; LLVM vectorises the polynomials with the loop.
//
//===----------------------------------------------------------------------===//

#include "passes/KernelPasses.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace boa {
#define GEN_PASS_DEF_EXPANDKERNELMATH
#include "passes/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;

namespace {

struct ExpandKernelMath : boa::impl::ExpandKernelMathBase<ExpandKernelMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(
        patterns, [](StringRef name) {
          return llvm::is_contained({"math.exp", "math.log", "math.tanh"}, name);
        });
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
