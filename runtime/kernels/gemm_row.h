//===- gemm_row.h - The product of one row and a matrix -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A text is continued by one row at a time. Each number of B is then used once, so it is read from
// where it lies, in order, rather than packed. Sums are in f32, and rounded once.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_GEMM_ROW_H
#define BOA_RUNTIME_KERNELS_GEMM_ROW_H

#include "runtime/kernels/block_product.h"
#include "runtime/kernels/gemm_block.h"

namespace {

BOA_INLINE float WidenNumber(float x) { return x; }
BOA_INLINE float WidenNumber(uint16_t x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x) << 16);
}

/// sums[j] += the products of `rows` numbers of x and as many rows of b.
template <int kRows, typename B>
BOA_INLINE void AddRows(const float *x, const B *b, int64_t ldb, int64_t n, float *sums) {
  constexpr int L = Simd<float>::kLanes;
  int64_t j = 0;
  for (; j + L <= n; j += L) {
    Vec<float> sum = Load(sums + j);
    for (int i = 0; i < kRows; ++i)
      sum += x[i] * LoadAs<float>(b + i * ldb + j);
    Store(sums + j, sum);
  }
  for (; j < n; ++j)
    for (int i = 0; i < kRows; ++i)
      sums[j] += x[i] * WidenNumber(b[i * ldb + j]);
}

/// x times one row of a transposed matrix.
template <typename B> BOA_INLINE float DotRow(const float *x, const B *b, int64_t k) {
  constexpr int L = Simd<float>::kLanes;
  Vec<float> even = Splat(0.0f), odd = even;
  int64_t i = 0;
  for (; i + 2 * L <= k; i += 2 * L) {
    even += Load(x + i) * LoadAs<float>(b + i);
    odd += Load(x + i + L) * LoadAs<float>(b + i + L);
  }
  even += odd;
  float sum = 0;
  for (int lane = 0; lane < L; ++lane)
    sum += even[lane];
  for (; i < k; ++i)
    sum += x[i] * WidenNumber(b[i]);
  return sum;
}

/// Whether MultiplyRow takes the block.
template <typename A, typename B, typename C>
BOA_INLINE bool IsRow(const boa::GemmBlock<A, B, C> &g) {
  return g.m == 1 && g.n + g.k <= boa::kGemmScratch;
}

template <typename A, typename B, typename C>
void MultiplyRow(const boa::GemmBlock<A, B, C> &g, float *scratch) {
  float *x = scratch, *sums = scratch + g.k;
  for (int64_t i = 0; i < g.k; ++i)
    x[i] = WidenNumber(g.a[g.transpose_a ? i * g.lda : i]);
  for (int64_t j = 0; j < g.n; ++j)
    sums[j] = (g.bias ? g.bias[j] : 0) + (g.accumulate ? WidenNumber(g.c[j]) : 0);
  if (g.transpose_b) {
    for (int64_t j = 0; j < g.n; ++j)
      sums[j] += DotRow(x, g.b + j * g.ldb, g.k);
  } else {
    int64_t i = 0;
    for (; i + 4 <= g.k; i += 4)
      AddRows<4>(x + i, g.b + i * g.ldb, g.ldb, g.n, sums);
    for (; i < g.k; ++i)
      AddRows<1>(x + i, g.b + i * g.ldb, g.ldb, g.n, sums);
  }
  constexpr int L = Simd<float>::kLanes;
  for (int64_t j = 0; j < g.n; j += L) {
    C whole[L];
    float last[L] = {};
    for (int64_t lane = 0; lane < L && j + lane < g.n; ++lane)
      last[lane] = sums[j + lane];
    if constexpr (sizeof(C) == 2)
      StoreRounded(whole, Load(last));
    else
      Store(whole, Load(last));
    for (int64_t lane = 0; lane < L && j + lane < g.n; ++lane)
      g.c[j + lane] = whole[lane];
  }
}

} // namespace

#endif // BOA_RUNTIME_KERNELS_GEMM_ROW_H
