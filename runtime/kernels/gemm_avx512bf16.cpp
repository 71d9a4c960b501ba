//===- gemm_avx512bf16.cpp - Matrix products by AVX-512's bf16 ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles of 8 by 48. The instruction takes numbers below f32's least normal one for
// zero.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/gemm_loops.h"
#include "runtime/kernels/gemm_pairs.h"

#include <immintrin.h>

namespace {

struct Kernel {
  static constexpr int64_t kLanes = 16, kTileM = 8, kTileN = 48;
  static constexpr int64_t kDeep = 768;    // a panel of B: 72 KiB, in L2
  static constexpr int64_t kRows = 384;    // a block of A: 576 KiB
  static constexpr int64_t kColumns = 768; // a block of B: 1.1 MiB
  using Packed = Pair;

  static constexpr int64_t Depth(int64_t k) { return (k + 1) / 2; }

  static void PackA(const uint16_t *a, int64_t lda, bool transpose, int64_t m, int64_t k,
                    Pair *to) {
    PackPanels<kTileM, kTileM>(a, lda, !transpose, m, k, to);
  }
  static void PackB(const uint16_t *b, int64_t ldb, bool transpose, int64_t n, int64_t k,
                    Pair *to) {
    PackPanels<kTileN, kLanes>(b, ldb, transpose, n, k, to);
  }

  template <int kVectors>
  static BOA_INLINE void MultiplyPanels(int64_t pairs, const Pair *a, const Pair *b, float *sums) {
    __m512 sum[kTileM][kVectors] = {};
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
      for (int j = 0; j < kVectors; ++j)
        _mm512_storeu_ps(sums + i * kTileN + j * kLanes, sum[i][j]);
  }

  static BOA_INLINE void Multiply(int64_t pairs, int64_t, int64_t columns, const Pair *a,
                                  const Pair *b, float *sums) {
    if (columns > 2 * kLanes)
      MultiplyPanels<3>(pairs, a, b, sums);
    else if (columns > kLanes)
      MultiplyPanels<2>(pairs, a, b, sums);
    else
      MultiplyPanels<1>(pairs, a, b, sums);
  }
};

} // namespace

void boa::ComputeGemmBlockAvx512Bf16(const GemmBf16Bf16 &block, float *scratch) {
  MultiplyBlock<Kernel>(block, scratch);
}
void boa::ComputeGemmBlockAvx512Bf16(const GemmAllBf16 &block, float *scratch) {
  MultiplyBlock<Kernel>(block, scratch);
}
