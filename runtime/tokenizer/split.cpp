//===- split.cpp - The split patterns of known families -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/split.h"

#include "runtime/tokenizer/unicode.h"

#include <algorithm>

namespace boa {
namespace {

using Letters = SplitRules::Letters;
using Contractions = SplitRules::Contractions;

/// The end of the longest run of code points, `most` at most, that have a class of `with` and
/// none of `without`. `with` 0: any.
size_t RunEnd(absl::string_view text, size_t at, uint16_t with, uint16_t without = 0,
              int most = 0) {
  for (int count = 0; at < text.size() && (most == 0 || count < most); ++count) {
    const ClassAt here = ClassifyAt(text, at);
    if ((with && !(here.classes & with)) || (here.classes & without))
      break;
    at += here.bytes;
  }
  return at;
}

/// The bytes of an English contraction at `at`, with its apostrophe; 0 if there is none.
size_t ContractionBytes(absl::string_view text, size_t at, bool any_case) {
  if (at + 1 >= text.size() || text[at] != '\'')
    return 0;
  const auto letter = [&](size_t i) {
    const char c = at + i < text.size() ? text[at + i] : '\0';
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char first = letter(1), second = letter(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd')
    return 2;
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
      (first == 'l' && second == 'l'))
    return 3;
  // The long s is an s in another case.
  if (any_case && text.substr(at + 1, 2) == "\xc5\xbf")
    return 3;
  return 0;
}

constexpr uint16_t kUpperSide = kUpper | kUncased | kMark, kLowerSide = kLower | kUncased | kMark;

/// `[upper]*[lower]+` at `at`; the same position if it does not match.
size_t LowerWordEnd(absl::string_view text, size_t at) {
  const size_t uppers = RunEnd(text, at, kUpperSide);
  const size_t end = RunEnd(text, uppers, kLowerSide);
  if (end > uppers)
    return end;
  // Gives back code points, as a regular expression does, down to one that is on both sides.
  for (size_t back = uppers; back > at;) {
    const size_t behind = back;
    do
      --back;
    while ((static_cast<uint8_t>(text[back]) & 0xc0) == 0x80);
    if (ClassifyAt(text, back).classes & kLowerSide)
      return behind;
  }
  return at;
}

/// `[upper]+[lower]*`, likewise.
size_t UpperWordEnd(absl::string_view text, size_t at) {
  const size_t uppers = RunEnd(text, at, kUpperSide);
  return uppers == at ? at : RunEnd(text, uppers, kLowerSide);
}

/// A word by case with one other code point before it; `at` if there is none.
size_t CasedWordEnd(absl::string_view text, size_t at, ClassAt first) {
  const bool prefix = !(first.classes & (kNewline | kLetter | kNumber));
  const size_t behind = at + first.bytes;
  for (auto word_end : {LowerWordEnd, UpperWordEnd}) {
    if (prefix)
      if (const size_t end = word_end(text, behind); end > behind)
        return end;
    if (first.classes & (kLetter | kMark))
      if (const size_t end = word_end(text, at); end > at)
        return end;
  }
  return at;
}

/// The end of a piece of letters at `at`; `at` if there is none.
size_t LettersEnd(const SplitRules &rules, absl::string_view text, size_t at, ClassAt first) {
  switch (rules.letters) {
  case Letters::spaced: {
    const size_t from = text[at] == ' ' ? at + 1 : at;
    const size_t end = RunEnd(text, from, kLetter);
    return end > from ? end : at;
  }
  case Letters::prefixed:
  case Letters::marked: {
    const uint16_t with = rules.letters == Letters::marked ? kLetter | kMark : kLetter;
    if (first.classes & kLetter)
      return RunEnd(text, at, with);
    if (first.classes & (kNewline | kNumber))
      return at;
    const size_t behind = at + first.bytes;
    const size_t end = RunEnd(text, behind, with);
    return end > behind ? end : RunEnd(text, at, with);
  }
  case Letters::cased: {
    size_t end = CasedWordEnd(text, at, first);
    if (end > at && rules.contractions == Contractions::suffix)
      end += ContractionBytes(text, end, /*any_case=*/true);
    return end;
  }
  }
  return at;
}

size_t NumbersEnd(const SplitRules &rules, absl::string_view text, size_t at) {
  const size_t from = rules.digits == 0 && text[at] == ' ' ? at + 1 : at;
  const size_t end = RunEnd(text, from, kNumber, 0, rules.digits);
  return end > from ? end : at;
}

size_t OthersEnd(const SplitRules &rules, absl::string_view text, size_t at) {
  const size_t from = text[at] == ' ' ? at + 1 : at;
  const uint16_t marks = rules.letters == Letters::marked ? kMark : 0;
  size_t end = RunEnd(text, from, 0, kSpace | kLetter | kNumber | marks);
  if (end == from)
    return at;
  if (rules.newlines)
    while (end < text.size() &&
           (text[end] == '\r' || text[end] == '\n' || (rules.slashes && text[end] == '/')))
      ++end;
  return end;
}

size_t SpacesEnd(const SplitRules &rules, absl::string_view text, size_t at) {
  size_t last = at, newline = 0; // the last code point, and the end of the last newline
  size_t end = at;
  while (end < text.size()) {
    const ClassAt here = ClassifyAt(text, end);
    if (!(here.classes & kSpace))
      break;
    last = end;
    end += here.bytes;
    if (here.classes & kNewline)
      newline = end;
  }
  if (rules.last_space && end == text.size())
    return end;
  if (rules.newlines && newline > 0)
    return newline;
  // The last white space before a word belongs to the word.
  return end == text.size() || last == at ? end : last;
}

struct KnownPattern {
  const char *pattern;
  SplitRules rules;
};

constexpr SplitRules kGpt2{};
constexpr SplitRules Cl100k(int digits, Letters letters, bool last_space = false) {
  return {letters, Contractions::any_case, digits, true, false, last_space};
}
constexpr SplitRules O200k(int digits, Contractions contractions) {
  return {Letters::cased, contractions, digits, true, true, false};
}

#define BOA_CASED_WORD_1                                                                           \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
#define BOA_CASED_WORD_2                                                                           \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
#define BOA_SUFFIX R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define BOA_SPACES R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"

const KnownPattern kPatterns[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", kGpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", kGpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)", kGpt2},
    {BOA_SUFFIX R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" BOA_SPACES,
     Cl100k(3, Letters::prefixed)},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
     Cl100k(3, Letters::prefixed, true)},
    {BOA_SUFFIX R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" BOA_SPACES,
     Cl100k(1, Letters::prefixed)},
    {BOA_SUFFIX
     R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" BOA_SPACES,
     Cl100k(1, Letters::marked)},
    {BOA_CASED_WORD_1 BOA_SUFFIX "?|" BOA_CASED_WORD_2 BOA_SUFFIX
                                 R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" BOA_SPACES,
     O200k(3, Contractions::suffix)},
    {BOA_CASED_WORD_1 "|" BOA_CASED_WORD_2 R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" BOA_SPACES,
     O200k(1, Contractions::none)},
};

Matcher OfRules(const SplitRules &rules) {
  Matcher matcher;
  matcher.rules = rules;
  return matcher;
}

} // namespace

size_t NextPiece(const SplitRules &rules, absl::string_view text, size_t at) {
  if (rules.contractions == Contractions::exact || rules.contractions == Contractions::any_case)
    if (const size_t bytes =
            ContractionBytes(text, at, rules.contractions == Contractions::any_case))
      return at + bytes;
  const ClassAt first = ClassifyAt(text, at);
  if (const size_t end = LettersEnd(rules, text, at, first); end > at)
    return end;
  if (const size_t end = NumbersEnd(rules, text, at); end > at)
    return end;
  if (const size_t end = OthersEnd(rules, text, at); end > at)
    return end;
  if (first.classes & kSpace)
    return SpacesEnd(rules, text, at);
  return at + first.bytes;
}

bool FindMatch(const Matcher &matcher, absl::string_view text, size_t from, size_t &begin,
               size_t &end) {
  if (matcher.kind == Matcher::Kind::rules) {
    begin = from;
    end = from < text.size() ? NextPiece(matcher.rules, text, from) : from;
    return from < text.size();
  }
  if (matcher.kind == Matcher::Kind::literal) {
    begin = text.find(matcher.literal, from);
    end = begin + matcher.literal.size();
    return begin != absl::string_view::npos;
  }
  for (begin = from; begin < text.size();) {
    const ClassAt here = ClassifyAt(text, begin);
    end = begin;
    switch (matcher.kind) {
    case Matcher::Kind::digits:
      end = RunEnd(text, begin, kNumber, 0, matcher.most);
      break;
    case Matcher::Kind::decimals: {
      size_t run = begin;
      while (run < text.size() && run - begin < static_cast<size_t>(matcher.most) &&
             text[run] >= '0' && text[run] <= '9')
        ++run;
      if (run - begin == static_cast<size_t>(matcher.most))
        end = run;
      break;
    }
    case Matcher::Kind::spaces:
      end = RunEnd(text, begin, kSpace);
      break;
    case Matcher::Kind::space:
      end = begin + (here.classes & kSpace ? here.bytes : 0);
      break;
    case Matcher::Kind::punctuation:
      end = begin + (here.classes & kPunct ? here.bytes : 0);
      break;
    case Matcher::Kind::words:
      end = here.classes & kWord ? RunEnd(text, begin, kWord)
                                 : RunEnd(text, begin, 0, kWord | kSpace);
      break;
    default:
      break;
    }
    if (end > begin)
      return true;
    begin += here.bytes;
  }
  return false;
}

bool MatcherForPattern(absl::string_view pattern, Matcher &matcher) {
  for (const KnownPattern &known : kPatterns)
    if (pattern == known.pattern) {
      matcher = OfRules(known.rules);
      return true;
    }
  matcher = Matcher();
  matcher.kind = Matcher::Kind::digits;
  if (pattern == R"(\p{N}{1,3})")
    matcher.most = 3;
  else if (pattern == R"(\p{N})")
    matcher.most = 1;
  else if (pattern == R"(\p{N}+)")
    matcher.most = 0;
  else if (pattern == R"(\s+)")
    matcher.kind = Matcher::Kind::spaces;
  else if (pattern == R"(\s)")
    matcher.kind = Matcher::Kind::space;
  else if (pattern == "[0-9][0-9][0-9]") {
    matcher.kind = Matcher::Kind::decimals;
    matcher.most = 3;
  } else {
    return false;
  }
  return true;
}

const char *PatternOf(const SplitRules &rules) {
  for (const KnownPattern &known : kPatterns)
    if (known.rules == rules)
      return known.pattern;
  return nullptr;
}

bool MatchersForFamily(absl::string_view family, std::vector<Matcher> &matchers) {
  const auto is = [&](std::initializer_list<const char *> names) {
    return std::find(names.begin(), names.end(), family) != names.end();
  };
  Matcher digits;
  digits.kind = Matcher::Kind::digits;
  digits.most = 1;
  if (is({"gpt-2", "mpt", "olmo"}))
    matchers = {OfRules(kGpt2)};
  else if (is({"smollm", "starcoder", "refact", "command-r"}))
    matchers = {digits, OfRules(kGpt2)};
  else if (is({"llama-bpe", "llama3", "llama-v3"}))
    matchers = {OfRules(Cl100k(3, Letters::prefixed))};
  else if (is({"cl100k"}))
    matchers = {OfRules(Cl100k(3, Letters::prefixed, true))};
  else if (is({"qwen2", "deepseek-r1-qwen"}))
    matchers = {OfRules(Cl100k(1, Letters::prefixed))};
  else if (is({"qwen35"}))
    matchers = {OfRules(Cl100k(1, Letters::marked))};
  else if (is({"gpt-4o", "llama4"}))
    matchers = {OfRules(O200k(3, Contractions::suffix))};
  else if (is({"tekken"}))
    matchers = {OfRules(O200k(1, Contractions::none))};
  else
    return false;
  return true;
}

} // namespace boa
