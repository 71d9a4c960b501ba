//===- ranges.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/ranges.h"

#ifdef BOA_NVTX
#include <nvtx3/nvToolsExt.h>

void boa::cuda::InitializeRanges() { nvtxInitialize(nullptr); }
boa::cuda::Range::Range(const char *name) { nvtxRangePushA(name); }
boa::cuda::Range::~Range() { nvtxRangePop(); }
#else
void boa::cuda::InitializeRanges() {}
boa::cuda::Range::Range(const char *) {}
boa::cuda::Range::~Range() {}
#endif
