//===- unicode.h - Code points, their classes, normal forms --- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Properties of code points for split patterns and normalisers, by utf8proc. All texts here are
// valid UTF-8; FindInvalidUtf8 checks that first.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TOKENIZER_UNICODE_H
#define BOA_RUNTIME_TOKENIZER_UNICODE_H

#include "absl/strings/string_view.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace boa {

/// Sets of code points that patterns name. A code point has several.
enum UnicodeClass : uint16_t {
  kLetter = 1,        // \p{L}
  kNumber = 2,        // \p{N}
  kMark = 4,          // \p{M}
  kSpace = 8,         // \s
  kNewline = 16,      // \r and \n
  kUpper = 32,        // \p{Lu}, \p{Lt}
  kLower = 64,        // \p{Ll}
  kUncased = 128,     // \p{Lm}, \p{Lo}
  kPunct = 256,       // \p{P} and the symbols of ASCII
  kWord = 512,        // \w
  kNonspacing = 1024, // \p{Mn}
  kOther = 2048,      // \p{Cc}, \p{Cf}, \p{Cn}, \p{Co}
  kDecimal = 4096,    // \p{Nd}
};
uint16_t ClassOf(uint32_t code_point);

/// One code point of a valid text, and its bytes.
struct CodePoint {
  uint32_t value;
  int bytes;
};
CodePoint DecodeAt(absl::string_view text, size_t at);
/// The classes of the code point at `at`, and its bytes.
struct ClassAt {
  uint16_t classes;
  int bytes;
};
ClassAt ClassifyAt(absl::string_view text, size_t at);

void AppendUtf8(uint32_t code_point, std::string &out);

/// Where the first byte is that belongs to no UTF-8 sequence; npos if there is none.
size_t FindInvalidUtf8(absl::string_view text);
/// The bytes at the end that may be the beginning of a sequence; 0 to 3.
size_t IncompleteUtf8(absl::string_view text);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
/// Takes time that is linear in the text, but for sorting long runs of marks.
std::string Normalize(absl::string_view text, NormalForm form);
/// Each code point by itself, without regard to its neighbours.
std::string Lowercase(absl::string_view text);
/// The text without code points of any of these classes.
std::string Without(absl::string_view text, uint16_t classes);

} // namespace boa

#endif // BOA_RUNTIME_TOKENIZER_UNICODE_H
