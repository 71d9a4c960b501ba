//===- symbols.h - Functions for compiled code -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A JIT-compiled program finds the runtime's functions in this table, and nowhere else in
// the process.
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
