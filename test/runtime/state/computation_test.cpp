//===- computation_test.cpp - What differs between two computations -------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/computation.h"
#include "runtime/state/new_adapters.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <gtest/gtest.h>

#include <random>

namespace boa {
namespace {

using Lines = std::vector<std::string>;

const char *const kText = R"(stage embed
  param wte [256, 64]
  input [32]
  %1 = embedding @wte, input : [32, 64]
  return %1
stage block repeat 4
  param n [64]
  param gate [64, 96]
  param up [64, 96]
  param down [96, 64]
  input [32, 64]
  %1 = rms_norm input, @n {eps = 1e-05} : [32, 64]
  %2 = split %1 : [32, 32], [32, 32]
  %3 = attention %2, %2#1, %2 {causal, heads = 6} : [32, 64], [6, 32]
  %4 = linear %3, @up : [32, 96]
  %5 = linear %3, @gate : [32, 96]
  %6 = gelu %5 : [32, 96]
  %7 = mul %4, %6 : [32, 96]
  %8 = linear %7, @down : [32, 64]
  %9 = add input, %8 : [32, 64]
  return %9
)";

/// What is said when pieces of the text are replaced.
Lines Edited(std::initializer_list<std::pair<absl::string_view, absl::string_view>> pieces) {
  const std::string text = absl::StrReplaceAll(kText, pieces);
  EXPECT_NE(text, kText);
  return DescribeDifferences(kText, text);
}

// Each difference once, in the words of a spec, and nothing that only follows from it.
TEST(ComputationTest, DifferencesAreSaidInTheWordsOfASpec) {
  EXPECT_EQ(DescribeDifferences(kText, kText), Lines());
  EXPECT_EQ(Edited({{"gelu", "silu"}}), Lines{"block: gelu became silu"});
  EXPECT_EQ(Edited({{"heads = 6", "heads = 12"}, {"[6, 32]", "[12, 32]"}}),
            Lines{"block: heads was 6 and is 12 (attention)"});
  EXPECT_EQ(
      Edited({{"1e-05", "1e-06"}, {"causal, ", ""}}),
      (Lines{"block: eps was 1e-05 and is 1e-06 (rms_norm)", "block: causal is gone (attention)"}));
  EXPECT_EQ(Edited({{"%9 = add input, %8 : [32, 64]\n  return %9",
                     "%9 = scale %8 {factor = 0.5} : [32, 64]\n"
                     "  %10 = add input, %9 : [32, 64]\n  return %10"}}),
            Lines{"block: 0.5 * x is new"});
  EXPECT_EQ(DescribeDifferences("stage s\n  %1 = scale input {factor = 0.5} : [4]\n",
                                "stage s\n  %1 = scale input {factor = 2} : [4]\n"),
            Lines{"s: 0.5 * x became 2 * x"});
  EXPECT_EQ(Edited({{"= mul", "= add"}}), Lines{"block: x * y became x + y"});
  EXPECT_EQ(Edited({{"repeat 4", "repeat 6"}}), Lines{"block: repeat was 4 and is 6"});
  EXPECT_EQ(Edited({{"wte [256", "wte [512"}}), Lines{"embed: wte was [256, 64] and is [512, 64]"});
  EXPECT_EQ(
      Edited({{"param n [64]\n  param gate [64, 96]", "param gate [64, 96]\n  param n [64]"}}),
      Lines{"block: parameters stand in another order"});
  EXPECT_EQ(Edited({{"[32, 32], [32, 32]", "[32, 16], [32, 48]"}}),
            Lines{"block: split was [32, 32], [32, 32] and is [32, 16], [32, 48]"});
  EXPECT_EQ(Edited({{"%2, %2#1, %2 ", "%2#1, %2, %2 "}}),
            Lines{"block: attention takes its operands in another order"});
  EXPECT_EQ(Edited({{"= add input, %8", "= add %3, %8"}}),
            Lines{"block: x + y takes other operands"});
  EXPECT_EQ(Edited({{"@wte, input", "@embed, input"}}),
            Lines{"embed: embedding took wte and takes embed"});
  EXPECT_EQ(Edited({{"return %9", "return %8"}}), Lines{"block: returns another value"});
  EXPECT_EQ(Edited({{"stage embed", "stage tokens"}}),
            (Lines{"stage embed is gone", "stage tokens is new"}));
}

// A few lines are shown, of any text, in bounded time.
TEST(ComputationTest, AnyTextIsCompared) {
  EXPECT_EQ(DescribeDifferences("stage a\nstage b", "stage b\nstage a"),
            Lines{"`stage a` became `stage b`"});
  EXPECT_EQ(DescribeDifferences("x\n", "x"), Lines{"`` became nothing"});
  std::string many = "stage s\n", others = many;
  for (int i = 0; i < 20; ++i) {
    absl::StrAppend(&many, "  param a", i, " [1]\n");
    absl::StrAppend(&others, "  param b", i, " [1]\n");
  }
  const Lines lines = DescribeDifferences(many, others);
  ASSERT_EQ(lines.size(), 9u);
  EXPECT_EQ(lines.back(), "and 32 more");

  std::string ops = "stage s\n", other_ops = ops;
  for (int i = 0; i < 20000; ++i) {
    absl::StrAppend(&ops, "  %", i, " = a\n");
    absl::StrAppend(&other_ops, "  %", i, " = b\n");
  }
  EXPECT_EQ(DescribeDifferences(ops, other_ops), Lines{"s: 20000 of its ops became 20000 others"});

  const std::string alphabet = "%@=:{}[], \n\"a1#";
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    std::string damaged = kText;
    for (unsigned i = 0, count = 1 + random() % 20; i < count; ++i)
      damaged[random() % damaged.size()] = alphabet[random() % alphabet.size()];
    EXPECT_EQ(DescribeDifferences(kText, damaged).empty(), damaged == kText);
    EXPECT_EQ(DescribeDifferences(damaged, kText).empty(), damaged == kText);
  }
}

// A table is tied if anything but the embedding takes it, in its own stage or in another one.
TEST(ComputationTest, TiedTables) {
  const auto is_tied = [](const std::string &ops) {
    Computation computation;
    computation.text = "stage embed\n  param w [8, 4]\n" + ops;
    return IsTiedTable(computation, "embed", "w");
  };
  const std::string table = "  %1 = embedding @w, input : [2, 4]\n", head = "stage head\n";
  EXPECT_FALSE(is_tied(table));
  EXPECT_TRUE(is_tied(table + head + "  %1 = linear input, @embed.w {transpose} : [2, 8]\n"));
  EXPECT_TRUE(is_tied(table + "  %2 = linear %1, @w {transpose} : [2, 8]\n"));
  EXPECT_FALSE(is_tied(table + head +
                       "  %1 = linear input, @w : [2, 8]\n"
                       "  %2 = linear %1, @embed.w2 : [2, 8]\n"));
  EXPECT_FALSE(is_tied("  %1 = linear input, @w : [2, 4]\n  %2 = linear %1, @w : [2, 4]\n"));
}

// Adapters that are new are left out, with all that follows from them. What else differs stays.
TEST(ComputationTest, NewAdaptersAreLeftOut) {
  Program program;
  program.groups.resize(2);
  Parameter weight, down, up;
  weight.name = "gate", down.name = "gate_lora_a", up.name = "gate_lora_b";
  weight.adapter.down = down.name, weight.adapter.up = up.name;
  program.groups[0].name = program.groups[1].name = "block";
  program.groups[0].parameters = {weight};
  program.groups[1].parameters = {down, up};
  const std::string with =
      absl::StrReplaceAll(kText, {{"  param down [96, 64]\n", "  param down [96, 64]\n"
                                                              "  param gate_lora_a [4, 64]\n"
                                                              "  param gate_lora_b [96, 4]\n"},
                                  {"  %6 = gelu %5 : [32, 96]\n",
                                   "  %6 = linear %3, @gate_lora_a {transpose} : [32, 4]\n"
                                   "  %7 = scale %6 {factor = 2} : [32, 4]\n"
                                   "  %8 = linear %7, @gate_lora_b {transpose} : [32, 96]\n"
                                   "  %9 = add %5, %8 : [32, 96]\n"
                                   "  %10 = gelu %9 : [32, 96]\n"},
                                  {"%7 = mul %4, %6", "%11 = mul %4, %10"},
                                  {"%8 = linear %7, @down", "%12 = linear %11, @down"},
                                  {"%9 = add input, %8", "%13 = add input, %12"},
                                  {"return %9", "return %13"}});
  const std::string head = "stage head\n"
                           "  %1 = linear input, @block.gate : [32, 96]\n"
                           "  %2 = linear input, @block.gate_lora_a {transpose} : [32, 4]\n"
                           "  %3 = linear %2, @block.gate_lora_b {transpose} : [32, 96]\n"
                           "  %4 = add %1, %3 : [32, 96]\n"
                           "  return %4\n";
  program.computation.text = with + head;
  EXPECT_EQ(WithoutNewAdapters(program, kText),
            absl::StrCat(kText, "stage head\n  %1 = linear input, @block.gate : [32, 96]\n"
                                "  return %1\n"));
  program.computation.text = absl::StrReplaceAll(with, {{"gelu", "silu"}});
  EXPECT_EQ(DescribeDifferences(kText, *WithoutNewAdapters(program, kText)),
            Lines{"block: gelu became silu"});
  EXPECT_EQ(WithoutNewAdapters(program, with), std::nullopt);
  program.groups[0].parameters[0].adapter = {};
  EXPECT_EQ(WithoutNewAdapters(program, kText), std::nullopt);
}

// Another computation is refused or announced; one of another version is warned of.
TEST(ComputationTest, AnotherOneIsRefused) {
  const Computation ours{1, kText, "1"};
  const Computation other{1, absl::StrReplaceAll(kText, {{"gelu", "silu"}}), "2"};
  EXPECT_EQ(CheckComputation("state", ours, ours, false).value(), "");
  EXPECT_EQ(CheckComputation("state", other, ours, false).status().message(),
            "state belongs to another computation:\n  block: silu became gelu\n"
            "--changed-model goes on with its weights all the same");
  EXPECT_EQ(CheckComputation("state", other, ours, true).value(),
            "the computation changes, as --changed-model allows:\n  block: silu became gelu");
  EXPECT_EQ(CheckComputation("state", {}, ours, false).value(), "");
  EXPECT_EQ(CheckComputation("state", {2, "x", "3"}, ours, false).value(),
            "warning: the computation of state is of version 2 and the program's of version 1: "
            "only parameters and storages were compared");
}

} // namespace
} // namespace boa
