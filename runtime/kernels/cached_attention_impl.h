//===- cached_attention_impl.h - A row's attention to a cache -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One row and head, for each instruction set: the scores of all keys that the row sees, then
// their exponentials, then the sum of values. This header calls no library code.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_CACHED_ATTENTION_IMPL_H
#define BOA_RUNTIME_KERNELS_CACHED_ATTENTION_IMPL_H

#include "runtime/kernels/attention_task.h"
#include "runtime/kernels/block_product.h"

namespace {

BOA_INLINE float WidenOne(uint16_t half) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(half) << 16);
}
BOA_INLINE float WidenOne(float x) { return x; }
BOA_INLINE double WidenOne(double x) { return x; }

/// q k over d numbers, of which q is widened.
template <typename T, typename E> BOA_INLINE T Dot(const T *q, const E *k, int64_t d) {
  constexpr int L = Simd<T>::kLanes;
  Vec<T> sum = Splat(T(0));
  int64_t i = 0;
  for (; i + L <= d; i += L)
    sum += Load(q + i) * LoadAs<T>(k + i);
  T total = 0;
  for (int lane = 0; lane < L; ++lane)
    total += sum[lane];
  for (; i < d; ++i)
    total += q[i] * WidenOne(k[i]);
  return total;
}

/// sum += p v over d numbers.
template <typename T, typename E> BOA_INLINE void AddScaled(T *sum, T p, const E *v, int64_t d) {
  constexpr int L = Simd<T>::kLanes;
  int64_t i = 0;
  for (; i + L <= d; i += L)
    Store(sum + i, Load(sum + i) + p * LoadAs<T>(v + i));
  for (; i < d; ++i)
    sum[i] += p * WidenOne(v[i]);
}

/// `task`: a row of a head, by head, then row. Scratch: CachedAttentionScratch numbers.
template <typename E>
void CachedTask(const boa::CachedAttentionArgs<E> &s, int64_t task,
                typename boa::AttentionSum<E>::Type *scratch) {
  using T = typename boa::AttentionSum<E>::Type;
  constexpr int L = Simd<T>::kLanes;
  const int64_t row = task % s.rows, h = task / s.rows, d = s.d;
  const int64_t kvh = h / (s.heads / s.kv_heads);
  const int64_t end = s.positions[row] + 1;
  const int64_t first = s.window != 0 && end > s.window ? end - s.window : 0;
  const E *keys = s.keys + kvh * d, *values = s.values + kvh * d;
  const int64_t wide = (d + L - 1) / L * L;
  T *q = scratch, *sum = q + wide, *scores = sum + wide;
  // In units of log 2.
  const T scale = s.scale * T(1.44269504088896340736);
  for (int64_t i = 0; i < d; ++i)
    q[i] = WidenOne(s.q[row * s.ldq + h * d + i]) * scale;
  T max = -__builtin_inf();
  for (int64_t j = first; j < end; ++j) {
    const T score = Dot(q, keys + j * s.ld_keys, d);
    scores[j - first] = score;
    max = score > max ? score : max;
  }
  const int64_t count = end - first, vectors = (count + L - 1) / L;
  for (int64_t j = count; j < vectors * L; ++j)
    scores[j] = -__builtin_inf();
  Vec<T> sums = Splat(T(0));
  for (int64_t j = 0; j < vectors; ++j) {
    const Vec<T> p = Exp2(Load(scores + j * L) - max);
    Store(scores + j * L, p);
    sums += p;
  }
  T total = 0;
  for (int lane = 0; lane < L; ++lane)
    total += sums[lane];
  for (int64_t i = 0; i < wide; ++i)
    sum[i] = 0;
  for (int64_t j = 0; j < count; ++j)
    AddScaled(sum, scores[j], values + (first + j) * s.ld_values, d);
  E *y = s.y + row * s.ldy + h * d;
  for (int64_t i = 0; i < wide; i += L) {
    const Vec<T> result = Load(sum + i) / total;
    E whole[L];
    if constexpr (sizeof(E) == 2)
      StoreRounded(whole, result);
    else
      Store(whole, result);
    for (int64_t lane = 0; lane < L && i + lane < d; ++lane)
      y[i + lane] = whole[lane];
  }
}

} // namespace

#endif // BOA_RUNTIME_KERNELS_CACHED_ATTENTION_IMPL_H
