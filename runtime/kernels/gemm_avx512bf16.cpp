//===- gemm_avx512bf16.cpp - One thread's block of a product of bf16 ------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The scheme of gemm_avx2.cpp with pairs for elements: the processor multiplies two
// neighbours in k at a time and adds both to one f32. So k is packed by twos, an odd
// one with a zero beside it, and a tile of C is 8 by 48. The instruction takes
// numbers below f32's least normal one for zero.
//
// Blocks of k are even: which elements are a pair, and so the bits of C, does not
// depend on where C is cut.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/gemm_block.h"
#include "runtime/kernels/simd.h"

#include <immintrin.h>

namespace {

constexpr int64_t kTileM = 8, kTileN = 48, kLanes = 16;
constexpr int64_t kEight = 8;      // what is packed together
constexpr int64_t kDeep = 384;     // a panel of B: 36 KiB
constexpr int64_t kRows = 384;     // a block of A: 288 KiB
constexpr int64_t kColumns = 3072; // a block of B: 2.25 MiB
constexpr int64_t kAbreast = 8;    // panels that are packed together

/// Two elements side by side in k, the first in the lower half.
using Pair = uint32_t;

constexpr int64_t kPackedA = kRows * kDeep / 2, kPackedB = kColumns * kDeep / 2;
static_assert(kDeep % 2 == 0 && kRows % kTileM == 0 && kColumns % kTileN == 0);
static_assert(kPackedA + kPackedB <= boa::kGemmScratch);

BOA_INLINE int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// The pairs of eight columns of two rows; no second row is one of zeros.
BOA_INLINE void pairRows(const uint16_t *first, const uint16_t *second, Pair *to) {
  typedef uint16_t Half __attribute__((vector_size(16), aligned(2)));
  typedef uint32_t Wide __attribute__((vector_size(32)));
  typedef uint32_t Loose __attribute__((vector_size(32), aligned(4)));
  Wide pairs = __builtin_convertvector(*reinterpret_cast<const Half *>(first), Wide);
  if (second)
    pairs |= __builtin_convertvector(*reinterpret_cast<const Half *>(second), Wide) << 16;
  *reinterpret_cast<Loose *>(to) = pairs;
}

/// Eight pairs of a row, moved as if they were floats; a pair may begin at any element.
BOA_INLINE Simd<float>::Vec loadPairs(const uint16_t *p) {
  typedef uint16_t Pairs __attribute__((vector_size(32), aligned(2)));
  Pairs pairs = *reinterpret_cast<const Pairs *>(p);
  return (Simd<float>::Vec)pairs;
}

/// A panel `width` wide, a multiple of eight: to[y][i] = elements (i, 2y) and (i, 2y + 1)
/// for 2y < k; zeros past `count` and past k. With `along`, i is a row of `from`;
/// otherwise a column.
void packPanel(const uint16_t *from, int64_t ld, bool along, int64_t count, int64_t width,
               int64_t k, Pair *to) {
  for (int64_t i0 = 0; i0 < width; i0 += kEight) {
    int64_t x = 0;
    if (i0 + kEight <= count && along)
      for (; x + 2 * kEight <= k; x += 2 * kEight) {
        Simd<float>::Vec square[kEight];
        for (int64_t i = 0; i < kEight; ++i)
          square[i] = loadPairs(from + (i0 + i) * ld + x);
        transposeSquare(square);
        for (int64_t y = 0; y < kEight; ++y)
          store(reinterpret_cast<float *>(to + (x / 2 + y) * width + i0), square[y]);
      }
    else if (i0 + kEight <= count)
      for (; x < k; x += 2)
        pairRows(from + x * ld + i0, x + 1 < k ? from + (x + 1) * ld + i0 : nullptr,
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
void packPanels(const uint16_t *from, int64_t ld, bool along, int64_t count, int64_t k, Pair *to) {
  const int64_t pairs = (k + 1) / 2;
  int64_t i = 0;
  if (!along)
    for (; i + kAbreast * kWidth <= count; i += kAbreast * kWidth)
      for (int64_t y = 0; y < pairs; ++y) {
        const uint16_t *first = from + 2 * y * ld;
        const uint16_t *second = 2 * y + 1 < k ? first + ld : nullptr;
        for (int64_t panel = i; panel < i + kAbreast * kWidth; panel += kWidth)
          for (int64_t j = 0; j < kWidth; j += kEight)
            pairRows(first + panel + j, second ? second + panel + j : nullptr,
                     to + panel * pairs + y * kWidth + j);
      }
  for (; i < count; i += kWidth) {
    int64_t rest = lesser(kWidth, count - i);
    packPanel(from + i * (along ? ld : 1), ld, along, rest, (rest + kLeast - 1) / kLeast * kLeast,
              k, to + i * pairs);
  }
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// C[8, 16 kVectors] = (add ? C : 0) + bias + the product of a panel of A and one of B.
template <int kVectors>
BOA_INLINE void microKernel(int64_t pairs, const Pair *a, const Pair *b, const float *bias,
                            float *c, int64_t ldc, bool add) {
  __m512 sum[kTileM][kVectors];
  for (int i = 0; i < kTileM; ++i)
    for (int j = 0; j < kVectors; ++j) {
      __builtin_prefetch(c + i * ldc + j * kLanes);
      sum[i][j] = _mm512_loadu_ps(bias + j * kLanes);
    }
#pragma clang loop unroll_count(2)
  for (int64_t y = 0; y < pairs; ++y) {
    __m512bh columns[kVectors];
    for (int j = 0; j < kVectors; ++j)
      columns[j] = (__m512bh)_mm512_loadu_si512(b + j * kLanes);
    for (int i = 0; i < kTileM; ++i) {
      __m512bh row = (__m512bh)_mm512_set1_epi32(static_cast<int>(a[i]));
      for (int j = 0; j < kVectors; ++j)
        sum[i][j] = _mm512_dpbf16_ps(sum[i][j], row, columns[j]);
    }
    a += kTileM;
    b += kVectors * kLanes;
  }
  for (int i = 0; i < kTileM; ++i)
    for (int j = 0; j < kVectors; ++j) {
      float *at = c + i * ldc + j * kLanes;
      _mm512_storeu_ps(at, add ? _mm512_add_ps(_mm512_loadu_ps(at), sum[i][j]) : sum[i][j]);
    }
}

/// A panel of B times all panels of A; tiles at an edge of C by way of a whole one.
template <int kVectors>
void panelKernel(int64_t m, int64_t columns, int64_t pairs, const Pair *a, const Pair *b,
                 const float *bias, float *c, int64_t ldc, bool add) {
  constexpr int64_t kWidth = kVectors * kLanes;
  float tile[kTileM * kWidth], wide[kWidth] = {};
  for (int64_t j = 0; bias && j < columns; ++j)
    wide[j] = bias[j];
  for (int64_t i0 = 0; i0 < m; i0 += kTileM) {
    const int64_t rows = lesser(kTileM, m - i0);
    float *at = c + i0 * ldc;
    if (rows == kTileM && columns == kWidth) {
      microKernel<kVectors>(pairs, a + i0 * pairs, b, wide, at, ldc, add);
      continue;
    }
    microKernel<kVectors>(pairs, a + i0 * pairs, b, wide, tile, kWidth, false);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        float sum = tile[i * kWidth + j];
        at[i * ldc + j] = add ? at[i * ldc + j] + sum : sum;
      }
  }
}

/// A packed block of A times a packed block of B.
void macroKernel(int64_t m, int64_t n, int64_t pairs, const Pair *a, const Pair *b,
                 const float *bias, float *c, int64_t ldc, bool add) {
  for (int64_t j = 0; j < n; j += kTileN) {
    const int64_t columns = lesser(kTileN, n - j);
    auto kernel = columns > 2 * kLanes ? panelKernel<3>
                  : columns > kLanes   ? panelKernel<2>
                                       : panelKernel<1>;
    kernel(m, columns, pairs, a, b + j * pairs, bias ? bias + j : nullptr, c + j, ldc, add);
  }
}

} // namespace

void boa::gemmBlockAvx512Bf16(const GemmBlock<uint16_t, uint16_t> &g, float *scratch) {
  Pair *packedA = reinterpret_cast<Pair *>(scratch);
  Pair *packedB = packedA + kPackedA;
  for (int64_t j0 = 0; j0 < g.n; j0 += kColumns) {
    const int64_t n = lesser(kColumns, g.n - j0);
    for (int64_t x0 = 0; x0 < g.k; x0 += kDeep) {
      const int64_t k = lesser(kDeep, g.k - x0), pairs = (k + 1) / 2;
      packPanels<kTileN, kLanes>(g.transpose_b ? g.b + j0 * g.ldb + x0 : g.b + x0 * g.ldb + j0,
                                 g.ldb, g.transpose_b, n, k, packedB);
      const float *bias = g.bias && x0 == 0 ? g.bias + j0 : nullptr;
      for (int64_t i0 = 0; i0 < g.m; i0 += kRows) {
        const int64_t m = lesser(kRows, g.m - i0);
        packPanels<kTileM, kTileM>(g.transpose_a ? g.a + x0 * g.lda + i0 : g.a + i0 * g.lda + x0,
                                   g.lda, !g.transpose_a, m, k, packedA);
        macroKernel(m, n, pairs, packedA, packedB, bias, g.c + i0 * g.ldc + j0, g.ldc,
                    g.accumulate || x0 != 0);
      }
    }
  }
}
