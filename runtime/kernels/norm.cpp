//===- norm.cpp - Sums of squares -------------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop is written once and compiled twice, for AVX2 and for any x86-64. Products and sums are
// never fused: results are the same bits on every processor.
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/norm.h"

#include "runtime/support/thread_pool.h"

#include <algorithm>
#include <vector>

#if defined(__clang__)
#pragma clang fp contract(off)
#endif

#define BOA_INLINE inline __attribute__((always_inline))

namespace boa {
namespace {

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

struct ParallelSum {
  const float *values;
  int64_t count;
  double *blocks;
};

} // namespace

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
