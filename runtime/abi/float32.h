//===- float32.h - Numbers that f32 holds -----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Specs and IR hold constants in f64; kernels compute with them in f32. A constant that f32 makes
// infinite or 0 would change the model without a word.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_FLOAT32_H
#define BOA_RUNTIME_ABI_FLOAT32_H

#include <cfloat>
#include <cmath>

namespace boa {

/// For messages.
inline constexpr char kLeastFloat32[] = "1.18e-38", kMostFloat32[] = "3.4e38";

/// Whether f32 holds the number within its precision: 0 and normal numbers, not infinities and NaN.
inline bool IsFloat32(double value) {
  return value == 0 || (std::abs(value) >= FLT_MIN && std::abs(value) <= FLT_MAX);
}

} // namespace boa

#endif // BOA_RUNTIME_ABI_FLOAT32_H
