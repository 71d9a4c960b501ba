//===- share.h - A device that processes share ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_SHARE_H
#define BOA_TEST_FAKE_CUDA_SHARE_H

#include <cstdint>

namespace boa::fake {

/// Says to other processes with the same BOA_FAKE_CUDA_SHARE, a file, what this one uses of the
/// device's memory; what they use. Nothing without that file.
uint64_t UsedByOthers(uint64_t used);

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_SHARE_H
