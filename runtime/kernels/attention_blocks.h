//===- attention_blocks.h - Operands of attention, by block -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks of rows and of keys of one head, in the forms in which the backward pass multiplies them
// (attention_impl.h). They lie in a task's scratch.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_ATTENTION_BLOCKS_H
#define BOA_RUNTIME_KERNELS_ATTENTION_BLOCKS_H

#include "runtime/kernels/attention_range.h"
#include "runtime/kernels/block_product.h"

namespace {

/// Takes `count` numbers of U from scratch of T.
template <typename U, typename T> BOA_INLINE U *Take(T *&scratch, int64_t count) {
  static_assert(sizeof(U) <= sizeof(T));
  T *p = scratch;
  scratch += (count + 15) / 16 * 16;
  return reinterpret_cast<U *>(p);
}

/// The dot product of two rows.
template <typename T, typename E> BOA_INLINE T Dot(const E *a, const E *b, int64_t d) {
  constexpr int L = Simd<T>::kLanes;
  Vec<T> dots{};
  int64_t x = 0;
  for (; x + L <= d; x += L)
    dots += LoadAs<T>(a + x) * LoadAs<T>(b + x);
  T sum = SumLanes<T>(dots);
  for (; x < d; ++x)
    sum += OperandAt<T>(a + x, 1) * OperandAt<T>(b + x, 1);
  return sum;
}

/// A block of rows of one head, as operands of the backward pass.
template <typename O, typename E> struct RowBlock {
  using T = SumOf<O>;
  int64_t first, count;
  O *qRoom, *qAcrossRoom, *dyRoom, *dyAcrossRoom;
  T *delta; // of each row the sum of dy y
  Rows<O> q, qAcross, dy, dyAcross;
  const T *lse;

  RowBlock(int64_t d, T *&scratch) {
    O **rooms[] = {&qRoom, &qAcrossRoom, &dyRoom, &dyAcrossRoom};
    for (O **room : rooms)
      *room = Take<O>(scratch, kRowBlock * Padded<O>(d));
    delta = Take<T>(scratch, kRowBlock);
  }

  static void Prefetch(const boa::AttentionArgs<E> &s, int64_t b, int64_t h, int64_t i0) {
    const int64_t at = b * s.time + i0, count = Lesser(kRowBlock, s.time - i0);
    PrefetchRows(s.q + at * s.ldq + h * s.d, s.ldq, count, s.d);
    PrefetchRows(s.dy + at * s.lddy + h * s.d, s.lddy, count, s.d);
    PrefetchRows(s.yIn + at * s.ldy + h * s.d, s.ldy, count, s.d);
  }

  void Set(const boa::AttentionArgs<E> &s, int64_t b, int64_t h, int64_t i0) {
    first = i0, count = Lesser(kRowBlock, s.time - i0);
    const int64_t at = b * s.time + i0;
    const E *qs = s.q + at * s.ldq + h * s.d, *dys = s.dy + at * s.lddy + h * s.d;
    const E *ys = s.yIn + at * s.ldy + h * s.d;
    q = AlongRows(qs, s.ldq, count, s.d, qRoom);
    dy = AlongRows(dys, s.lddy, count, s.d, dyRoom);
    if constexpr (kDeep<O> == 1) {
      qAcross = q, dyAcross = dy;
    } else {
      qAcross = AcrossRows(qs, s.ldq, count, s.d, qAcrossRoom);
      dyAcross = AcrossRows(dys, s.lddy, count, s.d, dyAcrossRoom);
    }
    for (int64_t i = 0; i < count; ++i)
      delta[i] = Dot<T>(dys + i * s.lddy, ys + i * s.ldy, s.d);
    lse = s.lseIn + (b * s.heads + h) * s.time + i0;
    Prefetch(s, b, h, Lesser(i0 + kRowBlock, s.time));
  }
};

/// A block of keys and values, as operands of the backward pass.
template <typename O, typename E> struct KeyBlock {
  int64_t first, count;
  O *kt, *vt, *kRoom; // [d, keys], [d, keys], [keys, d]
  Rows<O> k;

  void Take(int64_t d, SumOf<O> *&scratch) {
    O **rooms[] = {&kt, &vt, &kRoom};
    for (O **room : rooms)
      *room = ::Take<O>(scratch, kRowBlock * Padded<O>(d));
  }

  void Set(const boa::AttentionArgs<E> &s, int64_t b, int64_t kvh, int64_t k0) {
    first = k0, count = Lesser(kRowBlock, s.time - k0);
    const E *ks = s.k + (b * s.time + k0) * s.ldk + kvh * s.d;
    k = AcrossRows(ks, s.ldk, count, s.d, kRoom);
    Transpose(ks, s.ldk, count, s.d, kt, kRowBlock);
    Transpose(s.v + (b * s.time + k0) * s.ldv + kvh * s.d, s.ldv, count, s.d, vt, kRowBlock);
  }
};

} // namespace

#endif // BOA_RUNTIME_KERNELS_ATTENTION_BLOCKS_H
