//===- gemm_avx512.cpp - Matrix products, tiles of 8 by 48 -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/gemm_f32.h"
#include "runtime/kernels/gemm_row.h"

using Kernel = F32Kernel<16, 8, 3>;

namespace {
template <typename Block> void MultiplyAny(const Block &block, float *scratch) {
  if (IsRow(block))
    MultiplyRow(block, scratch);
  else
    MultiplyBlock<Kernel>(block, scratch);
}
} // namespace

void boa::ComputeGemmBlockAvx512(const GemmF32 &block, float *scratch) {
  MultiplyAny(block, scratch);
}
void boa::ComputeGemmBlockAvx512(const GemmBf16 &block, float *scratch) {
  MultiplyAny(block, scratch);
}
void boa::ComputeGemmBlockAvx512(const GemmBf16Bf16 &block, float *scratch) {
  MultiplyAny(block, scratch);
}
void boa::ComputeGemmBlockAvx512(const GemmAllBf16 &block, float *scratch) {
  MultiplyAny(block, scratch);
}
