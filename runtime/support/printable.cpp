//===- printable.cpp - Text that a terminal may see -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/printable.h"

#include <algorithm>

namespace boa {

size_t Utf8Length(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  const size_t length = lead < 0x80             ? 1
                        : (lead & 0xe0) == 0xc0 ? 2
                        : (lead & 0xf0) == 0xe0 ? 3
                        : (lead & 0xf8) == 0xf0 ? 4
                                                : 0;
  if (length == 0 || at + length > text.size())
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80)
      return 0;
  // Longer forms of a character, halves of UTF-16 pairs, and what is beyond U+10FFFF. Some
  // terminals obey a control character in a longer form.
  const unsigned char second = length > 1 ? byte(at + 1) : 0;
  const bool none = lead == 0xc0 || lead == 0xc1 || lead > 0xf4 ||
                    (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                    (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return none ? 0 : length;
}

static std::string WithoutControls(std::string_view text, bool is_name) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text, at);
    const unsigned char first = text[at];
    const unsigned char second = length == 2 ? text[at + 1] : 0;
    // Those of ASCII, and U+0080 to U+009F.
    const bool control = (first < 0x20 && (is_name || (first != '\n' && first != '\t'))) ||
                         first == 0x7f || (first == 0xc2 && second < 0xa0);
    const size_t bytes = std::max<size_t>(length, 1);
    for (size_t i = at; i < at + bytes; ++i) {
      const unsigned char byte = text[i];
      if (control || length == 0)
        out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
      else
        out += text[i];
    }
    at += bytes;
  }
  return out;
}

std::string Printable(std::string_view text) { return WithoutControls(text, /*is_name=*/false); }

std::string PrintableName(std::string_view name) { return WithoutControls(name, /*is_name=*/true); }

std::string PrintableText::Add(std::string_view piece) {
  held += piece;
  // The last bytes may begin a character: at most three, of which the first says how many come.
  size_t whole = held.size();
  for (size_t back = 1; back <= std::min<size_t>(held.size(), 3); ++back) {
    const auto byte = static_cast<unsigned char>(held[held.size() - back]);
    if ((byte & 0xc0) == 0x80)
      continue;
    const size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    if (length > back)
      whole = held.size() - back;
    break;
  }
  std::string shown = Printable(std::string_view(held).substr(0, whole));
  held.erase(0, whole);
  return shown;
}

std::string PrintableText::Finish() {
  std::string shown = Printable(held);
  held.clear();
  return shown;
}

} // namespace boa
