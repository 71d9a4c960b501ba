//===- Format.h - The canonical layout of a specification -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layout changes blanks and line breaks alone: tokens and comments stay as the
// author wrote them. So the tree stays the same. Rules:
//
//   - A stage, a statement and a setting of an outer block begin a line. An inner
//     block stays on one line where the author wrote its first setting there.
//   - Two blanks indent. One blank line parts models, blocks and stages. Other blank
//     lines of the author stay, at most one at a time.
//   - `=` and `{` of neighbouring settings stand in one column, and so do shapes and
//     initial values of neighbouring parameters, and comments behind code.
//   - Inside parentheses the author's line breaks stay; what follows them stands
//     under the first argument.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_FORMAT_H
#define BOA_FRONTEND_FORMAT_H

#include "frontend/AST.h"

namespace boa::frontend {

/// Lays out text `file`, which parsed to `program` without errors.
std::string format(const Sources &sources, int32_t file, const Program &program);

} // namespace boa::frontend

#endif // BOA_FRONTEND_FORMAT_H
