//===- checksum_avx2.cpp - Checksums on processors with AVX2 --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled for AVX2. All of xxHash is static here: none of it can take the place of
// a function that other processors run.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace boa {

uint64_t ChecksumAvx2(const void *data, int64_t bytes) { return XXH3_64bits(data, size_t(bytes)); }

} // namespace boa
