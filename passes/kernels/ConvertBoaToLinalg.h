//===- ConvertBoaToLinalg.h - Lowerings of compute ops ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_CONVERTBOATOLINALG_H
#define BOA_PASSES_KERNELS_CONVERTBOATOLINALG_H

#include "passes/kernels/LinalgBuilder.h"

#include "mlir/IR/PatternMatch.h"

namespace boa {

/// Sums over rows; these look for a boa.add of the sum and start from the other
/// addend, so they must run before boa.add is lowered.
void populateRowSumPatterns(mlir::RewritePatternSet &patterns);

/// An element of a tensor, in the body that `at` stands in. Of a tensor that is widened,
/// only the elements wanted are.
Scalar extractElement(Scalar at, mlir::Value tensor, mlir::ValueRange indices);

/// Norms and cross-entropy (the parts that are not sums over rows).
void populateRowOpPatterns(mlir::RewritePatternSet &patterns);

/// Embedding and cross-entropy by blocks of a vocabulary.
void populateVocabularyPatterns(mlir::RewritePatternSet &patterns);

/// Of what goes from block to block of a table: the rows, and the tokens as i32.
mlir::Value takeRows(mlir::PatternRewriter &rewriter, mlir::Location loc, mlir::Value found);
mlir::Value takeTokens(mlir::PatternRewriter &rewriter, mlir::Location loc, mlir::Value found);

/// Whether a target is counted (not negative).
Scalar isCounted(Scalar target);
/// The number of targets that are counted, at least 1, as a float tensor.
mlir::Value countTargets(LinalgBuilder &linalg, mlir::Value targets, mlir::Type element);

} // namespace boa

#endif // BOA_PASSES_KERNELS_CONVERTBOATOLINALG_H
