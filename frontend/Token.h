//===- Token.h - Tokens of the language -------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A token is a kind and a place; names keep their text, numbers their value.
// Newlines are no tokens, but each token knows whether it is the first of its
// line. A unit must stand on the line of its number. After an error the parser
// continues at the next line.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_TOKEN_H
#define BOA_FRONTEND_TOKEN_H

#include "frontend/Source.h"

namespace boa::frontend {

enum class TokenKind {
  End,
  Name,
  Integer,
  Real,
  String,
  Object,
  LeftParen,
  RightParen,
  LeftBracket,
  RightBracket,
  LeftBrace,
  RightBrace,
  Comma,
  Colon,
  Equals,
  Arrow,
  Dot,
  Plus,
  Minus,
  Star,
  Slash,
  Percent,
};

struct Token {
  TokenKind kind = TokenKind::End;
  Location location;
  /// A name, the contents of a string, or an object of JSON.
  std::string text;
  int64_t integer = 0;
  double real = 0;
  bool firstOfLine = false;

  bool is(TokenKind other) const { return kind == other; }
  bool isName(std::string_view name) const { return kind == TokenKind::Name && text == name; }
};

/// How a message names a kind: `'{'`, `a name`.
const char *describe(TokenKind kind);
/// How a message names a token that it did not expect: `'{'`, `'width'`.
std::string describe(const Token &token, const Sources &sources);

/// Words that begin a statement or a stage and can name nothing.
bool isReserved(std::string_view name);

} // namespace boa::frontend

#endif // BOA_FRONTEND_TOKEN_H
