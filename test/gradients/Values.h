//===- Values.h - Tensors of any element type as doubles --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tests of kernels share that needs no compiler: it is also on a machine where a GPU
// is tried (test/gpu).
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GRADIENTS_VALUES_H
#define BOA_TEST_GRADIENTS_VALUES_H

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace boa::testing {

using Values = std::vector<double>;

struct Operand {
  std::vector<int64_t> shape;
  std::string element; // "f32", "f64", "bf16", "i32"
  int64_t size() const;
};

int64_t bytesOf(const Operand &operand);

/// Values to memory and back, rounded to the operand's element type.
void store(const Operand &operand, const Values &values, void *to);
Values load(const Operand &operand, const void *from);

inline float fromBfloat(uint16_t value) {
  uint32_t bits = uint32_t(value) << 16;
  float single;
  std::memcpy(&single, &bits, 4);
  return single;
}

/// To nearest, of two the even one. NaN stays.
inline uint16_t toBfloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (value != value)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Reproducible values from a normal distribution.
Values randomValues(int64_t count, uint64_t seed);

/// The values as a tensor of this element type holds them.
Values roundTo(const Operand &operand, const Values &values);

/// One rounding to bf16 is by 2^-8 of a value at most.
constexpr double kRounding = 1.0 / 256;

/// Largest |a - b| / max(1, |b|).
double largestError(const Values &a, const Values &b);

double squareOf(const Values &values);
/// The norm of a - b in terms of that of b.
double relativeError(const Values &a, const Values &b);

/// `text` with every `ELT` replaced by the element type, and every `WIDE` by it or, for
/// bf16, by f32.
std::string withElement(std::string text, const std::string &element);

} // namespace boa::testing

#endif // BOA_TEST_GRADIENTS_VALUES_H
