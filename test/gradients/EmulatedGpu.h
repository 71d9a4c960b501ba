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

#include <string>

namespace boa::testing {

/// Ends the process with these words.
[[noreturn]] void failTest(const std::string &message);

/// What kernels call by this name; null: the runtime's, or there is no emulator. As their queue
/// they are given the module of their boa_device_image.
void *findEmulated(const std::string &name);

} // namespace boa::testing

#endif // BOA_TEST_GRADIENTS_EMULATEDGPU_H
