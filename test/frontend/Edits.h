//===- Edits.h - Random edits of a specification ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Edits of the example models, by a seed. Some change the computation. Others change names,
// order, comments and settings only. The frontend refuses some of them.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FRONTEND_EDITS_H
#define BOA_TEST_FRONTEND_EDITS_H

#include <cstddef>
#include <random>
#include <set>
#include <string>

namespace boa::edits {

enum class Kind { changing, preserving };

struct Edited {
  std::string text;
  std::set<size_t> rows; // of the table of that kind; empty: the text is as it was
};

/// One edit that changes the computation, or one to four that do not.
Edited EditSpec(const std::string &text, Kind, std::mt19937 &random);

/// The table of a kind: how many rows, and what one of them matches.
size_t CountRows(Kind);
const char *PatternOf(Kind, size_t row);

} // namespace boa::edits

#endif // BOA_TEST_FRONTEND_EDITS_H
