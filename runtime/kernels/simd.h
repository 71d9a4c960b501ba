//===- simd.h - Small vector kernels, compiled once per instruction set -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vectors of 32 bytes, an exponential and a register-tiled matrix product for
// operands that fit the cache. Included by files that are compiled with and
// without AVX2: everything is in an unnamed namespace and calls no inline
// function of the standard library, so that no unit picks up another's code.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_SIMD_H
#define BOA_RUNTIME_KERNELS_SIMD_H

#include <stdint.h>

namespace {

#define BOA_INLINE inline __attribute__((always_inline))

template <typename T> struct Simd;

template <> struct Simd<float> {
  typedef float Vec __attribute__((vector_size(32)));
  typedef float Loose __attribute__((vector_size(32), aligned(4)));
  typedef int32_t Bits __attribute__((vector_size(32)));
  typedef int32_t Int;
  static constexpr int kLanes = 8;
  static constexpr int kMantissa = 23, kBias = 127;
  static constexpr float kLowest = -126.0f; // 2^x is not normal below
};
template <> struct Simd<double> {
  typedef double Vec __attribute__((vector_size(32)));
  typedef double Loose __attribute__((vector_size(32), aligned(8)));
  typedef int64_t Bits __attribute__((vector_size(32)));
  typedef int64_t Int;
  static constexpr int kLanes = 4;
  static constexpr int kMantissa = 52, kBias = 1023;
  static constexpr double kLowest = -1022.0;
};

template <typename T> using Vec = typename Simd<T>::Vec;

template <typename T> BOA_INLINE Vec<T> load(const T *p) {
  return *reinterpret_cast<const typename Simd<T>::Loose *>(p);
}
template <typename T> BOA_INLINE void store(T *p, Vec<T> v) {
  *reinterpret_cast<typename Simd<T>::Loose *>(p) = v;
}
template <typename T> BOA_INLINE Vec<T> splat(T x) { return x - Vec<T>{}; }

/// 2^x for x <= 0 or little above, to the last bits of T. Arguments too small
/// for a normal result give zero; NaN stays NaN.
BOA_INLINE Simd<float>::Vec exp2(Simd<float>::Vec x) {
  using S = Simd<float>;
  // x = n + r, |r| <= 1/2; adding 1.5 * 2^23 rounds to an integer.
  S::Vec shifted = x + 12582912.0f;
  S::Vec r = x - (shifted - 12582912.0f);
  // Of least maximal relative error on the interval: 2e-9 before rounding.
  S::Vec p = r * 1.535336188e-4f + 1.339887440e-3f;
  p = p * r + 9.618437357e-3f;
  p = p * r + 5.550332471e-2f;
  p = p * r + 2.402264791e-1f;
  p = p * r + 6.931472028e-1f;
  p = p * r + 1.0f;
  S::Bits scale = ((S::Bits)shifted + S::kBias) << S::kMantissa;
  S::Bits keep = ~(S::Bits)(x <= S::kLowest);
  return (S::Vec)((S::Bits)(p * (S::Vec)scale) & keep);
}
BOA_INLINE Simd<double>::Vec exp2(Simd<double>::Vec x) {
  using S = Simd<double>;
  constexpr double kMagic = 6755399441055744.0; // 1.5 * 2^52
  S::Vec shifted = x + kMagic;
  S::Vec r = (x - (shifted - kMagic)) * 0.69314718055994530942;
  // Taylor of e^r to degree 13: the remainder is under 2^-53 for |r| <= 0.35.
  S::Vec p = splat<double>(1.0 / 6227020800.0);
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * (r * r) + r + 1.0;
  S::Bits scale = ((S::Bits)shifted + S::kBias) << S::kMantissa;
  S::Bits keep = ~(S::Bits)(x <= S::kLowest);
  return (S::Vec)((S::Bits)(p * (S::Vec)scale) & keep);
}

template <typename T> BOA_INLINE T sumLanes(Vec<T> v) {
  T sum = 0;
  for (int i = 0; i < Simd<T>::kLanes; ++i)
    sum += v[i];
  return sum;
}
template <typename T> BOA_INLINE T maxLanes(Vec<T> v) {
  T max = v[0];
  for (int i = 1; i < Simd<T>::kLanes; ++i)
    max = v[i] > max ? v[i] : max;
  return max;
}
template <typename T> BOA_INLINE Vec<T> maximum(Vec<T> a, Vec<T> b) { return a > b ? a : b; }

/// rows[i][j] = rows[j][i], of a square of vectors.
BOA_INLINE void transposeSquare(Simd<float>::Vec (&r)[8]) {
  Simd<float>::Vec a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    a[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4)
    for (int k = 0; k < 2; ++k) {
      b[i + 2 * k] = __builtin_shufflevector(a[i + k], a[i + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      b[i + 2 * k + 1] =
          __builtin_shufflevector(a[i + k], a[i + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < 4; ++i) {
    r[i] = __builtin_shufflevector(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    r[i + 4] = __builtin_shufflevector(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}
BOA_INLINE void transposeSquare(Simd<double>::Vec (&r)[4]) {
  Simd<double>::Vec a[4];
  for (int i = 0; i < 4; i += 2) {
    a[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 4, 2, 6);
    a[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 5, 3, 7);
  }
  for (int i = 0; i < 2; ++i) {
    r[i] = __builtin_shufflevector(a[i], a[i + 2], 0, 1, 4, 5);
    r[i + 2] = __builtin_shufflevector(a[i], a[i + 2], 2, 3, 6, 7);
  }
}

/// to[x][j] = from[j][x] for j < count, x < d; up to the next full vector the
/// columns past count are zeroed. Rows of `to` are `width` apart, a multiple of
/// the lanes.
template <typename T>
void transpose(const T *from, int64_t stride, int64_t count, int64_t d, T *to, int64_t width) {
  constexpr int L = Simd<T>::kLanes;
  for (int64_t j = 0; j < width; j += L) {
    int64_t x = 0;
    if (j + L <= count)
      for (; x + L <= d; x += L) {
        Vec<T> square[L];
        for (int r = 0; r < L; ++r)
          square[r] = load(from + (j + r) * stride + x);
        transposeSquare(square);
        for (int r = 0; r < L; ++r)
          store(to + (x + r) * width + j, square[r]);
      }
    for (; x < d; ++x)
      for (int r = 0; r < L; ++r)
        to[x * width + j + r] = j + r < count ? from[(j + r) * stride + x] : T(0);
  }
}

/// A strided operand: element (i, j) is at p[i * row + j * column].
template <typename T> struct Strided {
  const T *p;
  int64_t row, column;
};

/// C[R, N * lanes] = (add ? C : 0) + A[R, k] B[k, N * lanes], held in registers.
template <typename T, int R, int N>
BOA_INLINE void tile(int64_t k, Strided<T> a, const T *b, int64_t ldb, T *c, int64_t ldc,
                     bool add) {
  constexpr int L = Simd<T>::kLanes;
  Vec<T> sum[R][N];
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < N; ++j)
      sum[i][j] = add ? load(c + i * ldc + j * L) : Vec<T>{};
  for (int64_t x = 0; x < k; ++x) {
    Vec<T> row[N];
    for (int j = 0; j < N; ++j)
      row[j] = load(b + x * ldb + j * L);
    for (int i = 0; i < R; ++i) {
      Vec<T> scalar = splat(a.p[i * a.row + x * a.column]);
      for (int j = 0; j < N; ++j)
        sum[i][j] += scalar * row[j];
    }
  }
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < N; ++j)
      store(c + i * ldc + j * L, sum[i][j]);
}

/// R rows of the product, over all n columns; columns that fill no vector are
/// done one by one.
template <typename T, int R>
BOA_INLINE void rows(int64_t n, int64_t k, Strided<T> a, const T *b, int64_t ldb, T *c, int64_t ldc,
                     bool add) {
  constexpr int L = Simd<T>::kLanes;
  int64_t j = 0;
  for (; j + 2 * L <= n; j += 2 * L)
    tile<T, R, 2>(k, a, b + j, ldb, c + j, ldc, add);
  for (; j + L <= n; j += L)
    tile<T, R, 1>(k, a, b + j, ldb, c + j, ldc, add);
  for (; j < n; ++j)
    for (int i = 0; i < R; ++i) {
      T sum = add ? c[i * ldc + j] : T(0);
      for (int64_t x = 0; x < k; ++x)
        sum += a.p[i * a.row + x * a.column] * b[x * ldb + j];
      c[i * ldc + j] = sum;
    }
}

constexpr int64_t kTileRows = 6;

/// What is known of a triangular operand or result of a product of square blocks
/// on the diagonal (offset 0) or left of it (offset > 0).
enum class Triangle {
  None,
  Result, // row i of C is wanted only up to column i + offset
  Lower,  // row i of A is zero past column i + offset
  Upper,  // row i of A is zero before column i - offset
};

/// C[m, n] = (add ? C : 0) + A[m, k] B[k, n]. A may be strided either way, so a
/// transposed operand needs no copy.
template <typename T>
void multiply(int64_t m, int64_t n, int64_t k, Strided<T> a, const T *b, int64_t ldb, T *c,
              int64_t ldc, bool add, Triangle triangle = Triangle::None, int64_t offset = 0) {
  constexpr int64_t kWide = 2 * Simd<T>::kLanes;
  for (int64_t i = 0; i < m;) {
    int64_t r = m - i < kTileRows ? m - i : kTileRows;
    int64_t columns = n, begin = 0, end = k;
    if (triangle == Triangle::Result) {
      int64_t wanted = (i + r + offset + kWide - 1) / kWide * kWide;
      columns = wanted < n ? wanted : n;
    } else if (triangle == Triangle::Lower) {
      end = i + r + offset < k ? i + r + offset : k;
    } else if (triangle == Triangle::Upper) {
      begin = i > offset ? i - offset : 0;
      begin = begin < k ? begin : k;
    }
    Strided<T> at{a.p + i * a.row + begin * a.column, a.row, a.column};
    const T *bt = b + begin * ldb;
    int64_t deep = end - begin;
    T *ct = c + i * ldc;
    switch (r) {
    case 6:
      rows<T, 6>(columns, deep, at, bt, ldb, ct, ldc, add);
      break;
    case 5:
      rows<T, 5>(columns, deep, at, bt, ldb, ct, ldc, add);
      break;
    case 4:
      rows<T, 4>(columns, deep, at, bt, ldb, ct, ldc, add);
      break;
    case 3:
      rows<T, 3>(columns, deep, at, bt, ldb, ct, ldc, add);
      break;
    case 2:
      rows<T, 2>(columns, deep, at, bt, ldb, ct, ldc, add);
      break;
    default:
      rows<T, 1>(columns, deep, at, bt, ldb, ct, ldc, add);
      break;
    }
    i += r;
  }
}

} // namespace

#endif // BOA_RUNTIME_KERNELS_SIMD_H
