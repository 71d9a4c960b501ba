//===- checksum.cpp - Checksums of chunks and of small files --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/checksum.h"

// All of xxHash in this file: no library to link.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace boa {

uint64_t Checksum(const void *data, int64_t bytes) { return XXH3_64bits(data, size_t(bytes)); }

} // namespace boa
