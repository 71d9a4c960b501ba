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
  return length;
}

std::string Printable(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text, at);
    const unsigned char first = text[at];
    const unsigned char second = length == 2 ? text[at + 1] : 0;
    // Those of ASCII, and U+0080 to U+009F.
    const bool control = (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f ||
                         (first == 0xc2 && second < 0xa0);
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

} // namespace boa
