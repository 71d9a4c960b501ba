//===- checksum.h - Checksums of chunks and of small files ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_CHECKSUM_H
#define BOA_RUNTIME_STATE_CHECKSUM_H

#include "runtime/abi/sums.h"

#include "absl/strings/string_view.h"

#include <cstdint>
#include <string>

namespace boa {

/// XXH3, 64 bits: as fast as memory on one thread of x86-64 (SSE2, AVX2) and
/// ARM (NEON), and the same value on each. Pure; from any thread.
uint64_t Checksum(const void *data, int64_t bytes);

/// XXH3, 128 bits, in 32 hexadecimal digits: it names a file by its contents.
std::string NameOfContents(absl::string_view text);

/// The parts of the same checksum, for code that computes it elsewhere, over whole blocks. A
/// block is sixteen stripes of eight words, one for each lane. A block's addition to the lanes
/// depends on that block only. All lanes are mixed after each block except the last.
///
///   lane i of stripe s: x = word i ^ key;  low half of x * high half of x + word (i ^ 1)
///   key: ChecksumKeys()[i + s], of the last stripe of all ChecksumKeys()[i + kLastKeys]
///   mixed: (lane ^ lane >> 47 ^ ChecksumKeys()[i + kMixKeys]) * kChecksumPrime
///   at first: ChecksumKeys()[i + kFirstLanes]
const uint64_t (&ChecksumKeys())[kChecksumKeys];
/// The checksum of `bytes` bytes that gave these lanes.
uint64_t FinishChecksum(const uint64_t (&lanes)[kChecksumLanes], int64_t bytes);

/// Its implementations: for any processor, and for those with AVX2 (on x86-64).
uint64_t ChecksumBaseline(const void *data, int64_t bytes);
uint64_t ChecksumAvx2(const void *data, int64_t bytes);

} // namespace boa

#endif // BOA_RUNTIME_STATE_CHECKSUM_H
