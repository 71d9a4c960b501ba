//===- NoGpu.cpp - Where kernels of a GPU are not emulated ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gradients/EmulatedGpu.h"

void *boa::testing::findEmulated(const std::string &) { return nullptr; }
