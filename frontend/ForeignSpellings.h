//===- ForeignSpellings.h - Spellings of other frameworks -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// People bring names from PyTorch and its trainers. One table says how Boa spells
// each; errors quote it, and `boa help pytorch` prints it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_FOREIGNSPELLINGS_H
#define BOA_FRONTEND_FOREIGNSPELLINGS_H

#include <string>
#include <string_view>
#include <vector>

namespace boa::frontend {

/// Where a foreign spelling stands. A name may mean one thing as a function and another as a
/// setting.
enum class SpellingKind { Sign, Word, Function, Setting, Value };

struct ForeignSpelling {
  SpellingKind kind;
  const char *written;
  /// How Boa spells it: ends a sentence.
  const char *spelling;
};

const std::vector<ForeignSpelling> &foreignSpellings();

/// Boa's spelling of `written`, or "".
std::string findSpelling(SpellingKind kind, std::string_view written);
/// The same behind a separator, or "".
std::string spellingHint(SpellingKind kind, std::string_view written, const char *separator = "; ");

} // namespace boa::frontend

#endif // BOA_FRONTEND_FOREIGNSPELLINGS_H
