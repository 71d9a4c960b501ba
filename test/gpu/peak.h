//===- peak.h - What the GPU can do at best ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GPU_PEAK_H
#define BOA_TEST_GPU_PEAK_H

#include <string>

namespace boa::gputest {

/// Prints for f32 and bf16 the rate of the fastest product of square matrices by cuBLASLt, and
/// what the context and the library took of the device's memory. 1 with a line that says why if
/// that cannot be had.
int MeasurePeak();

/// Runs a command and writes to `file` how much device memory it took at most, in bytes,
/// context and libraries included: nothing if there is no GPU to ask. Its exit status.
int Watch(const std::string &file, char **command);

} // namespace boa::gputest

#endif // BOA_TEST_GPU_PEAK_H
