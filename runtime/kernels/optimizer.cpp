//===- optimizer.cpp - AdamW and SGD on the host ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each loop is written once and compiled twice, for AVX2 and for any x86-64.
// Products and sums are never fused, and every element goes through the same
// expressions in the body and the tail of a vector loop: results are the same
// bits on every processor and for every partition.
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/optimizer.h"

#include "runtime/support/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#if defined(__clang__)
#pragma clang fp contract(off)
#endif

#define BOA_INLINE inline __attribute__((always_inline))

namespace boa {
namespace {

// 64 KiB of f32: a part is worth a thread's wake-up.
constexpr int64_t kUpdateGrain = 16384;
constexpr int64_t kUpdateAlone = 1 << 18; // about 0.2 ms

BOA_INLINE float SquareRoot(float value) {
#if defined(__clang__) && __has_builtin(__builtin_elementwise_sqrt)
  return __builtin_elementwise_sqrt(value); // no errno: vectorises
#else
  return std::sqrt(value);
#endif
}

BOA_INLINE float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

BOA_INLINE uint32_t ToBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// Gathers whether values are finite, by lanes: x - x is zero if x is, else it is
/// not a number.
struct Finite {
  uint32_t bits = 0;
  BOA_INLINE void Look(float value) { bits |= ToBits(value - value); }
  BOA_INLINE bool All() const { return bits == 0; }
};

/// Weights in f32.
struct FullWeights {
  float *__restrict values;
  BOA_INLINE float Load(int64_t i) const { return values[i]; }
  BOA_INLINE void Store(int64_t i, float value) const { values[i] = value; }
};

/// Weights in bf16 beside the lower halves of their masters.
struct SplitWeights {
  uint16_t *__restrict high;
  int16_t *__restrict low;
  BOA_INLINE float Load(int64_t i) const { return FromBits(JoinMaster(high[i], low[i])); }
  BOA_INLINE void Store(int64_t i, float value) const {
    uint32_t bits = ToBits(value);
    high[i] = MasterHigh(bits);
    low[i] = MasterLow(bits);
  }
};

template <class Weights>
BOA_INLINE bool AdamW(const UpdateConstants &constants, const UpdateRange &range, Weights weights) {
  const UpdateConstants c = constants;
  const float rest1 = 1.0f - c.beta1, rest2 = 1.0f - c.beta2, decay = range.decay;
  float *__restrict momentum = range.momentum;
  float *__restrict variance = range.variance;
  const float *__restrict gradient = range.gradient;
  Finite finite;
  for (int64_t i = 0, count = range.count; i < count; ++i) {
    float g = gradient[i] * c.gradient_scale;
    float m = c.beta1 * momentum[i] + rest1 * g;
    float v = c.beta2 * variance[i] + rest2 * (g * g);
    float w = weights.Load(i);
    float direction = m * c.correction1 / (SquareRoot(v * c.correction2) + c.eps);
    w = w - c.rate * (direction + decay * w);
    momentum[i] = m;
    variance[i] = v;
    weights.Store(i, w);
    finite.Look(m);
    finite.Look(v);
    finite.Look(w);
  }
  return finite.All();
}

template <class Weights>
BOA_INLINE bool Sgd(const UpdateConstants &constants, const UpdateRange &range, Weights weights) {
  const UpdateConstants c = constants;
  const float decay = range.decay;
  float *__restrict momentum = range.momentum;
  const float *__restrict gradient = range.gradient;
  Finite finite;
  for (int64_t i = 0, count = range.count; i < count; ++i) {
    float m = c.momentum * momentum[i] + gradient[i] * c.gradient_scale;
    float w = weights.Load(i);
    w = w - c.rate * (m + decay * w);
    momentum[i] = m;
    weights.Store(i, w);
    finite.Look(m);
    finite.Look(w);
  }
  return finite.All();
}

/// SGD without a momentum tensor: m = g.
template <class Weights>
BOA_INLINE bool PlainSgd(const UpdateConstants &constants, const UpdateRange &range,
                         Weights weights) {
  const UpdateConstants c = constants;
  const float decay = range.decay;
  const float *__restrict gradient = range.gradient;
  Finite finite;
  for (int64_t i = 0, count = range.count; i < count; ++i) {
    float m = gradient[i] * c.gradient_scale;
    float w = weights.Load(i);
    w = w - c.rate * (m + decay * w);
    weights.Store(i, w);
    finite.Look(m);
    finite.Look(w);
  }
  return finite.All();
}

template <class Weights>
BOA_INLINE bool UpdateWith(const UpdateConstants &constants, const UpdateRange &range,
                           Weights weights) {
  if (constants.adamw)
    return AdamW(constants, range, weights);
  if (range.momentum)
    return Sgd(constants, range, weights);
  return PlainSgd(constants, range, weights);
}

BOA_INLINE bool Update(const UpdateConstants &constants, const UpdateRange &range) {
  if (range.low)
    return UpdateWith(constants, range,
                      SplitWeights{static_cast<uint16_t *>(range.weights), range.low});
  return UpdateWith(constants, range, FullWeights{static_cast<float *>(range.weights)});
}

/// At most kSumBlock values, in kSumLanes interleaved sums.
BOA_INLINE double SumBlock(const float *__restrict values, int64_t count) {
  double lanes[kSumLanes] = {};
  int64_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes)
    for (int lane = 0; lane < kSumLanes; ++lane) {
      double value = values[i + lane];
      lanes[lane] += value * value;
    }
  for (int lane = 0; i + lane < count; ++lane) {
    double value = values[i + lane];
    lanes[lane] += value * value;
  }
  for (int width = kSumLanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane)
      lanes[lane] += lanes[lane + width];
  return lanes[0];
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) bool UpdateAvx2(const UpdateConstants &constants,
                                                    const UpdateRange &range) {
  return Update(constants, range);
}
__attribute__((target("avx2,fma"))) double SumBlockAvx2(const float *values, int64_t count) {
  return SumBlock(values, count);
}
bool HasAvx2() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}
#endif

double SumBlockDispatched(const float *values, int64_t count) {
#if defined(__x86_64__)
  if (HasAvx2())
    return SumBlockAvx2(values, count);
#endif
  return SumBlock(values, count);
}

/// Elements [begin, end) of a range.
UpdateRange Slice(const UpdateRange &range, int64_t begin, int64_t end) {
  UpdateRange slice = range;
  if (range.low) {
    slice.weights = static_cast<uint16_t *>(range.weights) + begin;
    slice.low = range.low + begin;
  } else {
    slice.weights = static_cast<float *>(range.weights) + begin;
  }
  if (range.momentum)
    slice.momentum = range.momentum + begin;
  if (range.variance)
    slice.variance = range.variance + begin;
  slice.gradient = range.gradient + begin;
  slice.count = end - begin;
  return slice;
}

struct ParallelUpdate {
  const UpdateConstants *constants;
  const UpdateRange *range;
  std::atomic<bool> finite{true};
};

struct ParallelSum {
  const float *values;
  int64_t count;
  double *blocks;
};

} // namespace

bool UpdateElements(const UpdateConstants &constants, const UpdateRange &range) {
#if defined(__x86_64__)
  if (HasAvx2())
    return UpdateAvx2(constants, range);
#endif
  return Update(constants, range);
}

bool UpdateElementsParallel(const UpdateConstants &constants, const UpdateRange &range) {
  // Sooner done than handed over: a turn at the pool costs two wake-ups.
  if (range.count <= kUpdateAlone)
    return UpdateElements(constants, range);
  ParallelUpdate task{&constants, &range};
  ParallelFor(
      range.count, kUpdateGrain,
      [](void *data, int64_t begin, int64_t end) {
        auto *task = static_cast<ParallelUpdate *>(data);
        if (!UpdateElements(*task->constants, Slice(*task->range, begin, end)))
          task->finite = false;
      },
      &task);
  return task.finite;
}

bool GradientIsFinite(const UpdateRange &range, int64_t i) {
  return std::isfinite(range.gradient[i]);
}

bool StateIsFinite(const UpdateRange &range, int64_t i) {
  float weight = range.low
                     ? FromBits(JoinMaster(static_cast<uint16_t *>(range.weights)[i], range.low[i]))
                     : static_cast<float *>(range.weights)[i];
  return std::isfinite(weight) && (!range.momentum || std::isfinite(range.momentum[i])) &&
         (!range.variance || std::isfinite(range.variance[i]));
}

double PairwiseSum(const double *values, int64_t count) {
  if (count <= 0)
    return 0;
  if (count == 1)
    return values[0];
  int64_t half = count / 2;
  return PairwiseSum(values, half) + PairwiseSum(values + half, count - half);
}

double SumOfSquares(const float *values, int64_t count) {
  if (count <= kSumBlock)
    return SumBlockDispatched(values, std::max<int64_t>(count, 0));
  std::vector<double> blocks((count - 1) / kSumBlock + 1);
  ParallelSum task{values, count, blocks.data()};
  ParallelFor(
      int64_t(blocks.size()), 1,
      [](void *data, int64_t begin, int64_t end) {
        auto *task = static_cast<ParallelSum *>(data);
        for (int64_t block = begin; block < end; ++block) {
          int64_t first = block * kSumBlock;
          task->blocks[block] =
              SumBlockDispatched(task->values + first, std::min(kSumBlock, task->count - first));
        }
      },
      &task);
  return PairwiseSum(blocks.data(), int64_t(blocks.size()));
}

} // namespace boa
