//===- text.h - Python's methods of strings, on UTF-8 --------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A character is a code point; a byte that belongs to none counts as one. White space, upper and
// lower case are those of Unicode, as Python has them.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TEMPLATE_TEXT_H
#define BOA_RUNTIME_TEMPLATE_TEXT_H

#include "absl/strings/string_view.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace boa::jinja {

bool IsSpace(uint32_t code_point);
bool IsLetter(uint32_t code_point);
bool IsNumber(uint32_t code_point);
/// The value of a decimal digit of any script; -1: it is none.
int DecimalOf(uint32_t code_point);
/// What str.isdigit and str.isnumeric say; nothing where the tables of utf8proc do not tell.
std::optional<bool> IsDigit(uint32_t code_point);
std::optional<bool> IsNumeric(uint32_t code_point);
/// The code point at `at`, and its bytes: at least 1.
uint32_t CharacterAt(absl::string_view text, size_t at, size_t &bytes);
void AppendCharacter(uint32_t code_point, std::string &out);

int64_t Length(absl::string_view text);
/// Where character `index` begins, or the end.
size_t ByteOf(absl::string_view text, int64_t index);
/// The text of each character.
std::vector<absl::string_view> Characters(absl::string_view text);

enum Side { kLeft = 1, kRight = 2 };
/// Without white space, or without any of `characters`.
absl::string_view Strip(absl::string_view text, int sides,
                        std::optional<absl::string_view> characters = {});

/// By white space, or by `separator`, which is not empty; `most` cuts, all if it is negative.
std::vector<absl::string_view> Split(absl::string_view text,
                                     std::optional<absl::string_view> separator, int64_t most,
                                     bool from_right);
std::vector<absl::string_view> SplitLines(absl::string_view text, bool keep_ends,
                                          int64_t most = INT64_MAX);

std::string Upper(absl::string_view text);
std::string Lower(absl::string_view text);
/// The first character in title case, the others in lower case.
std::string Capitalize(absl::string_view text);
/// Each word so. Words are runs of letters.
std::string Title(absl::string_view text);
std::string SwapCase(absl::string_view text);
/// What texts are compared by where case does not count: str.casefold.
std::string FoldCase(absl::string_view text);
/// Whether there is a letter that has a case, and all of them have this one.
bool IsUpper(absl::string_view text);
bool IsLower(absl::string_view text);

/// The text so many times.
std::string Repeated(absl::string_view text, int64_t times);
/// The prefix and the number in hexadecimal digits.
void AppendHex(absl::string_view prefix, uint32_t number, int digits, std::string &out);
/// `&`, `<`, `>` and quotes as HTML writes them.
std::string EscapeHtml(absl::string_view text);
/// As Python writes the string: 'it\n'.
std::string Quote(absl::string_view text);
/// As Python writes the number: 1.0, 1e-05, inf.
std::string RealToString(double value);
/// Python's int(text, base) and float(text); nothing if it is none.
std::optional<int64_t> ParseInteger(absl::string_view text, int base);
std::optional<double> ParseReal(absl::string_view text);

} // namespace boa::jinja

#endif // BOA_RUNTIME_TEMPLATE_TEXT_H
