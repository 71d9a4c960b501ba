//===- printable.h - Text that a terminal may see ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names, paths and strings come from files that anyone may have written; a
// terminal obeys the control characters in them. In the library of nearest.h, for
// the same users.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_SUPPORT_PRINTABLE_H
#define BOA_RUNTIME_SUPPORT_PRINTABLE_H

#include <string>
#include <string_view>

namespace boa {

/// Bytes of the UTF-8 sequence at `text[at]`; 0 if it is not one.
size_t Utf8Length(std::string_view text, size_t at);

/// The text with control characters (but newline and tab) and bytes that are no
/// UTF-8 written as \xNN.
std::string Printable(std::string_view text);
/// The same of a name within a line: newlines and tabs are escaped, too.
std::string PrintableName(std::string_view name);

/// A text that comes in pieces, which may end within a character.
class PrintableText {
public:
  /// What can be shown of the text up to here.
  std::string Add(std::string_view piece);
  /// The rest: an incomplete character.
  std::string Finish();

private:
  std::string held;
};

} // namespace boa

#endif // BOA_RUNTIME_SUPPORT_PRINTABLE_H
