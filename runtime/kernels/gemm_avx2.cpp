//===- gemm_avx2.cpp - Matrix products, tiles of 6 by 16 -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/gemm_f32.h"
#include "runtime/kernels/gemm_row.h"

using Kernel = F32Kernel<8, 6, 2>;

namespace {
template <typename Block> void MultiplyAny(const Block &block, float *scratch) {
  if (IsRow(block))
    MultiplyRow(block, scratch);
  else
    MultiplyBlock<Kernel>(block, scratch);
}
} // namespace

void boa::ComputeGemmBlockAvx2(const GemmF32 &block, float *scratch) {
  MultiplyAny(block, scratch);
}
void boa::ComputeGemmBlockAvx2(const GemmBf16 &block, float *scratch) {
  MultiplyAny(block, scratch);
}
void boa::ComputeGemmBlockAvx2(const GemmBf16Bf16 &block, float *scratch) {
  MultiplyAny(block, scratch);
}
void boa::ComputeGemmBlockAvx2(const GemmAllBf16 &block, float *scratch) {
  MultiplyAny(block, scratch);
}
