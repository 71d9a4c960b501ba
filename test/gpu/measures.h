//===- measures.h - What is measured on a GPU -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each prints lines as it goes and returns an exit status: 1 where something of it was not
// measured, which a line says.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GPU_MEASURES_H
#define BOA_TEST_GPU_MEASURES_H

#include <string>

namespace boa::gputest {

/// Which GPU it is, by the driver alone, and whether it answers.
int ShowEnvironment();

} // namespace boa::gputest

#endif // BOA_TEST_GPU_MEASURES_H
