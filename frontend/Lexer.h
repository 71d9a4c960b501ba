//===- Lexer.h - Text to tokens ---------------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_LEXER_H
#define BOA_FRONTEND_LEXER_H

#include "frontend/Token.h"

namespace boa::frontend {

/// The tokens of text `file` from byte `begin` on; the last is End. Bytes that
/// begin no token are reported, a run of them once, and skipped.
std::vector<Token> lex(const Sources &sources, int32_t file, Diagnostics &diagnostics,
                       size_t begin = 0);

} // namespace boa::frontend

#endif // BOA_FRONTEND_LEXER_H
