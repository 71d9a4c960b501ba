//===- optimizer.h - AdamW and SGD -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One pass over a range of elements: widens the weights, updates master weights
// and moments, narrows the weights again. Elementwise, so neither the number of
// threads nor the division into chunks changes a bit. A GPU does the same operations in
// the same order (passes/target/cuda/EmitUpdates.cpp): what changes here changes there.
//
// Weights stored as bf16 are the rounded upper half of their f32 master:
// bits(master) = (high << 16) + low. There high = (bits + 0x8000) >> 16, and low is a signed
// 16-bit remainder. The pair is exactly the master, so it is never stored twice.
//
// AdamW: Loshchilov and Hutter, arXiv 1711.05101.
//   m = b1 m + (1 - b1) g        v = b2 v + (1 - b2) g^2
//   w = w - rate (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay w)
// SGD: m = momentum m + g; w = w - rate (m + decay w).
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_OPTIMIZER_H
#define BOA_RUNTIME_KERNELS_OPTIMIZER_H

#include "runtime/abi/sums.h"

#include <cstdint>

namespace boa {

struct UpdateConstants {
  bool adamw = true;
  float rate = 0, beta1 = 0, beta2 = 0, eps = 0, momentum = 0;
  float correction1 = 1, correction2 = 1; // 1 / (1 - beta^t)
  float gradient_scale = 1;               // clipping factor
};

/// The tensors of a range of `count` elements. `low` null: weights are f32.
struct UpdateRange {
  void *weights = nullptr; // float or bf16 (uint16_t)
  int16_t *low = nullptr;
  float *momentum = nullptr, *variance = nullptr;
  const float *gradient = nullptr;
  int64_t count = 0;
  float decay = 0;
};

/// Updates a range on the calling thread. False: a new weight or moment is not
/// finite, as is always so where the gradient is not.
bool UpdateElements(const UpdateConstants &, const UpdateRange &);
/// The same on the shared pool.
bool UpdateElementsParallel(const UpdateConstants &, const UpdateRange &);
/// Of one element, to find which it was.
bool GradientIsFinite(const UpdateRange &, int64_t i);
bool StateIsFinite(const UpdateRange &, int64_t i);

/// Sum of squares in double. Its order depends neither on threads nor on the device. Each block
/// of kSumBlock elements has kSumLanes interleaved sums. The second half of these is added to the
/// first until one is left. PairwiseSum adds those of the blocks.
double SumOfSquares(const float *values, int64_t count);
/// The first half and the rest, each in the same way.
double PairwiseSum(const double *values, int64_t count);

inline uint16_t MasterHigh(uint32_t bits) { return uint16_t((bits + 0x8000u) >> 16); }
inline int16_t MasterLow(uint32_t bits) {
  return int16_t(bits - (uint32_t(MasterHigh(bits)) << 16));
}
inline uint32_t JoinMaster(uint16_t high, int16_t low) {
  return (uint32_t(high) << 16) + uint32_t(int32_t(low));
}

} // namespace boa

#endif // BOA_RUNTIME_KERNELS_OPTIMIZER_H
