//===- bpe.cpp - Merging of pairs -----------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/bpe.h"

#include "absl/strings/string_view.h"

#include <algorithm>
#include <limits>

namespace boa {
namespace {

constexpr size_t kShort = 32;
constexpr int32_t kNoRank = std::numeric_limits<int32_t>::max();

/// A pair that may be merged, unless one of its symbols has changed meanwhile. A pair of the same
/// rank that stands there instead is merged as well: it has a candidate of its own, of equal place.
struct Candidate {
  int32_t rank;
  uint32_t at;
};
/// For std heaps, whose largest element comes first.
bool Later(const Candidate &a, const Candidate &b) {
  return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
}

} // namespace

Merger::Merger(const std::vector<Merge> &merges) {
  results.reserve(merges.size());
  for (const Merge &merge : merges)
    results[static_cast<uint64_t>(static_cast<uint32_t>(merge.left)) << 32 |
            static_cast<uint32_t>(merge.right)] = {merge.rank, merge.result};
}

void Merger::Apply(std::vector<int32_t> &symbols) const {
  if (symbols.size() <= kShort)
    ApplyShort(symbols);
  else
    ApplyLong(symbols);
}

void Merger::ApplyShort(std::vector<int32_t> &symbols) const {
  // ranks[i] and ids[i] are those of the pair (i, i + 1).
  int32_t ranks[kShort], ids[kShort];
  size_t count = symbols.size();
  const auto rank_pair = [&](size_t i) {
    const Result *found = Find(symbols[i], symbols[i + 1]);
    ranks[i] = found ? found->rank : kNoRank;
    ids[i] = found ? found->id : 0;
  };
  for (size_t i = 0; i + 1 < count; ++i)
    rank_pair(i);
  while (count > 1) {
    const size_t best = std::min_element(ranks, ranks + count - 1) - ranks;
    if (ranks[best] == kNoRank)
      break;
    symbols[best] = ids[best];
    std::copy(symbols.begin() + best + 2, symbols.begin() + count, symbols.begin() + best + 1);
    std::copy(ranks + best + 1, ranks + count - 1, ranks + best);
    std::copy(ids + best + 1, ids + count - 1, ids + best);
    --count;
    if (best > 0)
      rank_pair(best - 1);
    if (best + 1 < count)
      rank_pair(best);
  }
  symbols.resize(count);
}

void Merger::ApplyLong(std::vector<int32_t> &symbols) const {
  const uint32_t count = static_cast<uint32_t>(symbols.size());
  constexpr int32_t kGone = -2;
  std::vector<uint32_t> next(count), previous(count);
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1; // of the first: not used
  }
  std::vector<Candidate> heap;
  heap.reserve(count);
  const auto offer = [&](uint32_t at) {
    const Result *found = Find(symbols[at], symbols[next[at]]);
    if (found)
      heap.push_back({found->rank, at});
    return found != nullptr;
  };
  for (uint32_t i = 0; i + 1 < count; ++i)
    offer(i);
  std::make_heap(heap.begin(), heap.end(), Later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), Later);
    const Candidate best = heap.back();
    heap.pop_back();
    const uint32_t right = next[best.at];
    if (symbols[best.at] == kGone || right >= count)
      continue;
    const Result *found = Find(symbols[best.at], symbols[right]);
    if (!found || found->rank != best.rank)
      continue;
    symbols[best.at] = found->id;
    symbols[right] = kGone;
    next[best.at] = next[right];
    if (next[right] < count)
      previous[next[right]] = best.at;
    if (best.at > 0 && offer(previous[best.at]))
      std::push_heap(heap.begin(), heap.end(), Later);
    if (next[best.at] < count && offer(best.at))
      std::push_heap(heap.begin(), heap.end(), Later);
  }
  symbols.erase(std::remove(symbols.begin(), symbols.end(), kGone), symbols.end());
}

std::vector<Merge> MergesOfVocabulary(const std::vector<std::string> &tokens,
                                      const std::vector<int32_t> &ranks) {
  absl::flat_hash_map<absl::string_view, int32_t> ids;
  ids.reserve(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id)
    if (ranks[id] >= 0)
      ids.emplace(tokens[id], static_cast<int32_t>(id));
  std::vector<Merge> merges;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const absl::string_view token = tokens[id];
    if (ranks[id] < 0)
      continue;
    for (size_t at = 1; at < token.size(); ++at) {
      auto left = ids.find(token.substr(0, at));
      if (left == ids.end())
        continue;
      auto right = ids.find(token.substr(at));
      if (right != ids.end())
        merges.push_back({left->second, right->second, ranks[id], static_cast<int32_t>(id)});
    }
  }
  return merges;
}

} // namespace boa
