//===- bpe.h - Merging of pairs ------------------------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Byte pair encoding of one word: while two neighbours have a merge, the pair of the lowest rank
// becomes one, the leftmost among equals. Short words by looking at all pairs, long ones by a
// heap, so the time is n log n.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TOKENIZER_BPE_H
#define BOA_RUNTIME_TOKENIZER_BPE_H

#include "runtime/tokenizer/definition.h"

#include "absl/container/flat_hash_map.h"

#include <cstdint>
#include <vector>

namespace boa {

class Merger {
public:
  Merger() = default;
  /// Of two merges of one pair the later counts.
  explicit Merger(const std::vector<Merge> &merges);
  /// Merges the symbols in place.
  void Apply(std::vector<int32_t> &symbols) const;

private:
  struct Result {
    int32_t rank, id;
  };
  /// Null if the pair has no merge.
  const Result *Find(int32_t left, int32_t right) const {
    auto it = results.find(static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 |
                           static_cast<uint32_t>(right));
    return it == results.end() ? nullptr : &it->second;
  }
  void ApplyShort(std::vector<int32_t> &symbols) const;
  void ApplyLong(std::vector<int32_t> &symbols) const;

  absl::flat_hash_map<uint64_t, Result> results;
};

/// The merges of a vocabulary without a list of them: any two tokens that together are a third.
/// `ranks` has a number for each token. A token of rank -1 is not merged.
std::vector<Merge> MergesOfVocabulary(const std::vector<std::string> &tokens,
                                      const std::vector<int32_t> &ranks);

} // namespace boa

#endif // BOA_RUNTIME_TOKENIZER_BPE_H
