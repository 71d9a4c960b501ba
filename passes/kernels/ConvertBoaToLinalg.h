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

/// Adds the patterns of sums over rows. These look for a boa.add of the sum and start from the
/// other addend, so they must run before boa.add is lowered.
void populateRowSumPatterns(mlir::RewritePatternSet &patterns);

/// An element of a tensor, in the body that `at` stands in. If the tensor is widened, only the
/// elements wanted are.
Scalar extractElement(Scalar at, mlir::Value tensor, mlir::ValueRange indices);

/// Adds the patterns of norms and cross-entropy, but for sums over rows.
void populateRowOpPatterns(mlir::RewritePatternSet &patterns);

/// Adds the patterns of embedding and cross-entropy by blocks of a vocabulary.
void populateVocabularyPatterns(mlir::RewritePatternSet &patterns);

/// Whether a target is counted (not negative).
Scalar isCounted(Scalar target);
/// The number of targets that are counted, at least 1, as a float tensor.
mlir::Value countTargets(LinalgBuilder &linalg, mlir::Value targets, mlir::Type element);

} // namespace boa

#endif // BOA_PASSES_KERNELS_CONVERTBOATOLINALG_H
