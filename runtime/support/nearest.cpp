//===- nearest.cpp - The word that was meant ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/nearest.h"

#include <algorithm>

namespace boa {

/// Levenshtein distance, with a swap of neighbours counted as one edit.
static size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

std::string NearestWord(std::string_view word, const std::vector<std::string> &words) {
  constexpr size_t kMaxLength = 64, kMaxWords = 1000;
  std::string best;
  if (word.size() > kMaxLength)
    return best;
  // A third of the letters may be wrong; beyond that it is another word.
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (size_t i = 0; i < std::min(words.size(), kMaxWords); ++i) {
    const std::string &candidate = words[i];
    if (candidate.size() > kMaxLength)
      continue;
    size_t edits = Distance(word, candidate);
    // A replacement of the whole word is no correction.
    if (edits < least && edits < std::max(word.size(), candidate.size())) {
      least = edits;
      best = candidate;
    }
  }
  return best;
}

} // namespace boa
