//===- ConvertBoaToLinalg.h - Lowerings of compute ops ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_CONVERTBOATOLINALG_H
#define BOA_PASSES_KERNELS_CONVERTBOATOLINALG_H

#include "mlir/IR/PatternMatch.h"

namespace boa {

/// Sums over rows; these look for a boa.add of the sum and start from the other
/// addend, so they must run before boa.add is lowered.
void populateRowSumPatterns(mlir::RewritePatternSet &patterns);

/// Norms and cross-entropy (the parts that are not sums over rows).
void populateRowOpPatterns(mlir::RewritePatternSet &patterns);

} // namespace boa

#endif // BOA_PASSES_KERNELS_CONVERTBOATOLINALG_H
