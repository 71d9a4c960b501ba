//===- order.cpp - The order of windows and of sources --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/order.h"

#include "runtime/support/random.h"

#include "absl/numeric/bits.h"

#include <utility>

namespace boa {
namespace {

enum OrderPurpose : uint64_t { kEpoch = 0x65706f6368, kPhase = 0x7068617365 };

} // namespace

/// A Feistel network permutes the numbers of an even count of bits. A result that is too large is
/// put in again until one fits (cycle walking): fewer than four times on average.
int64_t Permute(uint64_t key, int64_t position, int64_t count) {
  if (count <= 1)
    return 0;
  const int half = (absl::bit_width(uint64_t(count - 1)) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  constexpr uint64_t kRounds = 8;
  uint64_t value = uint64_t(position);
  do {
    uint64_t left = value >> half, right = value & mask;
    for (uint64_t round = 0; round < kRounds; ++round)
      left = std::exchange(right, left ^ (Hash({key, round, right}) & mask));
    value = (left << half) | right;
  } while (value >= uint64_t(count));
  return int64_t(value);
}

int64_t WindowAt(uint64_t seed, int64_t position, int64_t windows) {
  // Unsigned: a walk that begins outside of the windows might not end.
  const uint64_t number = uint64_t(position), count = uint64_t(windows);
  return Permute(Hash({kEpoch, seed, number / count}), int64_t(number % count), windows);
}

Mixture::Mixture(std::vector<int64_t> the_shares, uint64_t seed)
    : shares(std::move(the_shares)), left(shares.size()), phases(shares.size()) {
  int64_t sum = 0;
  for (size_t i = shares.size(); i-- > 0;) {
    left[i] = sum += shares[i];
    phases[i] = int64_t(Below(Hash({kPhase, seed, i}), uint64_t(sum)));
  }
}

/// Of the samples that the sources before it leave, those at which the multiples of the share pass
/// a whole number.
static int64_t Taken(int64_t samples, int64_t share, int64_t of, int64_t phase) {
  return int64_t((__int128{samples} * share + phase) / of);
}

Mixture::Place Mixture::At(int64_t sample) const {
  for (size_t i = 0; i + 1 < shares.size(); ++i) {
    const int64_t before = Taken(sample, shares[i], left[i], phases[i]);
    if (Taken(sample + 1, shares[i], left[i], phases[i]) > before)
      return {i, before};
    sample -= before;
  }
  return {shares.size() - 1, sample};
}

std::vector<int64_t> Mixture::Count(int64_t samples) const {
  std::vector<int64_t> counts(shares.size());
  for (size_t i = 0; i + 1 < shares.size(); ++i) {
    counts[i] = Taken(samples, shares[i], left[i], phases[i]);
    samples -= counts[i];
  }
  counts.back() = samples;
  return counts;
}

} // namespace boa
