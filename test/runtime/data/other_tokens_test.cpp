//===- other_tokens_test.cpp - Other data, other tokenizers ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/other_tokens.h"

#include "runtime/data/tokenizer_print.h"

#include "gtest/gtest.h"

namespace boa {
namespace {

using Settings = std::map<std::string, std::string>;

// Tokens of another tokenizer mean other texts. Where they are the same ones, they do not.
TEST(DescribeOtherTokens, NamesAnotherTokenizer) {
  const Settings committed = {{"files of a.txt", "1 file with fingerprint 1"},
                              {"call of a.txt", "text(\"a.txt\", tokenizer = \"old.json\")"},
                              {"tokenizer of a.txt", "old"}};
  auto with = [&](const Settings &more) {
    Settings now = more;
    now.insert(committed.begin(), committed.end());
    return DescribeOtherTokens(committed, now);
  };
  EXPECT_EQ(with({}), "");
  EXPECT_EQ(with({{"tokenizer of a.txt", "new"}}), "");
  EXPECT_EQ(with({{"tokenizer of moved/a.txt", "new"},
                  {"files of moved/a.txt", "1 file with fingerprint 1"}}),
            "");
  EXPECT_EQ(with({{"tokenizer of b.txt", "old"}, {"files of b.txt", "1 file"}}), "");
  EXPECT_EQ(with({{"tokenizer of b.txt", "new"},
                  {"files of b.txt", "1 file"},
                  {"call of b.txt", "text(\"b.txt\", tokenizer = \"new.json\")"}}),
            "text(\"b.txt\", tokenizer = \"new.json\"): its tokenizer is not the one of the data "
            "that the state was trained on, so its tokens mean other texts");
  // An earlier commit, or one of bytes, does not say.
  EXPECT_EQ(DescribeOtherTokens({}, committed), "");
}

TEST(DescribeOtherTokens, NamesOtherSpecialTokens) {
  const Settings committed = {{"special tokens", "5 with fingerprint 1"}};
  EXPECT_EQ(DescribeOtherTokens(committed, committed), "");
  EXPECT_EQ(DescribeOtherTokens({}, committed), "");
  EXPECT_EQ(
      DescribeOtherTokens(committed, {{"special tokens", "4 with fingerprint 2"}}),
      "the special tokens of the data, which masked training leaves alone, have changed since "
      "the commit: they were 5 with fingerprint 1, and are 4 with fingerprint 2");
}

TEST(NoteOtherTokenizer, NamesTheFile) {
  const std::string tokenizer = BOA_GOLDEN "/gpt2.json", other = BOA_GOLDEN "/metaspace.json";
  const Settings committed = {{"tokenizer of a.txt", *PrintOfTokenizer(tokenizer)}};
  EXPECT_EQ(NoteOtherTokenizer(committed, tokenizer), "");
  EXPECT_EQ(NoteOtherTokenizer(committed, other),
            "note: `" + other +
                "` is not the tokenizer of the data that the state was trained on, so its tokens "
                "may mean other texts");
  // Of bytes, or without a commit. What cannot be read is an error elsewhere.
  EXPECT_EQ(NoteOtherTokenizer({{"data", "text"}}, other), "");
  EXPECT_EQ(NoteOtherTokenizer(committed, BOA_GOLDEN "/none.json"), "");
}

} // namespace
} // namespace boa
