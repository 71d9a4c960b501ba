//===- EmulatedGpu.h - A GPU that does what it is told at once --*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stands in for runtime/device/cuda: a kernel that is compiled for a GPU calls these, and
// launches and products are over when the call returns. The emulator of launches knows
// x86-64 alone; on other processors NoGpu.cpp says that there is none.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GRADIENTS_EMULATEDGPU_H
#define BOA_TEST_GRADIENTS_EMULATEDGPU_H

#include <cstdint>
#include <cstring>
#include <string>

namespace boa::testing {

/// Ends the process with these words.
[[noreturn]] void failTest(const std::string &message);

/// What kernels call by this name; null: the runtime's, or there is no emulator. As their queue
/// they are given the module of their boa_device_image.
void *findEmulated(const std::string &name);

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

} // namespace boa::testing

#endif // BOA_TEST_GRADIENTS_EMULATEDGPU_H
