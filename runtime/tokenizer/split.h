//===- split.h - The split patterns of known families --------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tokenizer files give split patterns as regular expressions. The known ones are scanned by hand:
// in linear time, whatever the text. Others are refused.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TOKENIZER_SPLIT_H
#define BOA_RUNTIME_TOKENIZER_SPLIT_H

#include "absl/strings/string_view.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace boa {

/// The alternatives of a pattern. Together they cover any text.
struct SplitRules {
  enum class Letters { spaced, prefixed, marked, cased }; // ` ?L+`, `[^\r\nLN]?L+`, with M, by case
  enum class Contractions { none, exact, any_case, suffix };
  Letters letters = Letters::spaced;
  Contractions contractions = Contractions::exact;
  int digits = 0;          // of a piece at most; 0: any, with a space before
  bool newlines = false;   // `\s*[\r\n]+`, and newlines behind punctuation
  bool slashes = false;    // slashes behind punctuation, too
  bool last_space = false; // white space at the end of the text is one piece

  bool operator==(const SplitRules &other) const {
    return letters == other.letters && contractions == other.contractions &&
           digits == other.digits && newlines == other.newlines && slashes == other.slashes &&
           last_space == other.last_space;
  }
};

/// The end of the piece that begins at `at`, which is before the end of a valid text.
size_t NextPiece(const SplitRules &rules, absl::string_view text, size_t at);

/// Something to look for in a text.
struct Matcher {
  enum class Kind {
    rules,       // pieces of a family
    digits,      // runs of \p{N}, of `most` at most; 0: any length
    decimals,    // runs of 0 to 9, of exactly `most`
    literal,     // a text
    spaces,      // runs of \s
    space,       // one of \s
    punctuation, // one of \p{P} or of ASCII's symbols
    words,       // `\w+|[^\w\s]+`
  };
  Kind kind = Kind::rules;
  SplitRules rules;
  int most = 0;
  std::string literal;
};
/// The next match at or behind `from`; false if there is none.
bool FindMatch(const Matcher &matcher, absl::string_view text, size_t from, size_t &begin,
               size_t &end);

/// The matcher for a regular expression; false if it is unknown.
bool MatcherForPattern(absl::string_view pattern, Matcher &matcher);
/// The regular expression of a matcher with rules, as it was published first.
const char *PatternOf(const SplitRules &rules);
/// The rules of a family by the name that GGUF files use; false if it is unknown.
bool MatchersForFamily(absl::string_view family, std::vector<Matcher> &matchers);

} // namespace boa

#endif // BOA_RUNTIME_TOKENIZER_SPLIT_H
