//===- symbols.cpp --------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/symbols.h"

#include "runtime/abi.h"
#include "runtime/device/cuda/calls.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/gemm.h"

namespace boa {

const std::vector<RuntimeSymbol> &RuntimeSymbols() {
#define SYMBOL(name)                                                                               \
  {                                                                                                \
    #name, reinterpret_cast<void *>(&name)                                                         \
  }
  static const std::vector<RuntimeSymbol> symbols{
      SYMBOL(boa_rt_prefetch),        SYMBOL(boa_rt_copy),        SYMBOL(boa_rt_create),
      SYMBOL(boa_rt_offload),         SYMBOL(boa_rt_release),     SYMBOL(boa_rt_launch),
      SYMBOL(boa_rt_update),          SYMBOL(boa_rt_norm),        SYMBOL(boa_rt_norm_done),
      SYMBOL(boa_rt_parallel_for),    SYMBOL(boa_gemm_f32),       SYMBOL(boa_gemm_f64),
      SYMBOL(boa_gemm_bf16),          SYMBOL(boa_gemm_bf16_bf16), SYMBOL(boa_gemm_bf16_bf16_bf16),
      SYMBOL(boa_attention_f32),      SYMBOL(boa_attention_f64),  SYMBOL(boa_attention_grad_f32),
      SYMBOL(boa_attention_grad_f64), SYMBOL(boa_attention_bf16), SYMBOL(boa_attention_grad_bf16),
      SYMBOL(boa_cuda_launch),        SYMBOL(boa_cuda_gemm),
  };
#undef SYMBOL
  return symbols;
}

} // namespace boa
