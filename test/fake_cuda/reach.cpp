//===- reach.cpp - Device memory, reached by no stream ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/context.h"

namespace boa::fake {

CUresult Reach(const char *what, const DeviceRange &range, char *&data) {
  Context *context = nullptr;
  if (CUresult error = FindContext(what, context))
    return error;
  DeviceMemory &memory = *context->memory;
  if (!memory.ranges.Find(range.address, range.bytes).number)
    return Report(CUDA_ERROR_INVALID_VALUE, std::string(what) + ": " + range.name + ": " +
                                                memory.Outside(range.address, range.bytes));
  data = memory.Data(range.address);
  return CUDA_SUCCESS;
}

} // namespace boa::fake
