//===- symbols.cpp --------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/symbols.h"

#include "runtime/abi/abi.h"
#include "runtime/abi/cuda_calls.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/cached_attention.h"
#include "runtime/kernels/gemm.h"

#include <cstring>

/// LLVM calls this function to round an f32 to bf16 on processors without such an instruction.
/// The result is in the lower half of the register that returns an f32. Compilers have different
/// names for such a type, so the declaration says float.
extern "C" float __truncsfbf2(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits = value == value ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : bits >> 16 | 0x40;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

namespace boa {

const std::vector<RuntimeSymbol> &RuntimeSymbols() {
#define SYMBOL(name)                                                                               \
  {                                                                                                \
    #name, reinterpret_cast<void *>(&name)                                                         \
  }
  static const std::vector<RuntimeSymbol> symbols{
#define BOA_CALL(RESULT, NAME, PARAMETERS, DONE) SYMBOL(boa_rt_##NAME),
#include "runtime/abi/calls.def"
#define BOA_LIBRARY_CALL(KIND, NAME) SYMBOL(NAME),
#include "runtime/kernels/library.def"
      SYMBOL(boa_rt_parallel_for), SYMBOL(__truncsfbf2),       SYMBOL(boa_cuda_launch),
      SYMBOL(boa_cuda_gemm),       SYMBOL(boa_cuda_attention), SYMBOL(boa_cuda_attention_grad),
  };
#undef SYMBOL
  return symbols;
}

} // namespace boa
