//===- canonical_text.cpp - The text of a computation, read ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/canonical_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace boa::canonical_text {

std::vector<absl::string_view> SplitList(absl::string_view text) {
  std::vector<absl::string_view> parts;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    quoted ^= c == '"';
    depth += !quoted && (c == '[' || c == '{');
    depth -= !quoted && (c == ']' || c == '}');
    if (c != ',' || quoted || depth > 0)
      continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  if (begin < text.size())
    parts.push_back(text.substr(begin));
  for (absl::string_view &part : parts)
    part = absl::StripAsciiWhitespace(part);
  return parts;
}

std::pair<absl::string_view, absl::string_view> SplitOnce(absl::string_view text,
                                                          absl::string_view separator) {
  const size_t at = text.find(separator);
  if (at == text.npos)
    return {text, {}};
  return {text.substr(0, at), text.substr(at + separator.size())};
}

/// `%4 = attention %1, %2, %3 {causal, heads = 6} : [64, 192], [6, 64]`
static Op ParseOp(absl::string_view line) {
  Op op;
  absl::string_view rest, operands;
  std::tie(op.number, rest) = SplitOnce(line, " = ");
  std::tie(rest, op.shapes) = SplitOnce(rest, " : ");
  const auto [head, attributes] = SplitOnce(rest, " {");
  std::tie(op.name, operands) = SplitOnce(head, " ");
  op.operands = SplitList(operands);
  std::copy_if(op.operands.begin(), op.operands.end(), std::back_inserter(op.parameters),
               [](absl::string_view operand) { return absl::StartsWith(operand, "@"); });
  for (absl::string_view attribute : SplitList(absl::StripSuffix(attributes, "}")))
    op.attributes.push_back(SplitOnce(attribute, " = "));
  return op;
}

std::vector<Stage> ParseText(absl::string_view text) {
  std::vector<Stage> stages;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (!absl::ConsumePrefix(&line, "  ")) {
      Stage &stage = stages.emplace_back();
      stage.name = SplitOnce(line, " ").second;
      if (const size_t at = stage.name.rfind(" repeat "); at != stage.name.npos) {
        stage.repeat = stage.name.substr(at + 8);
        stage.name = stage.name.substr(0, at);
      }
    } else if (stages.empty()) {
      continue;
    } else if (absl::StartsWith(line, "%")) {
      stages.back().ops.push_back(ParseOp(line));
    } else if (absl::ConsumePrefix(&line, "return ")) {
      stages.back().returned = line;
    } else {
      absl::ConsumePrefix(&line, "param ");
      stages.back().sizes.push_back(SplitOnce(line, " "));
    }
  }
  return stages;
}

} // namespace boa::canonical_text
