//===- golden_test.cpp - Tokens as the original libraries give them -------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// golden/ has a small tokenizer of each kind, and what the library that it was made for gives for
// some texts (make-golden.py).
//
//===----------------------------------------------------------------------===//
#include "runtime/formats/json.h"
#include "runtime/tokenizer/readers.h"
#include "runtime/tokenizer/tokenizer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

using namespace boa;

namespace {

using Shared = std::shared_ptr<const Tokenizer>;

std::string Path(const std::string &name) { return std::string(BOA_GOLDEN) + "/" + name; }

std::string ReadFile(const std::string &name) {
  std::ifstream file(Path(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Shared Require(absl::StatusOr<Shared> tokenizer) {
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *tokenizer : nullptr;
}

/// The small byte-level vocabulary with another family's pattern.
Shared WithFamily(const std::string &family) {
  absl::StatusOr<Definition> definition = ReadHuggingFace(ReadFile("gpt2.json"), "gpt2.json");
  EXPECT_TRUE(definition.ok()) << definition.status();
  std::vector<Matcher> matchers;
  EXPECT_TRUE(MatchersForFamily(family, matchers)) << family;
  definition->splits.clear();
  for (Matcher &matcher : matchers) {
    definition->splits.emplace_back();
    definition->splits.back().matcher = std::move(matcher);
  }
  if (family == "qwen2")
    definition->normalizers.emplace_back();
  return Require(Tokenizer::Create(*std::move(definition), family));
}

std::map<std::string, Shared> Tokenizers() {
  std::map<std::string, Shared> all;
  for (const char *name : {"gpt2", "wordpiece", "metaspace"})
    all[name] = Require(Tokenizer::Open(Path(absl::StrCat(name, ".json"))));
  all["spm"] = Require(Tokenizer::Open(Path("spm.model")));
  all["tiktoken"] = Require(Tokenizer::Open(Path("cl100k.tiktoken"), "cl100k"));
  all["llama3"] = WithFamily("llama3");
  all["qwen2"] = WithFamily("qwen2");
  all["qwen35"] = WithFamily("qwen35");
  all["o200k"] = WithFamily("gpt-4o");
  all["tekken"] = WithFamily("tekken");
  return all;
}

/// Tokens come one by one, and each text that is given is whole.
std::string DecodeOneByOne(const Shared &tokenizer, const std::vector<int32_t> &tokens) {
  StreamDecoder decoder(tokenizer);
  std::string text;
  for (int32_t token : tokens) {
    absl::StatusOr<std::string> next = decoder.Add(token);
    EXPECT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(FindInvalidUtf8(*next), std::string::npos);
    text += *next;
  }
  return text + decoder.Finish();
}

TEST(Golden, TokensAndTexts) {
  const std::map<std::string, Shared> tokenizers = Tokenizers();
  std::map<std::string, Encoder> encoders;
  for (const auto &[name, tokenizer] : tokenizers) {
    ASSERT_TRUE(tokenizer) << name;
    encoders.emplace(name, Encoder(tokenizer));
  }
  absl::StatusOr<nlohmann::json> cases = ParseJson(ReadFile("cases.json"));
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_GT(cases->size(), 300u);
  for (const nlohmann::json &entry : *cases) {
    const auto name = entry[0].get<std::string>(), text = entry[1].get<std::string>();
    const auto expected = entry[2].get<std::vector<int32_t>>();
    std::vector<int32_t> tokens;
    const EncodeOptions options;
    ASSERT_TRUE(encoders.at(name).Encode(text, options, tokens).ok()) << name << ": " << text;
    EXPECT_EQ(tokens, expected) << name << ": " << entry[1];
    EXPECT_EQ(DecodeOneByOne(tokenizers.at(name), expected), entry[3].get<std::string>())
        << name << ": " << entry[1];
  }
}

// Merging and splitting take no quadratic time: these would take hours.
TEST(Golden, MegabyteOfOneCharacter) {
  for (const auto &[name, tokenizer] : Tokenizers())
    for (const char *unit :
         {"a", " ", "\n", "'", "7", "\xe4\xb8\xad", "A\xe3\x81\x82", "\xcc\x81\xcc\xa7"}) {
      std::string text;
      const bool long_run = (*unit == 'a' && (name == "gpt2" || name == "spm")) ||
                            (*unit == '\xcc' && name == "qwen2");
      while (text.size() < (long_run ? 1000000 : 20000))
        text += unit;
      std::vector<int32_t> tokens;
      ASSERT_TRUE(Encoder(tokenizer).Encode(text, {false, true}, tokens).ok()) << name << unit;
      absl::StatusOr<std::string> decoded = Decode(tokenizer, tokens);
      ASSERT_TRUE(decoded.ok());
      if (name != "wordpiece" && name != "qwen2")
        EXPECT_TRUE(*decoded == text) << name << unit;
    }
}

/// The fault that a changed file shows.
std::string FaultOf(const std::string &from, const std::string &to,
                    const std::string &file = "gpt2.json") {
  std::string text = ReadFile(file);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  absl::StatusOr<Definition> definition = ReadHuggingFace(text, file);
  if (!definition.ok())
    return std::string(definition.status().message());
  absl::StatusOr<Shared> tokenizer = Tokenizer::Create(*std::move(definition), file);
  return tokenizer.ok() ? "" : std::string(tokenizer.status().message());
}

TEST(Refusals, HuggingFace) {
  EXPECT_EQ(FaultOf("\"type\":\"BPE\"", "\"type\":\"Unigram\""),
            "`gpt2.json`: the model is `Unigram`; BPE and WordPiece can be read");
  EXPECT_EQ(FaultOf("\"normalizer\":null", "\"normalizer\":{\"type\":\"Nmt\"}"),
            "`gpt2.json`: the normalizer `Nmt` is not done");
  EXPECT_EQ(FaultOf("\"pre_tokenizer\":{\"type\":\"ByteLevel\"",
                    "\"pre_tokenizer\":{\"type\":\"UnicodeScripts\""),
            "`gpt2.json`: the pre-tokenizer `UnicodeScripts` is not done");
  EXPECT_EQ(FaultOf("\"pre_tokenizer\":{\"type\":\"ByteLevel\"",
                    "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a+b\"}"),
            "`gpt2.json`: the split pattern `a+b` is none of those that are known");
  EXPECT_EQ(FaultOf("\"decoder\":{\"type\":\"ByteLevel\"", "\"decoder\":{\"type\":\"CTC\""),
            "`gpt2.json`: the decoder `CTC` is not done");
  EXPECT_EQ(FaultOf("\"dropout\":null", "\"dropout\":0.1"),
            "`gpt2.json`: `model.dropout` is 0.1: merges are never left out");
  EXPECT_EQ(FaultOf("\"!\":2", "\"!\":3"), "`gpt2.json`: tokens `!` and `\\\"` have one id, 3");
  EXPECT_EQ(FaultOf("\"!\":2", "\"\\\"\":2"),
            "`gpt2.json`: the key `\"` stands twice in one object");
  EXPECT_EQ(FaultOf("\"!\":2", "\"!\":4000000"), "`gpt2.json`: ids up to 4000000 for 420 tokens");
  EXPECT_EQ(FaultOf("\"!\":2", "\"!\":-2"),
            "`gpt2.json`: token `!` has the id -2, which is not a number from 0 to 4194303");
  EXPECT_EQ(FaultOf("\"merges\":[", "\"merges\":[[\"t\",\"\"],"),
            "`gpt2.json`: merge 0, of `t` and ``: `` is no token");
  EXPECT_EQ(FaultOf("\"merges\":[", "\"merges\":[[\"z\",\"q\"],"),
            "`gpt2.json`: merge 0, of `z` and `q`: `zq` is no token");
  EXPECT_EQ(FaultOf("{\"id\":1,", "{\"id\":0,"),
            "`gpt2.json`: added tokens `<s>` and `<|end|>` have one id, 0");
  EXPECT_EQ(FaultOf("\"normalizer\":null", "\"normalizer\":" + std::string(100, '[')),
            "`gpt2.json`: nested deeper than 64");
  EXPECT_TRUE(absl::StartsWith(FaultOf("\"normalizer\":null", "\"normalizer\":\"\xff\""),
                               "`gpt2.json`: no JSON at byte "));
}

// A step that doubles a letter, again and again, makes a megabyte of it, and of a text terabytes.
TEST(Refusals, StepsThatGrow) {
  const auto normalizers = [](const std::string &step, int count) {
    std::string all = step;
    for (int i = 1; i < count; ++i)
      all += "," + step;
    return FaultOf("\"normalizer\":null",
                   "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[" + all + "]}");
  };
  const std::string twice = R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})";
  EXPECT_EQ(normalizers(twice, 4), "");
  EXPECT_EQ(normalizers(twice, 5),
            "`gpt2.json`: its steps make up to 32 bytes of one, where at most 16 are allowed");
  EXPECT_EQ(normalizers(twice, 24),
            "`gpt2.json`: its steps make up to 1.67772e+07 bytes of one, where at most 16 are "
            "allowed");
  EXPECT_EQ(normalizers(R"({"type":"Prepend","prepend":"0123456789"})", 7),
            "`gpt2.json`: its steps put up to 70 bytes before a text, where at most 64 are "
            "allowed");
  // What stands before each piece, and pieces of one byte.
  const std::string wide = R"({"type":"Metaspace","replacement":"01234567","prepend_scheme":)"
                           R"("always"})";
  const auto splits = [&](const std::string &steps) {
    return FaultOf("\"pre_tokenizer\":{\"type\":\"ByteLevel\"",
                   "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" + steps +
                       "]},\"other\":{\"type\":\"ByteLevel\"");
  };
  EXPECT_EQ(splits(wide), "`gpt2.json`: the decoder ByteLevel without that pre-tokenizer");
  EXPECT_EQ(splits(R"({"type":"ByteLevel"},)" + wide + "," + wide),
            "`gpt2.json`: its steps make up to 256 bytes of one, where at most 16 are allowed");
  std::string around =
      R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s"}},)"
      R"({"Sequence":{"id":"A"}}],"special_tokens":{"s":{"ids":[)";
  for (int i = 0; i < 65; ++i)
    around += i ? ",0" : "0";
  EXPECT_EQ(FaultOf("\"post_processor\":", around + "]}}},\"other\":"),
            "`gpt2.json`: puts 65 tokens around a text, where at most 64 are allowed");
}

TEST(Refusals, Texts) {
  Encoder encoder(Require(Tokenizer::Open(Path("gpt2.json"))));
  std::vector<int32_t> tokens;
  EXPECT_EQ(encoder.Encode("one\ntwo\xff", {}, tokens).message(),
            "byte 7 (line 2) is 0xff, which is not UTF-8 there: convert the text to UTF-8");
  EXPECT_TRUE(tokens.empty());
  StreamDecoder decoder(Require(Tokenizer::Open(Path("gpt2.json"))));
  EXPECT_EQ(decoder.Add(420).status().message(), "token 420: the tokenizer has tokens 0 to 419");
}

// A model's folder says which token ends a text, and how conversations look.
TEST(Folder, HasItsConfig) {
  const std::string folder = testing::TempDir() + "boa-tokenizer-test/";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "tokenizer.json") << ReadFile("gpt2.json");
  EXPECT_EQ(Require(Tokenizer::Open(folder + "tokenizer.json"))->eos(), -1);
  std::ofstream(folder + "tokenizer_config.json")
      << R"({"bos_token":{"content":"<s>"},"eos_token":"<|end|>","chat_template":"old"})";
  std::ofstream(folder + "chat_template.jinja") << "new";
  const Shared tokenizer = Require(Tokenizer::Open(folder + "tokenizer.json"));
  EXPECT_EQ(tokenizer->bos(), 0);
  EXPECT_EQ(tokenizer->eos(), 1);
  EXPECT_EQ(tokenizer->chat_template(), "new");
  std::ofstream(folder + "tokenizer_config.json") << R"({"eos_token":"</s>"})";
  EXPECT_EQ(Tokenizer::Open(folder + "tokenizer.json").status().message(),
            "`" + folder + "tokenizer_config.json`: `eos_token` is `</s>`, which is no token");
  std::filesystem::remove_all(folder);
}

// As text, a special token is made of other tokens.
TEST(Special, CountsAsText) {
  const Shared tokenizer = Require(Tokenizer::Open(Path("gpt2.json")));
  std::vector<int32_t> marks, text;
  ASSERT_TRUE(Encoder(tokenizer).Encode("a<|end|>", {false, true}, marks).ok());
  ASSERT_TRUE(Encoder(tokenizer).Encode("a<|end|>", {false, false}, text).ok());
  EXPECT_EQ(marks.size(), 2u);
  EXPECT_EQ(marks.back(), tokenizer->Find("<|end|>"));
  EXPECT_GT(text.size(), 4u);
  EXPECT_EQ(*Decode(tokenizer, marks), "a");
  EXPECT_EQ(*Decode(tokenizer, text), "a<|end|>");
}

} // namespace
