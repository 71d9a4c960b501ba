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

enum class Isa; // isa.h, which is not for files that are compiled for a processor

/// One thread's part of boa_gemm_*. Each of A, B and C is f32, f64 or bf16 (uint16_t).
template <typename A, typename B, typename C = float, typename Bias = float> struct GemmBlock {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  const A *a;
  int64_t lda;
  const B *b;
  int64_t ldb;
  const Bias *bias;
  bool accumulate;
  C *c;
  int64_t ldc;
  /// B as the kernel packs it, or null, with the column at which the block begins and the number of
  /// all columns. With `packs` the block is no product: it packs these columns of B.
  void *panels = nullptr;
  int64_t first_column = 0, all_columns = 0;
  bool packs = false;
};

using GemmF32 = GemmBlock<float, float>;
using GemmBf16 = GemmBlock<float, uint16_t>;
using GemmBf16Bf16 = GemmBlock<uint16_t, uint16_t>;
using GemmAllBf16 = GemmBlock<uint16_t, uint16_t, uint16_t>;
using GemmF64 = GemmBlock<double, double, double, double>;

/// Floats of scratch that a block may use, 64-byte aligned.
constexpr int64_t kGemmScratch = 1 << 20;

/// Needs AVX2 and FMA.
void ComputeGemmBlockAvx2(const GemmF32 &, float *scratch);
void ComputeGemmBlockAvx2(const GemmBf16 &, float *scratch);
void ComputeGemmBlockAvx2(const GemmBf16Bf16 &, float *scratch);
void ComputeGemmBlockAvx2(const GemmAllBf16 &, float *scratch);

/// Needs AVX-512 with F, BW, DQ and VL.
void ComputeGemmBlockAvx512(const GemmF32 &, float *scratch);
void ComputeGemmBlockAvx512(const GemmBf16 &, float *scratch);
void ComputeGemmBlockAvx512(const GemmBf16Bf16 &, float *scratch);
void ComputeGemmBlockAvx512(const GemmAllBf16 &, float *scratch);

/// Needs AVX-512 as above and its BF16.
void ComputeGemmBlockAvx512Bf16(const GemmBf16Bf16 &, float *scratch);
void ComputeGemmBlockAvx512Bf16(const GemmAllBf16 &, float *scratch);

/// Needs AMX with BF16, granted by the system (isa.cpp), and AVX-512 as above.
void ComputeGemmBlockAmx(const GemmBf16Bf16 &, float *scratch);
void ComputeGemmBlockAmx(const GemmAllBf16 &, float *scratch);

/// The block by the kernel of an instruction set for its type, with this thread's scratch.
void ComputeGemmBlock(Isa, const GemmF32 &);
void ComputeGemmBlock(Isa, const GemmBf16 &);
void ComputeGemmBlock(Isa, const GemmBf16Bf16 &);
void ComputeGemmBlock(Isa, const GemmAllBf16 &);

} // namespace boa

#endif // BOA_RUNTIME_KERNELS_GEMM_BLOCK_H
