//===- emulated_sums.h - Checksums on the fake GPU, for tests ---*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_CUDA_EMULATED_SUMS_H
#define BOA_TEST_RUNTIME_CUDA_EMULATED_SUMS_H

#include "test/fake_cuda/emulated.h"
#include "test/runtime/lanes.h"

namespace boa {

/// As runtime/abi/cuda_sums.h says; the first thread does a block's work.
template <int64_t kBytes> void EmulatedSums(boa_emulated_thread *thread, void *const *args) {
  if (thread->thread[0] != 0)
    return;
  auto at = [&](int i) { return *static_cast<uint64_t *const *>(args[i]); };
  const int64_t chunk = thread->block[0];
  PlainLanes(at(0) + chunk * kBytes / int64_t(sizeof(uint64_t)), kBytes, at(1),
             at(2) + chunk * kChecksumLanes);
}

} // namespace boa

#endif // BOA_TEST_RUNTIME_CUDA_EMULATED_SUMS_H
