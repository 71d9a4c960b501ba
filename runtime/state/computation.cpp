//===- computation.cpp - Whether two programs compute the same ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stages are paired by name and parameters by name. The ops of two stages are paired in
// order, by the least cost of an alignment. Where something else of a stage differs, its
// shapes and operands are not compared: they follow from it.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/computation.h"

#include "runtime/state/canonical_text.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace boa {
namespace {

using namespace canonical_text;

constexpr size_t kShown = 8;           // differences
constexpr size_t kLongest = 200;       // bytes of one
constexpr size_t kMostCells = 1 << 22; // of all alignments

/// Of two stages of one name.
class StageDiffer {
public:
  /// `cells`: how many an alignment may still have.
  StageDiffer(const Stage &before, const Stage &after, std::vector<std::string> &lines,
              size_t &cells)
      : before(before), after(after), lines(lines), cells(cells) {}

  void Run() {
    if (before.repeat != after.repeat)
      Say("repeat was ", before.repeat, " and is ", after.repeat);
    CompareFacts(before.sizes, after.sizes, "");
    Align();
    for (const auto &[a, b] : pairs)
      if (a && b)
        CompareOps(*a, *b);
      else
        Say(Word(a ? *a : *b), Attributes(a ? *a : *b), a ? " is gone" : " is new");
    if (said.empty())
      for (const auto &[a, b] : pairs)
        if (a->shapes != b->shapes)
          Say(Word(*a), " was ", a->shapes, " and is ", b->shapes);
    if (said.empty())
      CompareOperands();
  }

private:
  template <typename... Args> void Say(const Args &...args) {
    std::string line = absl::StrCat(before.name, ": ", args...);
    if (line.size() > kLongest)
      line = line.substr(0, kLongest) + "...";
    // Many ops may have changed alike.
    if (said.insert(line).second)
      lines.push_back(std::move(line));
  }

  static bool IsScale(const Op &op) { return op.name == "scale" && op.attributes.size() == 1; }

  /// An op as a spec writes it.
  static std::string Word(const Op &op) {
    if (op.name == "add" || op.name == "mul")
      return op.name == "add" ? "x + y" : "x * y";
    return IsScale(op) ? absl::StrCat(op.attributes[0].second, " * x") : std::string(op.name);
  }

  /// The attributes that its word does not hold.
  static std::string Attributes(const Op &op) {
    std::vector<std::string> parts;
    if (IsScale(op))
      return "";
    for (const auto &[name, value] : op.attributes)
      parts.push_back(value.empty() ? std::string(name) : absl::StrCat(name, " = ", value));
    return parts.empty() ? "" : absl::StrCat(" (", absl::StrJoin(parts, ", "), ")");
  }

  /// `of`: ` (attention)` where the names do not say it.
  void CompareFacts(const FactList &a, const FactList &b, const std::string &of) {
    const std::map<absl::string_view, absl::string_view> was(a.begin(), a.end()),
        is(b.begin(), b.end());
    for (const auto &[name, value] : was)
      if (auto it = is.find(name); it == is.end())
        Say(name, " is gone", of);
      else if (it->second != value)
        Say(name, " was ", value, " and is ", it->second, of);
    for (const auto &[name, value] : is)
      if (!was.count(name))
        Say(name, " is new", of);
    if (was == is && a != b)
      Say("parameters stand in another order");
  }

  void CompareOps(const Op &a, const Op &b) {
    if (a.name != b.name || (IsScale(a) && IsScale(b) && a.attributes != b.attributes))
      return Say(Word(a), " became ", Word(b));
    CompareFacts(a.attributes, b.attributes, absl::StrCat(" (", a.name, ")"));
  }

  static bool Alike(const Op &a, const Op &b) {
    return a.name == b.name && a.attributes == b.attributes && a.shapes == b.shapes &&
           a.parameters == b.parameters;
  }
  /// An op became another one (3) rather than going while another came (2 + 2).
  static uint32_t Cost(const Op &a, const Op &b) {
    return a.name != b.name ? 3 : a.parameters != b.parameters ? 2 : !Alike(a, b);
  }

  /// Fills `pairs`, in order; null where an op has no other.
  void Align() {
    const std::vector<Op> &a = before.ops, &b = after.ops;
    size_t begin = 0, end_a = a.size(), end_b = b.size();
    for (; begin < std::min(end_a, end_b) && Alike(a[begin], b[begin]); ++begin)
      pairs.push_back({&a[begin], &b[begin]});
    for (; std::min(end_a, end_b) > begin && Alike(a[end_a - 1], b[end_b - 1]); --end_a)
      --end_b;
    const size_t rows = end_a - begin, columns = end_b - begin, width = columns + 1;
    if (rows + 1 > cells / width)
      return Say(rows, " of its ops became ", columns, " others");
    cells -= (rows + 1) * width;
    // cost[i * width + j]: of the ops from i and j on.
    std::vector<uint32_t> cost((rows + 1) * width);
    for (size_t i = rows + 1; i-- > 0;)
      for (size_t j = columns + 1; j-- > 0;) {
        uint32_t &least = cost[i * width + j];
        least = uint32_t(2 * (rows - i + columns - j));
        if (i < rows)
          least = std::min(least, cost[(i + 1) * width + j] + 2);
        if (j < columns)
          least = std::min(least, cost[i * width + j + 1] + 2);
        if (i < rows && j < columns)
          least = std::min(least, cost[(i + 1) * width + j + 1] + Cost(a[begin + i], b[begin + j]));
      }
    for (size_t i = 0, j = 0; i < rows || j < columns;) {
      const uint32_t here = cost[i * width + j];
      const Op *x = i < rows ? &a[begin + i] : nullptr, *y = j < columns ? &b[begin + j] : nullptr;
      if (x && y && here == cost[(i + 1) * width + j + 1] + Cost(*x, *y))
        ++i, ++j;
      else if (x && here == cost[(i + 1) * width + j] + 2)
        ++i, y = nullptr;
      else
        ++j, x = nullptr;
      pairs.push_back({x, y});
    }
    for (size_t i = end_a; i < a.size(); ++i)
      pairs.push_back({&a[i], &b[end_b + i - end_a]});
  }

  /// Of pairs of equal ops, whose operands may still differ.
  void CompareOperands() {
    for (const auto &[a, b] : pairs) {
      if (a->operands == b->operands)
        continue;
      const auto [x, y] = std::mismatch(a->operands.begin(), a->operands.end(), b->operands.begin(),
                                        b->operands.end());
      const bool named = x != a->operands.end() && y != b->operands.end() &&
                         !absl::StartsWith(*x, "%") && !absl::StartsWith(*y, "%");
      if (named)
        Say(Word(*a), " took ", absl::StripPrefix(*x, "@"), " and takes ",
            absl::StripPrefix(*y, "@"));
      else
        Say(Word(*a), std::is_permutation(a->operands.begin(), a->operands.end(),
                                          b->operands.begin(), b->operands.end())
                          ? " takes its operands in another order"
                          : " takes other operands");
    }
    if (before.returned != after.returned)
      Say("returns another value");
  }

  const Stage &before, &after;
  std::vector<std::string> &lines;
  size_t &cells;
  std::set<std::string> said; // of this stage
  std::vector<std::pair<const Op *, const Op *>> pairs;
};

/// Of texts that differ, the first lines that do.
std::string FirstDifference(absl::string_view before, absl::string_view after) {
  const std::vector<absl::string_view> a = absl::StrSplit(before, '\n'),
                                       b = absl::StrSplit(after, '\n');
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  auto quote = [](absl::string_view line) {
    return absl::StrCat("`", absl::StripAsciiWhitespace(line.substr(0, kLongest)), "`");
  };
  return absl::StrCat(x == a.end() ? "nothing" : quote(*x), " became ",
                      y == b.end() ? "nothing" : quote(*y));
}

} // namespace

bool IsTiedTable(const Computation &computation, absl::string_view group,
                 absl::string_view parameter) {
  const std::string in_stage = absl::StrCat("@", parameter);
  const std::string elsewhere = absl::StrCat("@", group, ".", parameter);
  bool is_table = false, is_more = false;
  for (const Stage &stage : ParseText(computation.text))
    for (const Op &op : stage.ops)
      if (std::find(op.parameters.begin(), op.parameters.end(),
                    stage.name == group ? in_stage : elsewhere) != op.parameters.end())
        (op.name == "embedding" ? is_table : is_more) = true;
  return is_table && is_more;
}

std::vector<std::string> DescribeDifferences(absl::string_view before, absl::string_view after) {
  std::vector<std::string> lines;
  if (before == after)
    return lines;
  const std::vector<Stage> a = ParseText(before), b = ParseText(after);
  std::map<absl::string_view, const Stage *> was, is;
  size_t cells = kMostCells;
  for (const Stage &stage : a)
    was.try_emplace(stage.name, &stage);
  for (const Stage &stage : b)
    is.try_emplace(stage.name, &stage);
  for (const Stage &stage : a)
    if (auto it = is.find(stage.name); it == is.end())
      lines.push_back(absl::StrCat("stage ", stage.name.substr(0, kLongest), " is gone"));
    else if (was[stage.name] == &stage)
      StageDiffer(stage, *it->second, lines, cells).Run();
  for (const Stage &stage : b)
    if (!was.count(stage.name))
      lines.push_back(absl::StrCat("stage ", stage.name.substr(0, kLongest), " is new"));
  // Another order of stages, or no canonical text.
  if (lines.empty())
    lines.push_back(FirstDifference(before, after));
  if (lines.size() > kShown) {
    const size_t more = lines.size() - kShown;
    lines.resize(kShown);
    lines.push_back(absl::StrCat("and ", more, " more"));
  }
  return lines;
}

absl::StatusOr<std::string> CheckComputation(const std::string &where, const Computation &saved,
                                             const Computation &ours, bool allowed,
                                             const absl::Status &fit) {
  std::vector<std::string> lines;
  if (saved.version != 0 && saved.version == ours.version)
    lines = DescribeDifferences(saved.text, ours.text);
  const std::string differences = absl::StrCat("\n  ", absl::StrJoin(lines, "\n  "));
  const std::string another = absl::StrCat(where, " belongs to another computation:", differences);
  if (!fit.ok())
    return lines.empty()
               ? fit
               : absl::Status(fit.code(), absl::StrCat(another, "\n--changed-model does not help: ",
                                                       fit.message()));
  if (saved.version != 0 && saved.version != ours.version) // of version 0 Open says it
    return absl::StrCat("warning: the computation of ", where, " is of version ", saved.version,
                        " and the program's of version ", ours.version,
                        ": only parameters and storages were compared");
  if (lines.empty())
    return "";
  if (allowed)
    return absl::StrCat("the computation changes, as --changed-model allows:", differences);
  return absl::FailedPreconditionError(
      absl::StrCat(another, "\n--changed-model goes on with its weights all the same"));
}

} // namespace boa
