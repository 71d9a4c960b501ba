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

#include "absl/strings/str_format.h"

#include <cstring>

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

std::string NameOfContents(absl::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

//===----------------------------------------------------------------------===//
// In parts
//===----------------------------------------------------------------------===//

static_assert(kChecksumPrime == XXH_PRIME32_1);
// A block takes as many stripes as keys, which begin eight bytes apart, lie in the secret.
static_assert(kChecksumStripes == (XXH_SECRET_DEFAULT_SIZE - XXH_STRIPE_LEN) / 8);

const uint64_t (&ChecksumKeys()) [kChecksumKeys] {
  struct Keys {
    uint64_t words[kChecksumKeys] = {};
    Keys() {
      constexpr uint64_t first[] = XXH3_INIT_ACC;
      static_assert(kLastKeys * 8 == XXH_SECRET_DEFAULT_SIZE);
      std::memcpy(words, XXH3_kSecret, kLastKeys * 8);
      std::memcpy(words + kLastKeys,
                  XXH3_kSecret + XXH_SECRET_DEFAULT_SIZE - XXH_STRIPE_LEN -
                      XXH_SECRET_LASTACC_START,
                  XXH_STRIPE_LEN);
      std::memcpy(words + kFirstLanes, first, sizeof(first));
    }
  };
  static const Keys keys;
  return keys.words;
}

uint64_t FinishChecksum(const uint64_t (&lanes)[kChecksumLanes], int64_t bytes) {
  return XXH3_mergeAccs(lanes, XXH3_kSecret + XXH_SECRET_MERGEACCS_START,
                        uint64_t(bytes) * XXH_PRIME64_1);
}

} // namespace boa
