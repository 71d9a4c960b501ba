//===- Parser.h - Tokens to a tree ------------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_PARSER_H
#define BOA_FRONTEND_PARSER_H

#include "frontend/AST.h"

namespace boa::frontend {

/// Parses text `file` and adds its items to `program`. Items with errors are
/// left out or incomplete: check only where no error was reported.
void parse(const Sources &sources, int32_t file, Program &program, Diagnostics &diagnostics);

/// Parses one value and nothing after it, from byte `begin` of text `file`;
/// null where it has errors.
ExprPtr parseValue(const Sources &sources, int32_t file, size_t begin, Diagnostics &diagnostics);

} // namespace boa::frontend

#endif // BOA_FRONTEND_PARSER_H
