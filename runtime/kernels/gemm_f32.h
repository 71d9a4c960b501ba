//===- gemm_f32.h - Matrix products by f32 vectors ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel for gemm_loops.h, for vectors of any width. Operands in bf16 are widened
// where they are packed.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_GEMM_F32_H
#define BOA_RUNTIME_KERNELS_GEMM_F32_H

#include "runtime/kernels/gemm_loops.h"

namespace {

/// A tile of Rows by Vectors vectors of Lanes f32. Rows is 6 to 8: packing takes eight
/// rows, or as many as that, at a time.
template <int Lanes, int Rows, int Vectors> struct F32Kernel {
  static constexpr int64_t kLanes = Lanes, kTileM = Rows, kTileN = Lanes * Vectors;
  // A panel of B: 72 KiB in L2, or 16 in L1.
  static constexpr int64_t kDeep = Lanes == 16 ? 384 : 256;
  static constexpr int64_t kRows = 192;                          // a block of A: 192 or 288 KiB
  static constexpr int64_t kColumns = Lanes == 16 ? 1152 : 3072; // a block of B: 1.7 or 3 MiB
  static constexpr int64_t kEight = 8, kAbreast = 8;             // panels that are packed together
  static_assert(Rows >= 6 && Rows <= kEight);
  using Packed = float;
  using Eight = Simd<float>::Vec;

  static constexpr int64_t Depth(int64_t k) { return k; }

  static BOA_INLINE Eight LoadEight(const float *p) { return Load(p); }
  static BOA_INLINE Eight LoadEight(const uint16_t *p) {
    typedef uint16_t Half __attribute__((vector_size(16), aligned(2)));
    typedef uint32_t Bits __attribute__((vector_size(32)));
    return (Eight)(__builtin_convertvector(*reinterpret_cast<const Half *>(p), Bits) << 16);
  }
  static BOA_INLINE float LoadOne(const float *p) { return *p; }
  static BOA_INLINE float LoadOne(const uint16_t *p) {
    union {
      uint32_t bits;
      float value;
    } u = {static_cast<uint32_t>(*p) << 16};
    return u.value;
  }

  /// A panel of kTileM rows: to[x][i] = op(A)(i, x) for x < k; rows past `count` are
  /// zero. Vectors stored kTileM apart overlap: the block needs two elements more.
  template <typename T>
  static void PackPanelA(const T *a, int64_t lda, bool transpose, int64_t count, int64_t k,
                         float *to) {
    int64_t x = 0;
    if (count == kTileM && !transpose)
      for (; x + kEight <= k; x += kEight) {
        Eight square[kEight] = {};
        for (int64_t i = 0; i < kTileM; ++i)
          square[i] = LoadEight(a + i * lda + x);
        TransposeSquare(square);
        for (int64_t i = 0; i < kEight; ++i)
          Store(to + (x + i) * kTileM, square[i]);
      }
    for (; x < k; ++x)
      for (int64_t i = 0; i < kTileM; ++i)
        to[x * kTileM + i] =
            i < count ? LoadOne(transpose ? a + x * lda + i : a + i * lda + x) : 0.0f;
  }

  /// Rows are read along over several panels, which the processor's prefetch follows.
  template <typename T>
  static void PackA(const T *a, int64_t lda, bool transpose, int64_t m, int64_t k, float *to) {
    constexpr int64_t kStep = kAbreast * kTileM;
    int64_t i = 0;
    if (transpose && k > 0)
      for (; i + kStep <= m; i += kStep) {
        // The last row apart: it may end where the matrix does, and the panel.
        for (int64_t x = 0; x + 1 < k; ++x)
          for (int64_t panel = i; panel < i + kStep; panel += kTileM)
            Store(to + panel * k + x * kTileM, LoadEight(a + x * lda + panel));
        for (int64_t panel = i; panel < i + kStep; panel += kTileM)
          PackPanelA(a + (k - 1) * lda + panel, lda, true, kTileM, 1,
                     to + panel * k + (k - 1) * kTileM);
      }
    for (; i < m; i += kTileM)
      PackPanelA(a + i * (transpose ? 1 : lda), lda, transpose, Lesser(kTileM, m - i), k,
                 to + i * k);
  }

  /// A panel `width` wide, in whole vectors: to[x][j] = op(B)(x, j) for x < k; columns
  /// past `count` are zero.
  template <typename T>
  static void PackPanelB(const T *b, int64_t ldb, bool transpose, int64_t count, int64_t width,
                         int64_t k, float *to) {
    for (int64_t j0 = 0; j0 < width; j0 += kEight) {
      int64_t x = 0;
      if (j0 + kEight <= count && !transpose)
        for (; x < k; ++x)
          Store(to + x * width + j0, LoadEight(b + x * ldb + j0));
      else if (j0 + kEight <= count)
        for (; x + kEight <= k; x += kEight) {
          Eight square[kEight];
          for (int64_t j = 0; j < kEight; ++j)
            square[j] = LoadEight(b + (j0 + j) * ldb + x);
          TransposeSquare(square);
          for (int64_t i = 0; i < kEight; ++i)
            Store(to + (x + i) * width + j0, square[i]);
        }
      for (; x < k; ++x)
        for (int64_t j = j0; j < j0 + kEight; ++j)
          to[x * width + j] =
              j < count ? LoadOne(transpose ? b + j * ldb + x : b + x * ldb + j) : 0.0f;
    }
  }

  template <typename T>
  static void PackB(const T *b, int64_t ldb, bool transpose, int64_t n, int64_t k, float *to) {
    int64_t j = 0;
    if (!transpose)
      for (; j + kAbreast * kTileN <= n; j += kAbreast * kTileN)
        for (int64_t x = 0; x < k; ++x)
          for (int64_t panel = j; panel < j + kAbreast * kTileN; panel += kTileN)
            for (int64_t i = 0; i < kTileN; i += kEight)
              Store(to + panel * k + x * kTileN + i, LoadEight(b + x * ldb + panel + i));
    for (; j < n; j += kTileN) {
      int64_t rest = Lesser(kTileN, n - j);
      PackPanelB(b + j * (transpose ? ldb : 1), ldb, transpose, rest,
                 (rest + kLanes - 1) / kLanes * kLanes, k, to + j * k);
    }
  }

  /// sums[kTileM, kWidth * kLanes], rows kTileN apart, = a panel of A times one of B.
  template <int kWidth>
  static BOA_INLINE void MultiplyPanels(int64_t k, const float *a, const float *b, float *sums) {
    typedef float V __attribute__((vector_size(Lanes * 4), aligned(4)));
    V sum[Rows][kWidth] = {};
#pragma clang loop unroll_count(4)
    for (int64_t x = 0; x < k; ++x) {
      V row[kWidth];
      for (int j = 0; j < kWidth; ++j)
        row[j] = *reinterpret_cast<const V *>(b + j * Lanes);
      for (int i = 0; i < Rows; ++i) {
        V scalar = a[i] - V{};
        for (int j = 0; j < kWidth; ++j)
          sum[i][j] += scalar * row[j];
      }
      a += kTileM;
      b += kWidth * Lanes;
    }
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < kWidth; ++j)
        *reinterpret_cast<V *>(sums + i * kTileN + j * Lanes) = sum[i][j];
  }

  static BOA_INLINE void Multiply(int64_t k, int64_t, int64_t columns, const float *a,
                                  const float *b, float *sums) {
    if (Vectors > 2 && columns > 2 * kLanes)
      MultiplyPanels<Vectors>(k, a, b, sums);
    else if (Vectors > 1 && columns > kLanes)
      MultiplyPanels<Vectors == 1 ? 1 : 2>(k, a, b, sums);
    else
      MultiplyPanels<1>(k, a, b, sums);
  }
};

} // namespace

#endif // BOA_RUNTIME_KERNELS_GEMM_F32_H
