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

/// One thread's part of boa_gemm_*: B in f32, f64 or bf16 (T is the type of the rest).
template <typename T, typename B> struct GemmBlock {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  const T *a;
  int64_t lda;
  const B *b;
  int64_t ldb;
  const T *bias;
  bool accumulate;
  T *c;
  int64_t ldc;
};

/// Floats of scratch that a block needs, 64-byte aligned.
int64_t gemmScratchAvx2();

/// Needs AVX2 and FMA.
void gemmBlockAvx2(const GemmBlock<float, float> &block, float *scratch);
void gemmBlockAvx2(const GemmBlock<float, uint16_t> &block, float *scratch);

} // namespace boa

#endif // BOA_RUNTIME_KERNELS_GEMM_BLOCK_H
