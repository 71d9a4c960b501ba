//===- added.h - Tokens that are found in the text itself ----- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TOKENIZER_ADDED_H
#define BOA_RUNTIME_TOKENIZER_ADDED_H

#include "runtime/tokenizer/definition.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace boa {

/// Parts of a text that somebody wrote. No special token is found in them, even in part.
struct PlainText {
  std::vector<std::pair<size_t, size_t>> ranges; // bytes [begin, end), in order and apart
  std::vector<int32_t> marks;                    // ids of other tokens of which that holds

  bool Hides(const AddedToken &token) const {
    return token.special || std::find(marks.begin(), marks.end(), token.id) != marks.end();
  }
};

/// A part of a text: an added token, or text between such tokens.
struct Section {
  const AddedToken *token; // null: text
  absl::string_view text;
};

/// Finds the added tokens of a text: the leftmost, and there the longest.
class AddedFinder {
public:
  /// `tokens` outlives this.
  void Add(const AddedToken &token, absl::string_view content);
  /// `special`: whether special tokens are found, too.
  void Split(absl::string_view text, bool special, const PlainText &plain,
             std::vector<Section> &sections) const;
  bool empty() const { return nodes.size() == 1; }
  /// Whether a token begins at `at`, or would with more text behind this one.
  bool MayBeginAt(absl::string_view text, size_t at) const;

private:
  /// The longest token at `at`; null if there is none.
  const AddedToken *LongestAt(absl::string_view text, size_t at, size_t &bytes) const;

  // A trie.
  absl::flat_hash_map<uint64_t, uint32_t> edges; // node << 8 | byte
  std::vector<const AddedToken *> nodes = {nullptr};
  std::array<bool, 256> begins = {};
};

} // namespace boa

#endif // BOA_RUNTIME_TOKENIZER_ADDED_H
