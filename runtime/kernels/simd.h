//===- simd.h - Small vector kernels, compiled once per instruction set -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vectors, operations across their lanes, and an exponential. Each file that includes this is
// compiled for one instruction set. So everything is in an unnamed namespace and calls no inline
// function of the standard library. Thus no unit picks up another's code.
//
// A vector is of 32 bytes, whatever they are for the processor, or of 64 where the
// file says BOA_VECTOR_BYTES 64, which needs AVX-512 (F, BW, DQ, VL). The order of sums
// depends on it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_SIMD_H
#define BOA_RUNTIME_KERNELS_SIMD_H

#include <stdint.h>

#ifndef BOA_VECTOR_BYTES
#define BOA_VECTOR_BYTES 32
#endif
#if BOA_VECTOR_BYTES == 64
#include <immintrin.h>
#endif

namespace {

#define BOA_INLINE inline __attribute__((always_inline))
#define BOA_VECTOR(...) __attribute__((vector_size(BOA_VECTOR_BYTES), ##__VA_ARGS__))

template <typename T> struct Simd;

template <> struct Simd<float> {
  typedef float Vec BOA_VECTOR();
  typedef float Loose BOA_VECTOR(aligned(4));
  typedef int32_t Bits BOA_VECTOR();
  typedef int32_t Int;
  static constexpr int kLanes = BOA_VECTOR_BYTES / 4;
  static constexpr int kMantissa = 23, kBias = 127;
  static constexpr float kLowest = -126.0f; // 2^x is not normal below
};
template <> struct Simd<double> {
  typedef double Vec BOA_VECTOR();
  typedef double Loose BOA_VECTOR(aligned(8));
  typedef int64_t Bits BOA_VECTOR();
  typedef int64_t Int;
  static constexpr int kLanes = BOA_VECTOR_BYTES / 8;
  static constexpr int kMantissa = 52, kBias = 1023;
  static constexpr double kLowest = -1022.0;
};

template <typename T> using Vec = typename Simd<T>::Vec;

template <typename T> BOA_INLINE Vec<T> Load(const T *p) {
  return *reinterpret_cast<const typename Simd<T>::Loose *>(p);
}
template <typename T> BOA_INLINE void Store(T *p, Vec<T> v) {
  *reinterpret_cast<typename Simd<T>::Loose *>(p) = v;
}
template <typename T> BOA_INLINE Vec<T> Splat(T x) { return x - Vec<T>{}; }

/// Numbers of bf16, the upper halves of floats.
typedef uint16_t Halves __attribute__((vector_size(BOA_VECTOR_BYTES / 2)));
typedef uint16_t LooseHalves __attribute__((vector_size(BOA_VECTOR_BYTES / 2), aligned(2)));

BOA_INLINE Vec<float> LoadWidened(const uint16_t *p) {
  Halves halves = *reinterpret_cast<const LooseHalves *>(p);
  return (Vec<float>)(__builtin_convertvector(halves, Simd<float>::Bits) << 16);
}
/// Rounds to the nearest, of two to the even one; NaN stays NaN. Where the processor has an
/// instruction for it, that takes numbers below f32's least normal one for zero.
BOA_INLINE void StoreRounded(uint16_t *p, Vec<float> v) {
#if BOA_VECTOR_BYTES == 64 && defined(__AVX512BF16__)
  Halves halves = (Halves)_mm512_cvtneps_pbh(v);
#else
  typedef uint32_t Unsigned BOA_VECTOR();
  Unsigned bits = (Unsigned)v;
  Unsigned rounded = bits + 0x7fff + (bits >> 16 & 1);
  Unsigned none = (Unsigned)(v != v);
  Halves halves =
      __builtin_convertvector(((rounded & ~none) | ((bits | 0x400000) & none)) >> 16, Halves);
#endif
  *reinterpret_cast<LooseHalves *>(p) = halves;
}

/// Of the power 2^r, |r| <= 1/2: of least maximal relative error, 2e-9 before rounding.
BOA_INLINE Simd<float>::Vec Exp2Fraction(Simd<float>::Vec r) {
  Simd<float>::Vec p = r * 1.535336188e-4f + 1.339887440e-3f;
  p = p * r + 9.618437357e-3f;
  p = p * r + 5.550332471e-2f;
  p = p * r + 2.402264791e-1f;
  p = p * r + 6.931472028e-1f;
  return p * r + 1.0f;
}

/// 2^x for x <= 0 or little above, to the last bits of T. Arguments too small
/// for a normal result give zero; NaN stays NaN.
BOA_INLINE Simd<float>::Vec Exp2(Simd<float>::Vec x) {
  using S = Simd<float>;
#if BOA_VECTOR_BYTES == 64
  S::Vec n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __mmask16 normal = _mm512_cmp_ps_mask(x, Splat(S::kLowest), _CMP_NLE_UQ);
  return _mm512_maskz_scalef_ps(normal, Exp2Fraction(x - n), n);
#else
  // x = n + r; adding 1.5 * 2^23 rounds to an integer.
  S::Vec shifted = x + 12582912.0f;
  S::Vec p = Exp2Fraction(x - (shifted - 12582912.0f));
  S::Bits scale = ((S::Bits)shifted + S::kBias) << S::kMantissa;
  S::Bits keep = ~(S::Bits)(x <= S::kLowest);
  return (S::Vec)((S::Bits)(p * (S::Vec)scale) & keep);
#endif
}
BOA_INLINE Simd<double>::Vec Exp2(Simd<double>::Vec x) {
  using S = Simd<double>;
  constexpr double kMagic = 6755399441055744.0; // 1.5 * 2^52
  S::Vec shifted = x + kMagic;
  S::Vec r = (x - (shifted - kMagic)) * 0.69314718055994530942;
  // Taylor of e^r to degree 13: the remainder is under 2^-53 for |r| <= 0.35.
  S::Vec p = Splat<double>(1.0 / 6227020800.0);
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

/// v in the first n lanes, `rest` in the others.
template <typename T> BOA_INLINE Vec<T> FirstOf(Vec<T> v, int64_t n, T rest) {
  typename Simd<T>::Bits lane;
  for (int i = 0; i < Simd<T>::kLanes; ++i)
    lane[i] = i;
  return lane < static_cast<typename Simd<T>::Int>(n) ? v : Splat(rest);
}

template <typename T> BOA_INLINE Vec<T> Maximum(Vec<T> a, Vec<T> b) { return a > b ? a : b; }

#if BOA_VECTOR_BYTES == 64

/// The first `lanes` of a vector; in the others there are zeros, and they are not stored.
BOA_INLINE Vec<float> LoadFirst(const float *p, int64_t lanes) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1 << lanes) - 1), p);
}
BOA_INLINE Vec<double> LoadFirst(const double *p, int64_t lanes) {
  return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1 << lanes) - 1), p);
}
BOA_INLINE void StoreFirst(float *p, int64_t lanes, Vec<float> v) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1 << lanes) - 1), v);
}
BOA_INLINE void StoreFirst(double *p, int64_t lanes, Vec<double> v) {
  _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1 << lanes) - 1), v);
}

/// Lane i is that of i with the bits of kBits turned.
template <int kBits> BOA_INLINE Vec<float> Exchanged(Vec<float> v) {
  return __builtin_shufflevector(v, v, 0 ^ kBits, 1 ^ kBits, 2 ^ kBits, 3 ^ kBits, 4 ^ kBits,
                                 5 ^ kBits, 6 ^ kBits, 7 ^ kBits, 8 ^ kBits, 9 ^ kBits, 10 ^ kBits,
                                 11 ^ kBits, 12 ^ kBits, 13 ^ kBits, 14 ^ kBits, 15 ^ kBits);
}
template <int kBits> BOA_INLINE Vec<double> Exchanged(Vec<double> v) {
  return __builtin_shufflevector(v, v, 0 ^ kBits, 1 ^ kBits, 2 ^ kBits, 3 ^ kBits, 4 ^ kBits,
                                 5 ^ kBits, 6 ^ kBits, 7 ^ kBits);
}
template <typename T> BOA_INLINE T SumLanes(Vec<T> v) {
  if constexpr (Simd<T>::kLanes == 16)
    v += Exchanged<8>(v);
  v += Exchanged<4>(v);
  v += Exchanged<2>(v);
  v += Exchanged<1>(v);
  return v[0];
}
template <typename T> BOA_INLINE T MaxLanes(Vec<T> v) {
  if constexpr (Simd<T>::kLanes == 16)
    v = Maximum<T>(v, Exchanged<8>(v));
  v = Maximum<T>(v, Exchanged<4>(v));
  v = Maximum<T>(v, Exchanged<2>(v));
  v = Maximum<T>(v, Exchanged<1>(v));
  return v[0];
}

/// The lower and the upper halves of a and b, interleaved.
BOA_INLINE Vec<float> LowerHalves(Vec<float> a, Vec<float> b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
BOA_INLINE Vec<float> UpperHalves(Vec<float> a, Vec<float> b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}
BOA_INLINE Vec<double> LowerHalves(Vec<double> a, Vec<double> b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
BOA_INLINE Vec<double> UpperHalves(Vec<double> a, Vec<double> b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

/// rows[i][j] = rows[j][i], of a square of vectors: each stage turns the bits of (i, j)
/// by one.
template <typename V, int L> BOA_INLINE void TransposeSquare(V (&r)[L]) {
  for (int stage = 1; stage < L; stage *= 2) {
    V a[L];
    for (int i = 0; i < L / 2; ++i) {
      a[2 * i] = LowerHalves(r[i], r[i + L / 2]);
      a[2 * i + 1] = UpperHalves(r[i], r[i + L / 2]);
    }
    for (int i = 0; i < L; ++i)
      r[i] = a[i];
  }
}

#else

template <typename T> BOA_INLINE T SumLanes(Vec<T> v) {
  T sum = 0;
  for (int i = 0; i < Simd<T>::kLanes; ++i)
    sum += v[i];
  return sum;
}
template <typename T> BOA_INLINE T MaxLanes(Vec<T> v) {
  T max = v[0];
  for (int i = 1; i < Simd<T>::kLanes; ++i)
    max = v[i] > max ? v[i] : max;
  return max;
}
/// rows[i][j] = rows[j][i], of a square of vectors.
BOA_INLINE void TransposeSquare(Simd<float>::Vec (&r)[8]) {
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
BOA_INLINE void TransposeSquare(Simd<double>::Vec (&r)[4]) {
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

#endif

} // namespace

#endif // BOA_RUNTIME_KERNELS_SIMD_H
