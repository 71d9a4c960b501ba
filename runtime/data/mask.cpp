//===- mask.cpp - Sequences with masked tokens ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/mask.h"

#include "runtime/support/random.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace boa {

void MaskTokens(const MaskOptions &options, uint64_t key, std::vector<int64_t> positions,
                int64_t context, int32_t *tokens, int32_t *targets) {
  std::fill_n(targets, context, -1);
  if (positions.empty())
    return;
  const auto most = int64_t(positions.size());
  const int64_t count = std::clamp<int64_t>(std::llround(options.probability * most), 1, most);
  // The beginning of a shuffle (Fisher and Yates).
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t other = i + Below(Hash({key, static_cast<uint64_t>(i), 0}), most - i);
    std::swap(positions[i], positions[other]);
    targets[positions[i]] = tokens[positions[i]];
  }
  for (int64_t i = 0; i < context; ++i) {
    const uint64_t position = i;
    const double kind = Unit(Hash({key, position, 1}));
    if (targets[i] == -1 || kind >= 0.9)
      continue;
    tokens[i] =
        kind < 0.8 ? options.token : int64_t(Below(Hash({key, position, 2}), options.tokens));
  }
}

} // namespace boa
