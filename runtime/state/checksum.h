//===- checksum.h - Checksums of chunks and of small files ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_CHECKSUM_H
#define BOA_RUNTIME_STATE_CHECKSUM_H

#include <cstdint>

namespace boa {

/// XXH3, 64 bits: as fast as memory on one thread of x86-64 (SSE2, AVX2) and
/// ARM (NEON), and the same value on each. Pure; from any thread.
uint64_t Checksum(const void *data, int64_t bytes);

/// The ways to it: for any processor, and for those with AVX2 (on x86-64).
uint64_t ChecksumBaseline(const void *data, int64_t bytes);
uint64_t ChecksumAvx2(const void *data, int64_t bytes);

} // namespace boa

#endif // BOA_RUNTIME_STATE_CHECKSUM_H
