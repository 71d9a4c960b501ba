//===- NormalDistribution.h - The normal distribution -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_NORMALDISTRIBUTION_H
#define BOA_PASSES_KERNELS_NORMALDISTRIBUTION_H

#include "passes/kernels/LinalgBuilder.h"

namespace boa {

/// The distribution function of the normal distribution at x, (1 + erf(x / sqrt(2))) / 2, and its
/// derivative.
struct Normal {
  Scalar distribution, density;
};

/// Emits both, in f32 or f64. They have one exponential, one division and no branch, so that
/// loops around them vectorise. Errors are at most 1e-6 of either in f32, or 1e-14 in f64, down
/// to the least normal number.
Normal computeNormal(Scalar x);

} // namespace boa

#endif // BOA_PASSES_KERNELS_NORMALDISTRIBUTION_H
