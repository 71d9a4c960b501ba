//===- kernels.h - Packed kernels, on the GPU and on the CPU ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What boa-pack-kernels packed runs here: each kernel on the GPU, in f32 and bf16, and the
// same in f64 on the CPU, with the same arguments. A GPU that a kernel has upset is of no more
// use to its process: cases run in a child, and the next in another where one died.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GPU_KERNELS_H
#define BOA_TEST_GPU_KERNELS_H

#include <string>

namespace boa::gputest {

/// Prints a line for each element type, and one for each kernel that is wrong or did not run.
/// 1 if there are such.
int RunKernels(const std::string &directory);

} // namespace boa::gputest

#endif // BOA_TEST_GPU_KERNELS_H
