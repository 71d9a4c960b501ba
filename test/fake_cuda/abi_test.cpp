//===- abi_test.cpp - The fake's functions against the runtime's table --*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// That it compiles is the test: what the runtime looks up is of the type that the fake
// gives it. test/runtime/cuda/abi_test.cpp compares that with the toolkit's headers.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/dnn_abi.h"
#include "runtime/device/cuda/driver.h"
#include "test/fake_cuda/dnn_abi.h"

#include <type_traits>

namespace boa::cuda {

#define BOA_AGREES(name, symbol, arguments)                                                        \
  static_assert(std::is_same_v<decltype(::symbol), Result arguments>);
BOA_CUDA_DRIVER_FUNCTIONS(BOA_AGREES)

#define BOA_AGREES_TOO(name, symbol, result, arguments)                                            \
  static_assert(std::is_same_v<decltype(::symbol), result arguments>);
BOA_CUDA_DNN_FUNCTIONS(BOA_AGREES_TOO)

} // namespace boa::cuda
