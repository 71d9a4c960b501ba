//===- gemm_avx512.cpp - Matrix products, tiles of 8 by 48 -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/gemm_f32.h"

using Kernel = F32Kernel<16, 8, 3>;

void boa::ComputeGemmBlockAvx512(const GemmF32 &block, float *scratch) {
  MultiplyBlock<Kernel>(block, scratch);
}
void boa::ComputeGemmBlockAvx512(const GemmBf16 &block, float *scratch) {
  MultiplyBlock<Kernel>(block, scratch);
}
void boa::ComputeGemmBlockAvx512(const GemmBf16Bf16 &block, float *scratch) {
  MultiplyBlock<Kernel>(block, scratch);
}
void boa::ComputeGemmBlockAvx512(const GemmAllBf16 &block, float *scratch) {
  MultiplyBlock<Kernel>(block, scratch);
}
