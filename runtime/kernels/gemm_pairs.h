//===- gemm_pairs.h - Operands of bf16, packed by pairs -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Processors that multiply bf16 take two neighbours in k at a time and add both
// products to one f32. So k is packed by twos, an odd one with a zero beside it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_GEMM_PAIRS_H
#define BOA_RUNTIME_KERNELS_GEMM_PAIRS_H

#include "runtime/kernels/simd.h"

namespace {

/// Two elements side by side in k, the first in the lower half.
using Pair = uint32_t;

constexpr int64_t kEight = 8;   // what is packed together
constexpr int64_t kAbreast = 8; // panels that are packed together

/// The pairs of eight columns of two rows; no second row is one of zeros.
BOA_INLINE void PairRows(const uint16_t *first, const uint16_t *second, Pair *to) {
  typedef uint16_t Half __attribute__((vector_size(16), aligned(2)));
  typedef uint32_t Wide __attribute__((vector_size(32)));
  typedef uint32_t Loose __attribute__((vector_size(32), aligned(4)));
  Wide pairs = __builtin_convertvector(*reinterpret_cast<const Half *>(first), Wide);
  if (second)
    pairs |= __builtin_convertvector(*reinterpret_cast<const Half *>(second), Wide) << 16;
  *reinterpret_cast<Loose *>(to) = pairs;
}

/// Eight pairs of a row, moved as if they were floats; a pair may begin at any element.
BOA_INLINE Simd<float>::Vec LoadPairs(const uint16_t *p) {
  typedef uint16_t Pairs __attribute__((vector_size(32), aligned(2)));
  Pairs pairs = *reinterpret_cast<const Pairs *>(p);
  return (Simd<float>::Vec)pairs;
}

/// A panel `width` wide, a multiple of eight: to[y][i] = elements (i, 2y) and (i, 2y + 1)
/// for 2y < k; zeros past `count` and past k. With `along`, i is a row of `from`;
/// otherwise a column.
void PackPanel(const uint16_t *from, int64_t ld, bool along, int64_t count, int64_t width,
               int64_t k, Pair *to) {
  for (int64_t i0 = 0; i0 < width; i0 += kEight) {
    int64_t x = 0;
    if (i0 + kEight <= count && along)
      for (; x + 2 * kEight <= k; x += 2 * kEight) {
        Simd<float>::Vec square[kEight];
        for (int64_t i = 0; i < kEight; ++i)
          square[i] = LoadPairs(from + (i0 + i) * ld + x);
        TransposeSquare(square);
        for (int64_t y = 0; y < kEight; ++y)
          Store(reinterpret_cast<float *>(to + (x / 2 + y) * width + i0), square[y]);
      }
    else if (i0 + kEight <= count)
      for (; x < k; x += 2)
        PairRows(from + x * ld + i0, x + 1 < k ? from + (x + 1) * ld + i0 : nullptr,
                 to + x / 2 * width + i0);
    for (; x < k; x += 2)
      for (int64_t i = i0; i < i0 + kEight; ++i) {
        auto element = [&](int64_t at) -> Pair {
          if (i >= count || at >= k)
            return 0;
          return along ? from[i * ld + at] : from[at * ld + i];
        };
        to[x / 2 * width + i] = element(x) | element(x + 1) << 16;
      }
  }
}

/// Packs the panels from `from` on that hold `count` rows or columns; the last one is
/// as wide as it must be. Rows are read along over several panels, which the
/// processor's prefetch follows.
template <int64_t kWidth, int64_t kLeast>
void PackPanels(const uint16_t *from, int64_t ld, bool along, int64_t count, int64_t k, Pair *to) {
  const int64_t pairs = (k + 1) / 2;
  int64_t i = 0;
  if (!along)
    for (; i + kAbreast * kWidth <= count; i += kAbreast * kWidth)
      for (int64_t y = 0; y < pairs; ++y) {
        const uint16_t *first = from + 2 * y * ld;
        const uint16_t *second = 2 * y + 1 < k ? first + ld : nullptr;
        for (int64_t panel = i; panel < i + kAbreast * kWidth; panel += kWidth)
          for (int64_t j = 0; j < kWidth; j += kEight)
            PairRows(first + panel + j, second ? second + panel + j : nullptr,
                     to + panel * pairs + y * kWidth + j);
      }
  for (; i < count; i += kWidth) {
    int64_t rest = kWidth < count - i ? kWidth : count - i;
    PackPanel(from + i * (along ? ld : 1), ld, along, rest, (rest + kLeast - 1) / kLeast * kLeast,
              k, to + i * pairs);
  }
}

} // namespace

#endif // BOA_RUNTIME_KERNELS_GEMM_PAIRS_H
