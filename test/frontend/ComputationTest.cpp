//===- ComputationTest.cpp - Which edits change the computation -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random edits of the example models, by a seed. Those of the computation change the
// hash of the canonical text; those of names, order, comments and settings keep it.
//
//===----------------------------------------------------------------------===//
#include "frontend/Frontend.h"
#include "frontend/irgen.h"
#include "passes/model/CanonicalText.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <random>
#include <regex>
#include <set>

namespace boa::frontend {
namespace {

constexpr unsigned kEdits = 100; // of each kind
const char *const kExamples[] = {"gpt", "bert", "llama"};

/// A pattern, and what one of the places that it matches becomes.
struct Edit {
  const char *pattern;
  std::function<std::string(const std::smatch &, std::mt19937 &)> replace;
};

std::string number(std::mt19937 &random, unsigned least, unsigned most) {
  return std::to_string(std::uniform_int_distribution<unsigned>(least, most)(random));
}

/// `format` of std::smatch, in which `#` is a random number.
Edit edit(const char *pattern, std::string format, unsigned least = 0, unsigned most = 0) {
  return {pattern, [=](const std::smatch &match, std::mt19937 &random) {
            std::string text = match.format(format);
            if (size_t at = text.find('#'); most != 0 && at != std::string::npos)
              text.replace(at, 1, number(random, least, most));
            return text;
          }};
}

const std::vector<Edit> &changes() {
  static const std::vector<Edit> table = {
      edit(R"(\bgelu\()", "silu("),
      edit(R"(\bsilu\()", "gelu("),
      edit(R"(\bheads = 6)", "heads = 12"),
      edit(R"(\bheads = 4)", "heads = 8"),
      edit(R"(\bheads = 8)", "heads = 16"),
      edit(R"(\bkv_heads = 2)", "kv_heads = 4"),
      edit(R"(\b(depth|width|vocab|context|hidden) = \d+)", "$1 = #", 1, 400),
      edit(R"(\b(layer_norm|rms_norm)(\(\w+, [^()=]+)\))", "$1$2, eps = #e-6)", 1, 9),
      edit(R"(eps = 1e-12)", "eps = #e-11", 1, 99),
      edit(R"(attention\(q, k, v, heads\))", "attention(q, k, v, heads, causal)"),
      edit(R"(attention\(q, k, v)", "attention(k, q, v"),
      edit(R"(\+ (linear\())", "+ 0.# * $1", 1, 99),
      edit(R"(\breturn (h|x|linear|embedding|layer_norm)\b)", "return 0.# * $1", 1, 99),
      edit(R"(\brotary\((linear\(\w+, \w+\)), (\w+)\))", "rotary($1, $2, base = #)", 2, 9999),
      edit(R"(\brotary\((linear\(\w+, \w+\)), \w+\))", "$1"),
      edit(R"(= (silu|gelu)\(linear)", "= $1(2.0 * linear"),
      edit(R"(\bh \+ m\b)", "x + m"),
  };
  return table;
}

const std::vector<Edit> &renamings() {
  static const std::vector<Edit> table = {
      edit(R"(\b(micro_batch = )\d+)", "$1#", 1, 4),
      edit(R"(\b(steps += )\d+)", "$1#", 1, 2000),
      edit(R"(\b(batch += )\d+)", "$1#", 1, 64),
      edit(R"(\b(weights += )bf16)", "$1f32"),
      edit(R"(\bsteps\b)", "compute = bf16\n  steps"),
      edit(R"(\bsteps\b)", "seed = #\n  steps", 0, 1000),
      edit(R"(\b(peak = )\d)", "$1#", 1, 9),
      edit(R"(\b(warmup = )\d+)", "$1#", 0, 40),
      edit(R"(\b(delay = 0.)\d+)", "$1#", 0, 99),
      edit(R"(vertical\([^)]*\))", "horizontal"),
      edit(R"(place( +)= ssd)", "place$1= host"),
      edit(R"(\b(weight_decay = 0.)\d+)", "$1#", 1, 99),
      edit(R"("data/kjv.txt")", "\"data/#.txt\"", 0, 1000),
      edit(R"(normal\(0.02)", "normal(0.0#", 1, 9),
      edit(R"(= (zeros|ones))", "= uniform(0.#)", 1, 9),
      edit(R"(\n)", " # what # says\n", 0, 99),
      edit(R"(\n)", "\n\n"),
      edit(R"((\d) \* (width))", "$2 * $1"),
      edit(R"(\((\w+ = \d+), (\w+ = \d+))", "($2, $1"),
      edit(R"((\n    let [^\n]*)(\n    let [^\n]*))", "$2$1"),
      edit(R"((\n    let [^\n]*)(\n    param [^\n]*))", "$2$1"),
      edit(R"((\n    param [^\n]*)(\n    let [^\n]*))", "$2$1"),
      edit(R"(\n(  \w+ += [^(\n]*)\n(  \w+ += [^(\n]*)\n)", "\n$2\n$1\n"),
      edit(R"(\b([hx]) \+ ([am])\b)", "$2 + $1"),
      edit(R"((silu\(linear\(m, gate_w\)\)) \* (linear\(m, up_w\)))", "$2 * $1"),
      edit(R"(memory = \d+ MiB)", "memory = #000 MiB", 1, 9),
      // A let under another name, wherever it is used.
      {R"(\blet (\w+))", nullptr},
  };
  return table;
}

/// The specification after one random edit; unchanged where it matches nothing.
std::string apply(const Edit &edit, const std::string &text, std::mt19937 &random) {
  std::vector<std::smatch> matches;
  const std::regex pattern(edit.pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
    matches.push_back(*it);
  if (matches.empty())
    return text;
  const std::smatch &match = matches[random() % matches.size()];
  if (!edit.replace)
    return std::regex_replace(text, std::regex("\\b" + match[1].str() + "\\b(?!:)"),
                              "renamed_" + number(random, 0, 999));
  return std::string(match.prefix()) + edit.replace(match, random) + std::string(match.suffix());
}

/// Of a specification; empty where it is refused.
std::string hashOf(const std::string &text, mlir::MLIRContext &context) {
  FrontendResult result = compileTexts({{"edited.boa", text}}, {});
  if (!result.spec)
    return "";
  return hashCanonicalText(printCanonicalText(*generateModel(*result.spec, context)));
}

/// Edits examples until so many specifications were accepted, and every row of the table was in
/// one of them; names the seed of each that fails.
void edit(const std::vector<Edit> &table, unsigned mostAtOnce, bool changes) {
  mlir::MLIRContext context;
  unsigned accepted = 0, seed = 0;
  std::set<size_t> accepted_rows;
  for (; (accepted < kEdits || accepted_rows.size() < table.size()) && seed < 20 * kEdits; ++seed) {
    std::mt19937 random(seed);
    const std::string name = kExamples[random() % std::size(kExamples)];
    std::ifstream file(BOA_SOURCE_DIR "/examples/" + name + ".boa");
    const std::string original{std::istreambuf_iterator<char>(file), {}};
    std::string edited = original;
    std::set<size_t> rows;
    for (unsigned i = 0, count = 1 + random() % mostAtOnce; i < count; ++i) {
      const size_t row = random() % table.size();
      std::string next = apply(table[row], edited, random);
      if (next != edited)
        rows.insert(row);
      edited = std::move(next);
    }
    const std::string hash = hashOf(edited, context);
    if (edited == original || hash.empty())
      continue;
    ++accepted;
    accepted_rows.insert(rows.begin(), rows.end());
    EXPECT_EQ(hash != hashOf(original, context), changes)
        << "seed " << seed << ", " << name << ":\n"
        << edited;
  }
  EXPECT_GE(accepted, kEdits) << "of " << seed << " that were tried";
  for (size_t row = 0; row < table.size(); ++row)
    EXPECT_TRUE(accepted_rows.count(row)) << "always refused: " << table[row].pattern;
}

} // namespace

TEST(Computation, EditsOfTheModelChangeIt) { edit(changes(), 1, true); }

TEST(Computation, EditsOfNamesOrderAndSettingsKeepIt) { edit(renamings(), 4, false); }

} // namespace boa::frontend
