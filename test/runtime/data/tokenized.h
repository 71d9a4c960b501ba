//===- tokenized.h - Files of texts and conversations for tests -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_DATA_TOKENIZED_H
#define BOA_TEST_RUNTIME_DATA_TOKENIZED_H

#include "runtime/data/data.h"
#include "runtime/formats/json.h"
#include "runtime/tokenizer/tokenizer.h"
#include "test/runtime/scratch.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include <string>
#include <vector>

namespace boa {

using Tokens = std::vector<int32_t>;
inline constexpr int32_t kStart = 420, kEnd = 421; // <|im_start|> and <|im_end|>

/// The small GPT-2 of the tokenizer's tests, with the marks of chatml.
class TokenizedTest : public testing::Test {
protected:
  TokenizedTest() {
    auto tokenizer = *ParseJson(ReadWhole(std::string(BOA_GOLDEN) + "/gpt2.json"));
    for (auto [id, text] : {std::pair(kStart, "<|im_start|>"), std::pair(kEnd, "<|im_end|>")})
      tokenizer["added_tokens"].push_back({{"id", id},
                                           {"content", text},
                                           {"single_word", false},
                                           {"lstrip", false},
                                           {"rstrip", false},
                                           {"normalized", false},
                                           {"special", true}});
    scratch.Write("tokenizer.json", tokenizer.dump());
    scratch.Write("tokenizer_config.json", R"({"eos_token": "<|end|>"})");
    options.vocab = 422;
    options.context = 16;
    options.micro_batch = options.micro_batches = 1;
    options.cache.directory = scratch.path("cache");
    options.cache.say = [this](const std::string &text) { said += text + "\n"; };
  }

  std::string Call(const std::string &kind, const std::string &files) const {
    return absl::StrCat(kind, "(\"", scratch.path(files), "\", tokenizer = \"",
                        scratch.path("tokenizer.json"), "\"",
                        kind == "chat" ? ", template = \"chatml\")" : ")");
  }
  Data Open() {
    said = "";
    absl::StatusOr<Data> data = Data::Open(options);
    EXPECT_TRUE(data.ok()) << data.status();
    return data.ok() ? *std::move(data) : Data();
  }
  std::string Error() { return std::string(Data::Open(options).status().message()); }
  std::string ErrorOf(const std::string &lines) {
    scratch.Write("bad.jsonl", lines);
    options.data = Call("chat", "bad.jsonl");
    return Error();
  }
  /// Of an epoch.
  static int64_t Sequences(const Data &data) {
    const std::string text = data.Describe();
    return std::atoll(text.c_str() + text.rfind(", ", text.find(" to train on")) + 2);
  }
  void Fill(const Data &data, int64_t step) {
    tokens.resize(size_t(options.context));
    starts = targets = tokens;
    ASSERT_TRUE(data.FillTraining(step, 0, tokens.data(), targets.data(), starts.data()).ok());
  }
  std::shared_ptr<const Tokenizer> Opened() {
    return *Tokenizer::Open(scratch.path("tokenizer.json"));
  }

  Scratch scratch{FastDirectory()};
  DataOptions options;
  std::string said;
  Tokens tokens, targets, starts; // of a sequence
};

inline constexpr char kHello[] = R"({"messages": [{"role": "user", "content": "Hi"}, )"
                                 R"({"role": "assistant", "content": "Yes"}]})"
                                 "\n";

} // namespace boa

#endif // BOA_TEST_RUNTIME_DATA_TOKENIZED_H
