//===- canonical_text.h - The text of a computation, read -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// passes/model/CanonicalText.h prints it. Any text is taken. What is read points into it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_CANONICAL_TEXT_H
#define BOA_RUNTIME_STATE_CANONICAL_TEXT_H

#include "absl/strings/string_view.h"

#include <utility>
#include <vector>

namespace boa::canonical_text {

/// Names and values of a text, in its order.
using FactList = std::vector<std::pair<absl::string_view, absl::string_view>>;

struct Op {
  absl::string_view number, name, shapes;
  std::vector<absl::string_view> operands;
  FactList attributes;                       // a flag has no value
  std::vector<absl::string_view> parameters; // of its operands
};

struct Stage {
  absl::string_view name, repeat = "1";
  FactList sizes; // of parameters and inputs
  std::vector<Op> ops;
  absl::string_view returned;
};

/// Splits at each comma that stands in no bracket and no quotes.
std::vector<absl::string_view> SplitList(absl::string_view text);

/// The parts before and after the first `separator`; the whole and nothing without one.
std::pair<absl::string_view, absl::string_view> SplitOnce(absl::string_view text,
                                                          absl::string_view separator);

std::vector<Stage> ParseText(absl::string_view text);

} // namespace boa::canonical_text

#endif // BOA_RUNTIME_STATE_CANONICAL_TEXT_H
