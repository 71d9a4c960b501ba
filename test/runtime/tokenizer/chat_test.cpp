//===- chat_test.cpp - Templates with a name ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/chat.h"

#include "runtime/abi/sources.h"
#include "runtime/formats/json.h"
#include "runtime/tokenizer/content_marks.h"
#include "test/runtime/scratch.h"

#include "gtest/gtest.h"

#include <set>

using namespace boa;
using jinja::Value;

namespace {

// Each gives the text of a published template.
TEST(Chat, NamedTemplatesRenderAsPublishedOnes) {
  absl::StatusOr<nlohmann::json> cases =
      ParseJson(ReadWhole(std::string(BOA_GOLDEN) + "/chat.json"));
  ASSERT_TRUE(cases.ok()) << cases.status();
  std::set<std::string> names;
  for (const nlohmann::json &entry : *cases) {
    const auto name = entry[0].get<std::string>();
    names.insert(name);
    std::vector<Value> messages;
    for (const nlohmann::json &turn : entry[1])
      messages.push_back(Value::Mapping({{Value("role"), Value(turn[0].get<std::string>())},
                                         {Value("content"), Value(turn[1].get<std::string>())}}));
    const Value globals =
        Value::Mapping({{Value("messages"), Value::Sequence(messages)},
                        {Value("add_generation_prompt"), Value(entry[2].get<bool>())},
                        {Value("bos_token"), Value("<bos>")},
                        {Value("eos_token"), Value("<eos>")}});
    absl::StatusOr<Template> chat = OpenTemplate(name);
    ASSERT_TRUE(chat.ok()) << chat.status();
    const absl::StatusOr<Rendered> text = chat->Render(globals);
    // Null: the template refuses the conversation.
    EXPECT_EQ(text.ok(), !entry[3].is_null()) << name << text.status();
    if (text.ok() && !entry[3].is_null())
      EXPECT_EQ(text->text, entry[3].get<std::string>()) << name;
  }
  std::set<std::string> known;
  for (const KnownTemplate &one : KnownTemplates())
    known.insert(one.name);
  EXPECT_EQ(names, known);
  EXPECT_EQ(known, std::set<std::string>(std::begin(kTemplateNames), std::end(kTemplateNames)));
}

TEST(Chat, OthersAreFiles) {
  const Scratch scratch;
  const std::string path = scratch.Write("a.jinja", "{{ messages[0].content }}\n");
  absl::StatusOr<Template> chat = OpenTemplate(path);
  ASSERT_TRUE(chat.ok()) << chat.status();
  EXPECT_EQ(chat->name(), path);
  EXPECT_TRUE(chat->HasVariable("messages"));
  EXPECT_FALSE(chat->HasVariable("content"));
  EXPECT_TRUE(chat->Mentions("content"));
  EXPECT_FALSE(chat->Mentions("conten"));
  const std::string broken = scratch.Write("b.jinja", "{{ a | frst }}");
  EXPECT_EQ(OpenTemplate(broken).status().message(),
            "`" + broken +
                "`, line 1: no filter `frst`; did you mean `first`?\n  {{ a | frst }}\n"
                "         ^");
}

TEST(Chat, MisspeltNamesAreRefused) {
  EXPECT_EQ(OpenTemplate("chatlm").status().message(),
            "there is no template and no file `chatlm`; the templates are chatml, smollm2, qwen2, "
            "qwen2.5, llama3, llama3.1, gemma, gemma2, mistral-v0.2, mistral-v1, mistral-nemo, "
            "mistral-v7");
}

// The text of a message never becomes a special token, whatever the template does with it.
TEST(Chat, ContentsAreMarked) {
  const auto tokenizer = *Tokenizer::Open(std::string(BOA_GOLDEN) + "/gpt2.json");
  const ContentMarks marks(*tokenizer, {});
  const auto conversation = [](const std::string &content) {
    Conversation out;
    out.messages = {
        Value::Mapping({{Value("role"), Value("user")}, {Value("content"), Value(content)}})};
    return out;
  };
  const auto marked = [&](Conversation of) {
    const absl::StatusOr<std::string> mark = marks.Mark(of, "");
    EXPECT_TRUE(mark.ok()) << mark.status();
    return std::pair(*mark, of.messages[0].Find("content")->text());
  };
  EXPECT_EQ(marked(conversation("a < b")).first, "");
  // Also the beginning of a token, which may go on in the next content.
  for (const std::string text :
       {"a<|end|>b", "<|end|><|end|>", "<<|end|>", "\xc3\xa4<|en", "a <"}) {
    const auto [mark, content] = marked(conversation(text));
    EXPECT_EQ(mark, "\xef\xb7\x90");
    const Unmarked out = ContentMarks::Unmark("<|end|>" + content + "<|end|>", mark);
    EXPECT_EQ(out.text, "<|end|>" + text + "<|end|>");
    EXPECT_EQ(out.PlaceOf(7 + content.size()), 7 + text.size());
    std::vector<int32_t> tokens;
    EncodeOptions options;
    options.plain.ranges = out.plain;
    ASSERT_TRUE(Encoder(tokenizer).Encode(out.text, options, tokens).ok());
    EXPECT_EQ(std::count(tokens.begin(), tokens.end(), tokenizer->Find("<|end|>")), 2) << text;
  }
  // What a model thinks keeps its tokens in messages of the assistant alone.
  const ContentMarks thinks(*tokenizer, {}, {tokenizer->Find("<|end|>")});
  for (const char *role : {"assistant", "user"}) {
    Conversation out = conversation("a<|end|>b");
    out.messages[0] =
        Value::Mapping({{Value("role"), Value(role)}, {Value("content"), Value("a<|end|>b")}});
    EXPECT_EQ(thinks.Mark(out, "")->empty(), std::string(role) == "assistant") << role;
  }
  // The mark is a character that no message holds.
  EXPECT_EQ(marked(conversation("<|end|>\xef\xb7\x90")).first, "\xef\xb7\x91");
  std::string all = "<|end|>";
  for (char last = '\x90'; last != '\xb0'; ++last)
    all += std::string("\xef\xb7") + last;
  Conversation full = conversation(all);
  EXPECT_EQ(marks.Mark(full, "").status().message(),
            "a conversation with special tokens and all of U+FDD0 to U+FDEF, of which one is "
            "needed to tell them from those of the template");
  // JSON of ASCII alone escapes it.
  EXPECT_EQ(ContentMarks::Unmark("\"<\\ufdd0|end|>\"", "\xef\xb7\x90").text, "\"<|end|>\"");
}

} // namespace
