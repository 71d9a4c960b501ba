//===- new_adapters.cpp - A computation before its adapters ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/new_adapters.h"

#include "runtime/state/canonical_text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace boa {

using namespace canonical_text;

namespace {

/// Prints a text without the ops whose result is zero where some parameters are.
class ZeroRemover {
public:
  /// `zeros`: parameters, "block.q_w_lora_a".
  explicit ZeroRemover(const std::set<std::string> &zeros) : zeros(zeros) {}

  std::string Run(absl::string_view text) {
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      absl::string_view rest = line;
      if (!absl::ConsumePrefix(&rest, "  ")) {
        stage = SplitOnce(SplitOnce(line, " ").second, " repeat ").first;
        values.clear();
        ops = 0;
      } else if (absl::StartsWith(rest, "%")) {
        PrintOp(rest);
        continue;
      } else if (absl::ConsumePrefix(&rest, "return ")) {
        absl::StrAppend(&out, "  return ", NewNames(SplitList(rest)), "\n");
        continue;
      } else if (absl::ConsumePrefix(&rest, "param ") &&
                 IsZeroParameter(SplitOnce(rest, " ").first)) {
        continue;
      }
      absl::StrAppend(&out, line, "\n");
    }
    return std::move(out);
  }

private:
  bool IsZeroParameter(absl::string_view name) const {
    return zeros.count(absl::StrContains(name, '.') ? std::string(name)
                                                    : absl::StrCat(stage, ".", name)) > 0;
  }
  /// The name of an operand in the new text; empty: it is zero.
  std::string NewName(absl::string_view operand) const {
    if (absl::StartsWith(operand, "@"))
      return IsZeroParameter(operand.substr(1)) ? "" : std::string(operand);
    const auto [number, result] = SplitOnce(operand, "#");
    auto value = values.find(number);
    if (value == values.end() || value->second.empty())
      return value == values.end() ? std::string(operand) : "";
    return result.empty() ? value->second : absl::StrCat(value->second, "#", result);
  }
  std::string NewNames(const std::vector<absl::string_view> &operands) const {
    std::vector<std::string> names;
    for (absl::string_view operand : operands)
      names.push_back(NewName(operand));
    return absl::StrJoin(names, ", ");
  }

  void PrintOp(absl::string_view line) {
    const auto [number, rest] = SplitOnce(line, " = ");
    const size_t end = std::min({rest.find(" {"), rest.find(" : "), rest.size()});
    const auto [name, list] = SplitOnce(rest.substr(0, end), " ");
    const std::vector<absl::string_view> operands = SplitList(list);
    const auto is_zero = [&](absl::string_view operand) { return NewName(operand).empty(); };
    if (std::none_of(operands.begin(), operands.end(), is_zero)) {
      values[number] = absl::StrCat("%", ++ops);
      absl::StrAppend(&out, "  ", values[number], " = ", name, operands.empty() ? "" : " ",
                      NewNames(operands), rest.substr(end), "\n");
    } else { // a sum is what its other operand is, and a product is zero
      const auto other = std::find_if_not(operands.begin(), operands.end(), is_zero);
      values[number] = name == "add" && other != operands.end() ? NewName(*other) : "";
    }
  }

  const std::set<std::string> &zeros;
  std::string out;
  // Of the stage.
  absl::string_view stage;
  std::map<absl::string_view, std::string> values; // the new names of results; empty: zero
  int64_t ops = 0;
};

} // namespace

std::optional<std::string> WithoutNewAdapters(const Program &program, absl::string_view before) {
  std::set<std::string> parts;
  const std::vector<std::vector<bool>> is_part = PartsOfAdapters(program);
  for (size_t g = 0; g < program.groups.size(); ++g)
    for (size_t p = 0; p < program.groups[g].parameters.size(); ++p)
      if (is_part[g][p])
        parts.insert(
            absl::StrCat(program.groups[g].name, ".", program.groups[g].parameters[p].name));
  if (parts.empty())
    return std::nullopt;
  for (const Stage &stage : ParseText(before))
    for (const auto &[name, shape] : stage.sizes)
      if (parts.count(absl::StrCat(stage.name, ".", name)))
        return std::nullopt;
  return ZeroRemover(parts).Run(program.computation.text);
}

} // namespace boa
