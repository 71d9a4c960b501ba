//===- gemm_avx2.cpp - One thread's block of a matrix product -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The classic scheme (Goto; BLIS): B is packed by kDeep rows into panels 16 wide
// that stay in L3, A by blocks of kRows by kDeep into panels 6 high that stay in
// L2, and a kernel keeps a 6 by 16 tile of C in registers while a panel of each
// streams from L1. Packing takes either operand in either orientation, so the
// kernel knows one layout only.
//
// Each element of C is summed over k in order, by blocks of kDeep; edges are
// padded with zeros. So where C is cut makes no difference to its bits.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/gemm_block.h"
#include "runtime/kernels/simd.h"

namespace {

constexpr int64_t kTileM = 6, kTileN = 16, kLanes = 8;
constexpr int64_t kDeep = 256;     // a panel of B: 16 KiB
constexpr int64_t kRows = 192;     // a block of A: 192 KiB
constexpr int64_t kColumns = 3072; // a block of B: 3 MiB
constexpr int64_t kAbreast = 8;    // panels of B that are packed together

constexpr int64_t kPackedA = kRows * kDeep + kTileN, kPackedB = kColumns * kDeep;
static_assert(kPackedA + kPackedB <= boa::kGemmScratch);

using F = Simd<float>::Vec;

BOA_INLINE int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// Eight elements of a row of A or B.
BOA_INLINE F loadEight(const float *p) { return load(p); }
BOA_INLINE F loadEight(const uint16_t *p) {
  typedef uint16_t Half __attribute__((vector_size(16), aligned(2)));
  typedef uint32_t Wide __attribute__((vector_size(32)));
  Wide wide = __builtin_convertvector(*reinterpret_cast<const Half *>(p), Wide);
  return (F)(wide << 16);
}
BOA_INLINE float loadOne(const float *p) { return *p; }
BOA_INLINE float loadOne(const uint16_t *p) {
  union {
    uint32_t bits;
    float value;
  } u = {static_cast<uint32_t>(*p) << 16};
  return u.value;
}

/// A panel of kTileM rows: to[x][i] = op(A)(i, x) for x < k; rows past `count` are
/// zero. Vectors stored 6 apart overlap: the block needs two elements more.
template <typename T>
void packA(const T *a, int64_t lda, bool transpose, int64_t count, int64_t k, float *to) {
  int64_t x = 0;
  if (count == kTileM && !transpose) {
    for (; x + kLanes <= k; x += kLanes) {
      F square[kLanes];
      for (int64_t i = 0; i < kTileM; ++i)
        square[i] = loadEight(a + i * lda + x);
      square[6] = square[7] = F{};
      transposeSquare(square);
      for (int64_t i = 0; i < kLanes; ++i)
        store(to + (x + i) * kTileM, square[i]);
    }
  }
  for (; x < k; ++x)
    for (int64_t i = 0; i < kTileM; ++i)
      to[x * kTileM + i] =
          i < count ? loadOne(transpose ? a + x * lda + i : a + i * lda + x) : 0.0f;
}

/// Packs the panels of A from `a` on that hold m rows, as packPanels does.
template <typename T>
void packPanelsA(const T *a, int64_t lda, bool transpose, int64_t m, int64_t k, float *to) {
  constexpr int64_t kStep = kAbreast * kTileM;
  int64_t i = 0;
  if (transpose)
    for (; i + kStep <= m; i += kStep) {
      // The last row apart: it may end where the matrix does, and the panel.
      for (int64_t x = 0; x + 1 < k; ++x)
        for (int64_t panel = i; panel < i + kStep; panel += kTileM)
          store(to + panel * k + x * kTileM, loadEight(a + x * lda + panel));
      for (int64_t panel = i; panel < i + kStep; panel += kTileM)
        packA(a + (k - 1) * lda + panel, lda, true, kTileM, 1, to + panel * k + (k - 1) * kTileM);
    }
  for (; i < m; i += kTileM)
    packA(a + i * (transpose ? 1 : lda), lda, transpose, lesser(kTileM, m - i), k, to + i * k);
}

/// A panel of kTileN columns: to[x][j] = op(B)(x, j) for x < k; columns past `count`
/// are zero.
template <typename T>
void packB(const T *b, int64_t ldb, bool transpose, int64_t count, int64_t k, float *to) {
  int64_t x = 0;
  if (count == kTileN && !transpose) {
    for (; x < k; ++x) {
      store(to + x * kTileN, loadEight(b + x * ldb));
      store(to + x * kTileN + kLanes, loadEight(b + x * ldb + kLanes));
    }
  } else if (count == kTileN) {
    for (; x + kLanes <= k; x += kLanes)
      for (int64_t half = 0; half < kTileN; half += kLanes) {
        F square[kLanes];
        for (int64_t j = 0; j < kLanes; ++j)
          square[j] = loadEight(b + (half + j) * ldb + x);
        transposeSquare(square);
        for (int64_t i = 0; i < kLanes; ++i)
          store(to + (x + i) * kTileN + half, square[i]);
      }
  }
  for (; x < k; ++x)
    for (int64_t j = 0; j < kTileN; ++j)
      to[x * kTileN + j] =
          j < count ? loadOne(transpose ? b + j * ldb + x : b + x * ldb + j) : 0.0f;
}

/// Packs the panels of B from `b` on that hold n columns. Rows are read along over
/// several panels, which the processor's prefetch follows.
template <typename T>
void packPanels(const T *b, int64_t ldb, bool transpose, int64_t n, int64_t k, float *to) {
  int64_t j = 0;
  if (!transpose)
    for (; j + kAbreast * kTileN <= n; j += kAbreast * kTileN)
      for (int64_t x = 0; x < k; ++x)
        for (int64_t panel = j; panel < j + kAbreast * kTileN; panel += kTileN) {
          const T *from = b + x * ldb + panel;
          float *row = to + panel * k + x * kTileN;
          store(row, loadEight(from));
          store(row + kLanes, loadEight(from + kLanes));
        }
  for (; j < n; j += kTileN)
    packB(b + j * (transpose ? ldb : 1), ldb, transpose, lesser(kTileN, n - j), k, to + j * k);
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// C[6, 16] = (add ? C : 0) + bias + the product of a panel of A and one of B.
BOA_INLINE void microKernel(int64_t k, const float *a, const float *b, const float *bias, float *c,
                            int64_t ldc, bool add) {
  F sum[kTileM][2];
  for (int i = 0; i < kTileM; ++i) {
    __builtin_prefetch(c + i * ldc);
    __builtin_prefetch(c + i * ldc + kTileN - 1);
    sum[i][0] = bias ? load(bias) : F{};
    sum[i][1] = bias ? load(bias + kLanes) : F{};
  }
#pragma clang loop unroll_count(4)
  for (int64_t x = 0; x < k; ++x) {
    F b0 = load(b), b1 = load(b + kLanes);
    for (int i = 0; i < kTileM; ++i) {
      F scalar = splat(a[i]);
      sum[i][0] += scalar * b0;
      sum[i][1] += scalar * b1;
    }
    a += kTileM;
    b += kTileN;
  }
  for (int i = 0; i < kTileM; ++i)
    for (int j = 0; j < 2; ++j) {
      float *at = c + i * ldc + j * kLanes;
      store(at, add ? load(at) + sum[i][j] : sum[i][j]);
    }
}

/// The same for a tile at an edge of C, by way of a whole one.
void edgeKernel(int64_t k, const float *a, const float *b, const float *bias, float *c, int64_t ldc,
                bool add, int64_t rows, int64_t columns) {
  float tile[kTileM * kTileN], wide[kTileN] = {};
  if (bias)
    for (int64_t j = 0; j < columns; ++j)
      wide[j] = bias[j];
  microKernel(k, a, b, wide, tile, kTileN, false);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float sum = tile[i * kTileN + j];
      c[i * ldc + j] = add ? c[i * ldc + j] + sum : sum;
    }
}

/// A packed block of A times a packed block of B.
void macroKernel(int64_t m, int64_t n, int64_t k, const float *a, const float *b, const float *bias,
                 float *c, int64_t ldc, bool add) {
  for (int64_t j = 0; j < n; j += kTileN)
    for (int64_t i = 0; i < m; i += kTileM) {
      const float *ap = a + i * k, *bp = b + j * k, *biasp = bias ? bias + j : nullptr;
      float *ct = c + i * ldc + j;
      if (i + kTileM <= m && j + kTileN <= n)
        microKernel(k, ap, bp, biasp, ct, ldc, add);
      else
        edgeKernel(k, ap, bp, biasp, ct, ldc, add, lesser(kTileM, m - i), lesser(kTileN, n - j));
    }
}

template <typename A, typename B> void product(const boa::GemmBlock<A, B> &g, float *scratch) {
  float *packedA = scratch;
  float *packedB = scratch + kPackedA;
  for (int64_t j0 = 0; j0 < g.n; j0 += kColumns) {
    const int64_t n = lesser(kColumns, g.n - j0);
    for (int64_t x0 = 0; x0 < g.k; x0 += kDeep) {
      const int64_t k = lesser(kDeep, g.k - x0);
      packPanels(g.transpose_b ? g.b + j0 * g.ldb + x0 : g.b + x0 * g.ldb + j0, g.ldb,
                 g.transpose_b, n, k, packedB);
      const float *bias = g.bias && x0 == 0 ? g.bias + j0 : nullptr;
      for (int64_t i0 = 0; i0 < g.m; i0 += kRows) {
        const int64_t m = lesser(kRows, g.m - i0);
        packPanelsA(g.transpose_a ? g.a + x0 * g.lda + i0 : g.a + i0 * g.lda + x0, g.lda,
                    g.transpose_a, m, k, packedA);
        macroKernel(m, n, k, packedA, packedB, bias, g.c + i0 * g.ldc + j0, g.ldc,
                    g.accumulate || x0 != 0);
      }
    }
  }
}

} // namespace

void boa::gemmBlockAvx2(const GemmBlock<float, float> &block, float *scratch) {
  product(block, scratch);
}
void boa::gemmBlockAvx2(const GemmBlock<float, uint16_t> &block, float *scratch) {
  product(block, scratch);
}
void boa::gemmBlockAvx2(const GemmBlock<uint16_t, uint16_t> &block, float *scratch) {
  product(block, scratch);
}
