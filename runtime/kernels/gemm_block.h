//===- gemm_block.h - One thread's block of a matrix product ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_GEMM_BLOCK_H
#define BOA_RUNTIME_KERNELS_GEMM_BLOCK_H

#include <stdint.h>

namespace boa {

/// One thread's part of boa_gemm_*: C in f32 or f64, A and B in the same or in bf16.
template <typename A, typename B, typename C = float> struct GemmBlock {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  const A *a;
  int64_t lda;
  const B *b;
  int64_t ldb;
  const C *bias;
  bool accumulate;
  C *c;
  int64_t ldc;
};

/// Floats of scratch that a block may use, 64-byte aligned.
constexpr int64_t kGemmScratch = 1 << 20;

/// Needs AVX2 and FMA.
void gemmBlockAvx2(const GemmBlock<float, float> &block, float *scratch);
void gemmBlockAvx2(const GemmBlock<float, uint16_t> &block, float *scratch);
void gemmBlockAvx2(const GemmBlock<uint16_t, uint16_t> &block, float *scratch);

/// Needs AVX-512 with F, BW, DQ, VL and BF16.
void gemmBlockAvx512Bf16(const GemmBlock<uint16_t, uint16_t> &block, float *scratch);

} // namespace boa

#endif // BOA_RUNTIME_KERNELS_GEMM_BLOCK_H
