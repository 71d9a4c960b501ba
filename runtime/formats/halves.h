//===- halves.h - Floats of sixteen bits ---------------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_FORMATS_HALVES_H
#define BOA_RUNTIME_FORMATS_HALVES_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace boa {

inline float FloatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline float FloatOfBf16(uint16_t half) { return FloatOfBits(static_cast<uint32_t>(half) << 16); }

inline float FloatOfF16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 31, mantissa = half & 1023;
  if (exponent == 31)
    return FloatOfBits(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0)
    return std::copysign(std::ldexp(static_cast<float>(mantissa), -24),
                         FloatOfBits(sign | 0x3f800000));
  return FloatOfBits(sign | (exponent + 112) << 23 | mantissa << 13);
}

} // namespace boa

#endif // BOA_RUNTIME_FORMATS_HALVES_H
