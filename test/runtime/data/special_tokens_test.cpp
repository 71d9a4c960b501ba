//===- special_tokens_test.cpp - Tokens that masked training leaves alone -===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/data.h"
#include "runtime/formats/json.h"
#include "runtime/tokenizer/tokenizer.h"
#include "test/runtime/scratch.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace boa {
namespace {

// A commit tells which they are, so that another tokenizer of the same tokens is not silent. The
// mask is a setting of its own.
TEST(SpecialTokens, AreAmongTheFacts) {
  Scratch scratch;
  const std::string golden = absl::StrCat(BOA_GOLDEN, "/wordpiece.json");
  auto unmarked = *ParseJson(ReadWhole(golden));
  for (auto &token : unmarked["added_tokens"])
    token["special"] = false;
  scratch.Write("raw.bin", std::string(4000, '\1'));
  DataOptions options;
  options.vocab = (*Tokenizer::Open(golden))->size();
  options.context = 16;
  options.micro_batch = options.micro_batches = 1;
  options.objective = Objective::masked;
  const auto facts = [&](const std::string &tokenizer, int64_t mask) {
    options.data = absl::StrCat("tokens(\"", scratch.path("raw.bin"), "\", uint8, tokenizer = \"",
                                tokenizer, "\")");
    options.mask_token = mask;
    const absl::StatusOr<Data> data = Data::Open(options);
    EXPECT_TRUE(data.ok()) << data.status();
    return data.ok() ? data->facts() : std::map<std::string, std::string>();
  };
  const auto marked = facts(golden, 3), other = facts(scratch.Write("t.json", unmarked.dump()), 3);
  EXPECT_EQ(marked.at("data"), other.at("data"));
  EXPECT_NE(marked.at(kSpecialTokens), other.at(kSpecialTokens));
  EXPECT_EQ(marked.at(kSpecialTokens), facts(golden, 40).at(kSpecialTokens));
  options.objective = Objective::next_token;
  EXPECT_EQ(facts(golden, 3).count(kSpecialTokens), 0u);
}

} // namespace
} // namespace boa
