//===- letter_case.cpp - Upper, lower and title case as Python has them ---===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/text.h"

#include <algorithm>
#include <iterator>
#include <utf8proc.h>

namespace boa::jinja {
namespace {

/// Characters that become several. utf8proc maps one to one.
struct Special {
  uint32_t character;
  const char *upper, *title;
};
const Special kSpecial[] = {
    {0xdf, "SS", "Ss"},
    {0x149, "\u02bcN", "\u02bcN"},
    {0x1f0, "J\u030c", "J\u030c"},
    {0x390, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x3b0, "\u03a5\u0308\u0301", "\u03a5\u0308\u0301"},
    {0x587, "\u0535\u0552", "\u0535\u0582"},
    {0x1e96, "H\u0331", "H\u0331"},
    {0x1e97, "T\u0308", "T\u0308"},
    {0x1e98, "W\u030a", "W\u030a"},
    {0x1e99, "Y\u030a", "Y\u030a"},
    {0x1e9a, "A\u02be", "A\u02be"},
    {0x1f50, "\u03a5\u0313", "\u03a5\u0313"},
    {0x1f52, "\u03a5\u0313\u0300", "\u03a5\u0313\u0300"},
    {0x1f54, "\u03a5\u0313\u0301", "\u03a5\u0313\u0301"},
    {0x1f56, "\u03a5\u0313\u0342", "\u03a5\u0313\u0342"},
    {0x1fb2, "\u1fba\u0399", "\u1fba\u0345"},
    {0x1fb3, "\u0391\u0399", "\u1fbc"},
    {0x1fb4, "\u0386\u0399", "\u0386\u0345"},
    {0x1fb6, "\u0391\u0342", "\u0391\u0342"},
    {0x1fb7, "\u0391\u0342\u0399", "\u0391\u0342\u0345"},
    {0x1fbc, "\u0391\u0399", "\u1fbc"},
    {0x1fc2, "\u1fca\u0399", "\u1fca\u0345"},
    {0x1fc3, "\u0397\u0399", "\u1fcc"},
    {0x1fc4, "\u0389\u0399", "\u0389\u0345"},
    {0x1fc6, "\u0397\u0342", "\u0397\u0342"},
    {0x1fc7, "\u0397\u0342\u0399", "\u0397\u0342\u0345"},
    {0x1fcc, "\u0397\u0399", "\u1fcc"},
    {0x1fd2, "\u0399\u0308\u0300", "\u0399\u0308\u0300"},
    {0x1fd3, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x1fd6, "\u0399\u0342", "\u0399\u0342"},
    {0x1fd7, "\u0399\u0308\u0342", "\u0399\u0308\u0342"},
    {0x1fe2, "\u03a5\u0308\u0300", "\u03a5\u0308\u0300"},
    {0x1fe3, "\u03a5\u0308\u0301", "\u03a5\u0308\u0301"},
    {0x1fe4, "\u03a1\u0313", "\u03a1\u0313"},
    {0x1fe6, "\u03a5\u0342", "\u03a5\u0342"},
    {0x1fe7, "\u03a5\u0308\u0342", "\u03a5\u0308\u0342"},
    {0x1ff2, "\u1ffa\u0399", "\u1ffa\u0345"},
    {0x1ff3, "\u03a9\u0399", "\u1ffc"},
    {0x1ff4, "\u038f\u0399", "\u038f\u0345"},
    {0x1ff6, "\u03a9\u0342", "\u03a9\u0342"},
    {0x1ff7, "\u03a9\u0342\u0399", "\u03a9\u0342\u0345"},
    {0x1ffc, "\u03a9\u0399", "\u1ffc"},
    {0xfb00, "FF", "Ff"},
    {0xfb01, "FI", "Fi"},
    {0xfb02, "FL", "Fl"},
    {0xfb03, "FFI", "Ffi"},
    {0xfb04, "FFL", "Ffl"},
    {0xfb05, "ST", "St"},
    {0xfb06, "ST", "St"},
    {0xfb13, "\u0544\u0546", "\u0544\u0576"},
    {0xfb14, "\u0544\u0535", "\u0544\u0565"},
    {0xfb15, "\u0544\u053b", "\u0544\u056b"},
    {0xfb16, "\u054e\u0546", "\u054e\u0576"},
    {0xfb17, "\u0544\u053d", "\u0544\u056d"},
};

utf8proc_category_t CategoryOf(uint32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool IsUpperCharacter(uint32_t c) {
  return CategoryOf(c) == UTF8PROC_CATEGORY_LU || (c >= 0x2160 && c <= 0x216f) ||
         (c >= 0x24b6 && c <= 0x24cf);
}

bool IsLowerCharacter(uint32_t c) {
  return CategoryOf(c) == UTF8PROC_CATEGORY_LL || c == 0xaa || c == 0xba ||
         (c >= 0x2b0 && c <= 0x2b8) || (c >= 0x2170 && c <= 0x217f) || (c >= 0x24d0 && c <= 0x24e9);
}

bool IsCased(uint32_t c) {
  return IsUpperCharacter(c) || IsLowerCharacter(c) || CategoryOf(c) == UTF8PROC_CATEGORY_LT;
}

/// What stands between letters without ending a word.
bool IsCaseIgnorable(uint32_t c) {
  switch (CategoryOf(c)) {
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_SK:
    return true;
  default:
    return c == '\'' || c == '.' || c == ':' || c == 0xb7 || c == 0x2019;
  }
}

void AppendUpper(uint32_t c, bool is_title, std::string &out) {
  if (c >= 0x1f80 && c <= 0x1faf) { // Greek letters with a small iota below
    static const uint32_t bases[] = {0x1f08, 0x1f28, 0x1f68};
    AppendCharacter(is_title ? c | 8 : bases[(c - 0x1f80) / 16] + (c & 7), out);
    if (!is_title)
      AppendCharacter(0x399, out);
    return;
  }
  const Special *special =
      std::lower_bound(std::begin(kSpecial), std::end(kSpecial), c,
                       [](const Special &row, uint32_t key) { return row.character < key; });
  if (special != std::end(kSpecial) && special->character == c)
    out += is_title ? special->title : special->upper;
  else
    AppendCharacter(static_cast<uint32_t>(is_title
                                              ? utf8proc_totitle(static_cast<utf8proc_int32_t>(c))
                                              : utf8proc_toupper(static_cast<utf8proc_int32_t>(c))),
                    out);
}

/// Whether the sigma at `at` ends a word.
bool IsFinal(absl::string_view text, size_t at) {
  bool follows_letter = false;
  size_t bytes = 0;
  // Back over what can be ignored. Bytes within a character read as others, which are no letters.
  for (size_t back = at; back > 0;) {
    --back;
    if ((static_cast<uint8_t>(text[back]) & 0xc0) == 0x80)
      continue;
    const uint32_t c = CharacterAt(text, back, bytes);
    if (IsCaseIgnorable(c))
      continue;
    follows_letter = IsCased(c);
    break;
  }
  CharacterAt(text, at, bytes);
  for (size_t next = at + bytes; follows_letter && next < text.size(); next += bytes) {
    const uint32_t c = CharacterAt(text, next, bytes);
    if (!IsCaseIgnorable(c))
      return !IsCased(c);
  }
  return follows_letter;
}

void AppendLower(absl::string_view text, size_t at, uint32_t c, std::string &out) {
  if (c == 0x130)
    out += "i\u0307";
  else if (c == 0x3a3)
    AppendCharacter(IsFinal(text, at) ? 0x3c2 : 0x3c3, out);
  else
    AppendCharacter(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), out);
}

/// `change` appends what a character becomes. Bytes that are no UTF-8 stay.
template <typename Change> std::string Map(absl::string_view text, Change change) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
    const uint32_t c = CharacterAt(text, at, bytes);
    if (c >= 128 && bytes == 1)
      out.push_back(text[at]);
    else
      change(at, c, out);
  }
  return out;
}

/// Whether there are letters of one case, and none of the other.
bool HasOnly(absl::string_view text, bool (*wanted)(uint32_t)) {
  bool found = false;
  for (size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
    const uint32_t c = CharacterAt(text, at, bytes);
    if (IsCased(c) && !wanted(c))
      return false;
    found |= wanted(c);
  }
  return found;
}

} // namespace

bool IsLetter(uint32_t c) {
  const auto category = CategoryOf(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool IsNumber(uint32_t c) {
  const auto category = CategoryOf(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

int DecimalOf(uint32_t c) {
  int before = 0; // a script has its ten digits in a row
  if (CategoryOf(c) != UTF8PROC_CATEGORY_ND)
    return -1;
  while (CategoryOf(c - 1 - static_cast<uint32_t>(before)) == UTF8PROC_CATEGORY_ND)
    ++before;
  return before % 10;
}

std::optional<bool> IsDigit(uint32_t c) {
  if (CategoryOf(c) != UTF8PROC_CATEGORY_NO)
    return DecimalOf(c) >= 0;
  // A digit in another form, such as a raised one, is a plain one in its decomposition.
  utf8proc_int32_t parts[32];
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), parts, std::size(parts),
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT), nullptr);
  if (count == 1 && parts[0] == static_cast<utf8proc_int32_t>(c))
    return std::nullopt;
  int digits = 0;
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    if (DecimalOf(static_cast<uint32_t>(parts[i])) >= 0)
      ++digits;
    else if (parts[i] != '(' && parts[i] != ')' && parts[i] != '.' && parts[i] != ',')
      return false;
  return digits == 1;
}

std::optional<bool> IsNumeric(uint32_t c) {
  const bool is_han = (c >= 0x3400 && c <= 0x9fff) || (c >= 0xf900 && c <= 0xfaff) ||
                      (c >= 0x20000 && c <= 0x3ffff);
  return is_han ? std::nullopt : std::optional(IsNumber(c));
}

std::string Upper(absl::string_view text) {
  return Map(text, [](size_t, uint32_t c, std::string &out) { AppendUpper(c, false, out); });
}

std::string Lower(absl::string_view text) {
  return Map(text, [&](size_t at, uint32_t c, std::string &out) { AppendLower(text, at, c, out); });
}

std::string FoldCase(absl::string_view text) {
  return Map(text, [](size_t, uint32_t c, std::string &out) {
    utf8proc_int32_t folded[8]; // three at most
    int last = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded,
                                                           8, UTF8PROC_CASEFOLD, &last);
    for (utf8proc_ssize_t i = 0; i < count; ++i)
      AppendCharacter(static_cast<uint32_t>(folded[i]), out);
  });
}

std::string Capitalize(absl::string_view text) {
  return Map(text, [&](size_t at, uint32_t c, std::string &out) {
    if (at == 0)
      AppendUpper(c, true, out);
    else
      AppendLower(text, at, c, out);
  });
}

std::string Title(absl::string_view text) {
  bool in_word = false;
  return Map(text, [&](size_t at, uint32_t c, std::string &out) {
    if (in_word)
      AppendLower(text, at, c, out);
    else
      AppendUpper(c, true, out);
    in_word = IsCased(c);
  });
}

std::string SwapCase(absl::string_view text) {
  return Map(text, [&](size_t at, uint32_t c, std::string &out) {
    if (IsUpperCharacter(c))
      AppendLower(text, at, c, out);
    else if (IsLowerCharacter(c))
      AppendUpper(c, false, out);
    else
      AppendCharacter(c, out);
  });
}

bool IsUpper(absl::string_view text) { return HasOnly(text, IsUpperCharacter); }
bool IsLower(absl::string_view text) { return HasOnly(text, IsLowerCharacter); }

} // namespace boa::jinja
