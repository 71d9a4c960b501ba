//===- numbers.h - Numbers in the memory of a fake GPU ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_NUMBERS_H
#define BOA_TEST_FAKE_CUDA_NUMBERS_H

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace boa::fake {

/// Element `index` of bf16 or f32.
inline float Load(const char *data, size_t index, bool bf16) {
  uint32_t bits = 0;
  if (bf16)
    memcpy(reinterpret_cast<char *>(&bits) + 2, data + index * 2, 2);
  else
    memcpy(&bits, data + index * 4, 4);
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

/// To the nearest, ties to even; a NaN stays one.
inline void Store(float value, char *data, size_t index, bool bf16) {
  if (!bf16) {
    memcpy(data + index * 4, &value, 4);
    return;
  }
  uint32_t bits;
  memcpy(&bits, &value, 4);
  bits = value != value ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
  memcpy(data + index * 2, reinterpret_cast<char *>(&bits) + 2, 2);
}

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_NUMBERS_H
