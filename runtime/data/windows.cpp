//===- windows.cpp - Windows that have a target ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/windows.h"

#include <algorithm>

namespace boa {

void WindowSet::Count() {
  count = 0;
  before.clear();
  for (uint64_t word : words) {
    before.push_back(count);
    count += __builtin_popcountll(word);
  }
}

int64_t WindowSet::At(int64_t place) const {
  const auto word =
      size_t(std::upper_bound(before.begin(), before.end(), place) - before.begin()) - 1;
  uint64_t left = words[word];
  for (int64_t skip = place - before[word]; skip > 0; --skip)
    left &= left - 1; // without the lowest
  return int64_t(word) * 64 + __builtin_ctzll(left);
}

} // namespace boa
