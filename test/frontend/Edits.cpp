//===- Edits.cpp - Random edits of a specification ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/frontend/Edits.h"

#include <functional>
#include <regex>
#include <vector>

namespace boa::edits {
namespace {

/// A pattern, and what one of the places that it matches becomes.
struct Edit {
  const char *pattern;
  std::function<std::string(const std::smatch &, std::mt19937 &)> replace;
};

std::string Number(std::mt19937 &random, unsigned least, unsigned most) {
  return std::to_string(std::uniform_int_distribution<unsigned>(least, most)(random));
}

/// `format` of std::smatch, in which `#` is a random number.
Edit Make(const char *pattern, std::string format, unsigned least = 0, unsigned most = 0) {
  return {pattern, [=](const std::smatch &match, std::mt19937 &random) {
            std::string text = match.format(format);
            if (size_t at = text.find('#'); most != 0 && at != std::string::npos)
              text.replace(at, 1, Number(random, least, most));
            return text;
          }};
}

const std::vector<Edit> &Changes() {
  static const std::vector<Edit> table = {
      Make(R"(\bgelu\()", "silu("),
      Make(R"(\bsilu\()", "gelu("),
      Make(R"(\bheads = 6)", "heads = 12"),
      Make(R"(\bheads = 4)", "heads = 8"),
      Make(R"(\bheads = 8)", "heads = 16"),
      Make(R"(\bkv_heads = 2)", "kv_heads = 4"),
      Make(R"(\b(depth|width|vocab|context|hidden) = \d+)", "$1 = #", 1, 400),
      Make(R"(\b(layer_norm|rms_norm)(\(\w+, [^()=]+)\))", "$1$2, eps = #e-6)", 1, 9),
      Make(R"(eps = 1e-12)", "eps = #e-11", 1, 99),
      Make(R"(attention\(q, k, v, heads\))", "attention(q, k, v, heads, causal)"),
      Make(R"(attention\(q, k, v)", "attention(k, q, v"),
      Make(R"(\+ (linear\())", "+ 0.# * $1", 1, 99),
      Make(R"(\breturn (h|x|linear|embedding|layer_norm)\b)", "return 0.# * $1", 1, 99),
      Make(R"(\brotary\((linear\(\w+, \w+\)), (\w+)\))", "rotary($1, $2, base = #)", 2, 9999),
      Make(R"(\brotary\((linear\(\w+, \w+\)), \w+\))", "$1"),
      Make(R"(\brotary\((linear\(\w+, \w+\)), (\w+)\))",
           "rotary($1, $2, scaling = linear(factor = #))", 2, 99),
      Make(R"(\bcausal\))", "causal, window = #)", 1, 9),
      Make(R"((= gelu\([^\n]*\))\))", "$1, exact)"),
      Make(R"(= (silu|gelu)\(linear)", "= $1(2.0 * linear"),
      Make(R"(\bh \+ m\b)", "x + m"),
  };
  return table;
}

const std::vector<Edit> &Renamings() {
  static const std::vector<Edit> table = {
      Make(R"(\b(micro_batch = )\d+)", "$1#", 1, 4),
      Make(R"(\b(steps += )\d+)", "$1#", 1, 2000),
      Make(R"(\b(batch += )\d+)", "$1#", 1, 64),
      Make(R"(\b(weights += )bf16)", "$1f32"),
      Make(R"(\bsteps\b)", "compute = bf16\n  steps"),
      Make(R"(\bsteps\b)", "seed = #\n  steps", 0, 1000),
      Make(R"(\b(peak = )\d)", "$1#", 1, 9),
      Make(R"(\b(warmup = )\d+)", "$1#", 0, 40),
      Make(R"(\b(delay = 0.)\d+)", "$1#", 0, 99),
      Make(R"(vertical\([^)]*\))", "horizontal"),
      Make(R"(place( +)= ssd)", "place$1= host"),
      Make(R"(\b(weight_decay = 0.)\d+)", "$1#", 1, 99),
      Make(R"("data/kjv.txt")", "\"data/#.txt\"", 0, 1000),
      Make(R"(normal\(0.02)", "normal(0.0#", 1, 9),
      Make(R"(= (zeros|ones))", "= uniform(0.#)", 1, 9),
      Make(R"(\n)", " # what # says\n", 0, 99),
      Make(R"(\n)", "\n\n"),
      Make(R"((\d) \* (width))", "$2 * $1"),
      Make(R"(\((\w+ = \d+), (\w+ = \d+))", "($2, $1"),
      Make(R"((\n    let [^\n]*)(\n    let [^\n]*))", "$2$1"),
      Make(R"((\n    let [^\n]*)(\n    param [^\n]*))", "$2$1"),
      Make(R"((\n    param [^\n]*)(\n    let [^\n]*))", "$2$1"),
      Make(R"(\n(  \w+ += [^(\n]*)\n(  \w+ += [^(\n]*)\n)", "\n$2\n$1\n"),
      Make(R"(\b([hx]) \+ ([am])\b)", "$2 + $1"),
      Make(R"((silu\(linear\(m, gate_w\)\)) \* (linear\(m, up_w\)))", "$2 * $1"),
      Make(R"(memory = \d+ MiB)", "memory = #000 MiB", 1, 9),
      // A let under another name, wherever it is used.
      {R"(\blet (\w+))", nullptr},
  };
  return table;
}

const std::vector<Edit> &TableOf(Kind kind) {
  return kind == Kind::changing ? Changes() : Renamings();
}

/// The specification after one random edit; unchanged where it matches nothing.
std::string Apply(const Edit &edit, const std::string &text, std::mt19937 &random) {
  std::vector<std::smatch> matches;
  const std::regex pattern(edit.pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
    matches.push_back(*it);
  if (matches.empty())
    return text;
  const std::smatch &match = matches[random() % matches.size()];
  if (!edit.replace)
    return std::regex_replace(text, std::regex("\\b" + match[1].str() + "\\b(?!:)"),
                              "renamed_" + Number(random, 0, 999));
  return std::string(match.prefix()) + edit.replace(match, random) + std::string(match.suffix());
}

} // namespace

Edited EditSpec(const std::string &text, Kind kind, std::mt19937 &random) {
  const std::vector<Edit> &table = TableOf(kind);
  const unsigned most = kind == Kind::changing ? 1 : 4;
  Edited edited{text, {}};
  for (unsigned i = 0, count = 1 + random() % most; i < count; ++i) {
    const size_t row = random() % table.size();
    std::string next = Apply(table[row], edited.text, random);
    if (next != edited.text)
      edited.rows.insert(row);
    edited.text = std::move(next);
  }
  // One may undo another.
  if (edited.text == text)
    edited.rows.clear();
  return edited;
}

size_t CountRows(Kind kind) { return TableOf(kind).size(); }
const char *PatternOf(Kind kind, size_t row) { return TableOf(kind)[row].pattern; }

} // namespace boa::edits
