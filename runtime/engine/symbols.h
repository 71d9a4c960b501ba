//===- symbols.h - What compiled code may call ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table through which a JIT-compiled program is bound to the runtime: no
// symbol is looked for in the process at large.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_SYMBOLS_H
#define BOA_RUNTIME_ENGINE_SYMBOLS_H

#include <vector>

namespace boa {

struct RuntimeSymbol {
  const char *name;
  void *address;
};

/// The C ABI (runtime/abi/abi.h), and what kernels call: runtime/kernels, and for CUDA
/// runtime/abi/cuda_calls.h.
const std::vector<RuntimeSymbol> &RuntimeSymbols();

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_SYMBOLS_H
