//===- checksum.cpp - Checksums of chunks and of small files --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// xxHash's XXH3, for what every processor of the target has, and for AVX2 in
// checksum_avx2.cpp; the processor decides. The values are the same.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/checksum.h"

// All of xxHash in this file: no library to link.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace boa {

uint64_t ChecksumBaseline(const void *data, int64_t bytes) {
  return XXH3_64bits(data, size_t(bytes));
}

uint64_t Checksum(const void *data, int64_t bytes) {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2");
  if (avx2)
    return ChecksumAvx2(data, bytes);
#endif
  return ChecksumBaseline(data, bytes);
}

} // namespace boa
