//===- norm.h - Sums of squares ---------------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_NORM_H
#define BOA_RUNTIME_KERNELS_NORM_H

#include "runtime/abi/sums.h"

#include <cstdint>

namespace boa {

/// Sum of squares in double. Its order depends neither on threads nor on the device. Each block
/// of kSumBlock elements has kSumLanes interleaved sums. The second half of these is added to the
/// first until one is left. PairwiseSum adds those of the blocks.
double SumOfSquares(const float *values, int64_t count);
/// The first half and the rest, each in the same way.
double PairwiseSum(const double *values, int64_t count);

} // namespace boa

#endif // BOA_RUNTIME_KERNELS_NORM_H
