//===- gguf_tokenizer_test.cpp - Tokenizers of GGUF files -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/gguf_tokenizer.h"

#include "runtime/tokenizer/tokenizer.h"
#include "runtime/weights/folder_files.h"

#include "test/runtime/scratch.h"
#include "test/runtime/weights/gguf.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cstdint>

namespace boa {
namespace {

using testing::HasSubstr;
using Texts = std::vector<std::string>;

/// A vocabulary of bytes, some merges, and four control tokens.
Gguf ByteLevel(const std::string &family) {
  Texts tokens, merges = {"e l", "l o", "el lo", "\u0120 a", "1 2"};
  std::vector<int32_t> types;
  int next = 256;
  for (int b = 0; b < 256; ++b) {
    const int point = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae ? b : next++;
    tokens.push_back(point < 128 ? std::string(1, char(point))
                                 : std::string{char(0xc0 | point >> 6), char(0x80 | (point & 63))});
  }
  for (const std::string token : {"el", "lo", "ello", "\u0120a", "12"})
    tokens.push_back(token);
  types.assign(tokens.size(), 1);
  for (const std::string token : {"<s>", "</s>", "<eot>", "<eom>"}) {
    tokens.push_back(token);
    types.push_back(3);
  }
  Gguf file("tokenizer.");
  file.Text("ggml.model", "gpt2").Text("ggml.pre", family).List("ggml.tokens", tokens);
  file.List("ggml.token_type", 5, types).List("ggml.merges", merges);
  file.Number("ggml.bos_token_id", 261).Number("ggml.eos_token_id", 262);
  return file;
}

/// A SentencePiece model of bytes and a few words.
Gguf Scored(std::vector<float> scores = {-1, -2, -3, -4, -5, -6, -7, -8, -9, -10}) {
  Texts tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {2, 3, 3};
  for (int b = 0; b < 256; ++b) {
    constexpr char kHex[] = "0123456789ABCDEF";
    tokens.push_back(std::string("<0x") + kHex[b / 16] + kHex[b % 16] + ">");
    types.push_back(6);
  }
  scores.insert(scores.begin(), tokens.size(), 0.0f);
  for (const std::string token :
       {"\u2581a", "el", "lo", "ello", "\u2581", "a", "e", "l", "o", "\u00e9"}) {
    tokens.push_back(token);
    types.push_back(1);
  }
  Gguf file("tokenizer.");
  file.Text("ggml.model", "llama").List("ggml.tokens", tokens).List("ggml.token_type", 5, types);
  return file.List("ggml.scores", 6, scores);
}

class GgufTokenizerTest : public testing::Test {
protected:
  /// The files that an import writes.
  std::string Import(const Gguf &file) {
    std::filesystem::remove_all(scratch.path("m.hf"));
    scratch.Write("m.gguf", file.Bytes());
    absl::StatusOr<std::string> note = CopySmallFiles(scratch.path("m.gguf"), scratch.path("m.hf"));
    EXPECT_TRUE(note.ok()) << note.status();
    return note.value_or("");
  }
  /// Both give the same tokens, and end at the same.
  void ExpectSame() {
    const auto file = Tokenizer::Open(scratch.path("m.gguf")),
               written = Tokenizer::Open(scratch.path("m.hf/tokenizer.json"));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(written.ok()) << written.status();
    for (const std::string text : {"hello a 1234 o'lo", " a", "  a  ello\n\nlo ", "<s>hello</s>",
                                   "\u00e9 e\u0301 \u4e2d", "elloelloello", "A'LL it's", ""}) {
      std::vector<int32_t> expected, found;
      const EncodeOptions options;
      ASSERT_TRUE(Encoder(*file).Encode(text, options, expected).ok());
      ASSERT_TRUE(Encoder(*written).Encode(text, options, found).ok());
      if (text != "<s>hello</s>") // behind a token the published files have a space
        EXPECT_EQ(found, expected) << text;
      EXPECT_EQ(*Decode(*written, expected), *Decode(*file, expected)) << text;
    }
    EXPECT_EQ((*written)->bos(), (*file)->bos());
    EXPECT_EQ((*written)->eos(), (*file)->eos());
    for (int32_t id = 0; id < (*file)->size(); ++id)
      EXPECT_EQ((*written)->Ends(id), (*file)->Ends(id)) << id;
  }

  Scratch scratch{FastDirectory()};
};

TEST_F(GgufTokenizerTest, WritesEachKnownFamily) {
  for (const char *family : {"gpt-2", "smollm", "llama-bpe", "llama3", "llama-v3", "qwen2",
                             "qwen35", "gpt-4o", "tekken", "cl100k", "starcoder"}) {
    SCOPED_TRACE(family);
    EXPECT_EQ(Import(ByteLevel(family)), "");
    ExpectSame();
  }
  Gguf around = ByteLevel("qwen2");
  around.Flag("ggml.add_bos_token", true).Flag("ggml.add_eos_token", true);
  EXPECT_EQ(Import(around), "");
  ExpectSame();
}

TEST_F(GgufTokenizerTest, WritesSentencePiece) {
  EXPECT_EQ(Import(Scored()), "");
  ExpectSame();
  EXPECT_EQ(Import(Scored().Flag("ggml.add_space_prefix", false).Flag("ggml.add_eos_token", true)),
            "");
  ExpectSame();
}

TEST_F(GgufTokenizerTest, KeepsTheEndsOfTurns) {
  Gguf file = ByteLevel("llama3");
  file.Number("ggml.eot_token_id", 263).Number("ggml.eom_token_id", 264);
  EXPECT_EQ(Import(file), "");
  ExpectSame();
  const auto written = *Tokenizer::Open(scratch.path("m.hf/tokenizer.json"));
  EXPECT_EQ(written->eos(), 262);
  for (int32_t id : {262, 263, 264})
    EXPECT_TRUE(written->Ends(id)) << id;
  EXPECT_FALSE(written->Ends(261));
}

TEST_F(GgufTokenizerTest, KeepsTheChatTemplates) {
  for (const bool with_tools : {false, true}) {
    Gguf file = ByteLevel("llama3");
    file.Text("chat_template", "{{ messages }}").Number("ggml.padding_token_id", 263);
    if (with_tools)
      file.Text("chat_template.tool_use", "{{ tools }}");
    EXPECT_EQ(Import(file), "");
    const Definition::Chat of_file = (*Tokenizer::Open(scratch.path("m.gguf")))->chat(),
                           written =
                               (*Tokenizer::Open(scratch.path("m.hf/tokenizer.json")))->chat();
    EXPECT_EQ(of_file.jinja, "{{ messages }}");
    EXPECT_EQ(written.jinja, of_file.jinja);
    EXPECT_EQ(of_file.with_tools, with_tools ? "{{ tools }}" : "");
    EXPECT_EQ(written.with_tools, of_file.with_tools);
    EXPECT_EQ(of_file.tokens,
              (std::vector{std::pair<std::string, std::string>("pad_token", "<eot>")}));
    EXPECT_EQ(written.tokens, of_file.tokens);
  }
  // Another one takes the place of all.
  ASSERT_TRUE(CopySmallFiles(scratch.path("m.hf"), scratch.path("own"), "{{ own }}\n").ok());
  const Definition::Chat own = (*Tokenizer::Open(scratch.path("own/tokenizer.json")))->chat();
  EXPECT_EQ(own.jinja, "{{ own }}\n");
  EXPECT_EQ(own.with_tools, "");
}

TEST_F(GgufTokenizerTest, SaysThatThereIsNone) {
  const std::string begin = "no tokenizer stands in " + scratch.path("m.hf") +
                            ", and none will in an export: `" + scratch.path("m.gguf") + "`: ";
  EXPECT_EQ(Import(ByteLevel("viking")), begin + "the pre-tokenizer `viking` is not done");
  EXPECT_EQ(Import(Gguf("tokenizer.").Text("ggml.model", "t5")),
            begin + "the tokenizer model `t5` is not done; gpt2, llama and bert can be read");
  EXPECT_EQ(Import(Gguf("tokenizer.")), begin + "it has no tokenizer");
  EXPECT_EQ(Import(Scored({-1, -2, -2, -4, -5, -6, -7, -8, -9, -10})),
            begin + "two of its tokens have the same score");
  // Nor has an export of it.
  absl::StatusOr<std::string> note = CopySmallFiles(scratch.path("m.hf"), scratch.path("out"));
  ASSERT_TRUE(note.ok()) << note.status();
  EXPECT_EQ(*note, "`" + scratch.path("m.hf") + "` has no tokenizer, so " + scratch.path("out") +
                       " has none: transformers needs its files there");
}

} // namespace
} // namespace boa
