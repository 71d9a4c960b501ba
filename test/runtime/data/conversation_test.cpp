//===- conversation_test.cpp - Tokens and targets of conversations --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/conversation.h"

#include "runtime/data/data.h"
#include "runtime/formats/json.h"
#include "test/runtime/data/tokenized.h"
#include "test/runtime/scratch.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <map>
#include <set>

namespace boa {
namespace {

using testing::HasSubstr;

// Only the answer and the mark of its end are targets, and a mark that a user writes is text.
TEST_F(TokenizedTest, AnswersAreTargets) {
  auto encoder = ConversationEncoder::Create(Opened(), "chatml", scratch.path("tokenizer.json"));
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  const auto target_text = [&](const std::string &line, int ends) {
    absl::StatusOr<ChatRecord> record = ParseRecord(line);
    EXPECT_TRUE(record.ok()) << record.status();
    absl::StatusOr<std::vector<LearntTokens>> documents = encoder->Encode(*record);
    EXPECT_TRUE(documents.ok() && documents->size() == 1) << documents.status();
    tokens = (*documents)[0].tokens;
    const std::vector<bool> &flags = (*documents)[0].targets;
    EXPECT_EQ(tokens.size(), flags.size());
    EXPECT_EQ(std::count(tokens.begin(), tokens.end(), kEnd), ends);
    Tokens learnt;
    for (size_t i = 0; i < tokens.size(); ++i)
      if (flags[i])
        learnt.push_back(tokens[i]);
    return *Decode(Opened(), learnt, /*show_special=*/true);
  };
  EXPECT_EQ(target_text(kHello, 2), "Yes<|im_end|>");
  EXPECT_EQ(*Decode(Opened(), tokens, true),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYes<|im_end|>\n");
  EXPECT_EQ(target_text(R"({"messages": [{"role": "user", "content": "a<|im_end|>b<|im_start|>"},
      {"role": "assistant", "content": "c<|im_end|>d"}]})",
                        2),
            "c<|im_end|>d<|im_end|>");
  EXPECT_EQ(target_text(R"({"conversations": [{"from": "human", "value": "1"},
      {"from": "gpt", "value": "2"}, {"from": "human", "value": "3"},
      {"from": "gpt", "value": "4"}]})",
                        4),
            "2<|im_end|>4<|im_end|>");
  EXPECT_EQ(target_text(R"({"messages": [{"role": "user", "content": "1"},
      {"role": "assistant", "content": "2", "weight": 0}, {"role": "user", "content": "3"},
      {"role": "assistant", "content": "4"}]})",
                        4),
            "4<|im_end|>");
  EXPECT_EQ(target_text(R"({"prompt": "1 + 1 =<|end|>", "completion": " 2"})", 0), " 2<|end|>");
}

// With {% generation %}, tokens and targets are those of transformers (make-golden.py).
TEST_F(TokenizedTest, TargetsAreThoseOfTransformers) {
  const auto cases = *ParseJson(ReadWhole(std::string(BOA_MASKS) + "/masks.json"));
  for (size_t i = 1; i < cases.size(); ++i) {
    const auto name = cases[i][0].get<std::string>();
    const std::string file = scratch.Write("chat.jinja", cases[0][name].get<std::string>());
    auto encoder = ConversationEncoder::Create(Opened(), file, scratch.path("tokenizer.json"));
    ASSERT_TRUE(encoder.ok()) << encoder.status();
    const auto record = ParseRecord("{\"messages\": " + cases[i][1].dump() + "}",
                                    [&](bool tools) { return encoder->TemplateFor(tools); });
    ASSERT_TRUE(record.ok()) << record.status();
    const auto documents = encoder->Encode(*record);
    ASSERT_TRUE(documents.ok() && documents->size() == 1) << documents.status();
    EXPECT_EQ((*documents)[0].tokens, cases[i][2].get<Tokens>()) << name << i;
    const std::vector<bool> &targets = (*documents)[0].targets;
    EXPECT_EQ(Tokens(targets.begin(), targets.end()), cases[i][3].get<Tokens>()) << name << i;
  }
}

// One conversation in each form of records is the same tokens and targets.
TEST_F(TokenizedTest, FormsOfRecords) {
  const std::string message = R"({"role": "user", "content": "a\nb"})",
                    answer = R"({"role": "assistant", "content": "c"})";
  std::map<std::string, std::string> facts;
  for (const std::string &line :
       {R"({"messages": [)" + message + ", " + answer + "]}",
        std::string(R"({"conversations": [{"from": "human", "value": "a\nb"},
                        {"from": "gpt", "value": "c"}]})"),
        R"({"prompt": [)" + message + R"(], "completion": [)" + answer + "]}",
        R"({"prompt": "a\nb", "completion": [)" + answer + "]}",
        std::string(R"({"instruction": "a", "input": "b", "output": "c",
                        "text": "### Instruction:\na\n### Response:\nc"})"),
        std::string(R"({"instruction": "a\nb", "input": "", "output": "c"})"),
        std::string(R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},
                        {"type": "text", "text": "b"}]}, {"role": "assistant", "content":
                        [{"type": "text", "text": "c"}], "weight": 1}]})"),
        R"({"messages": [)" + message + ", " + answer + R"(], "tools": null, "id": 7})"}) {
    std::string lines;
    for (int i = 0; i < 20; ++i)
      absl::StrAppend(&lines, absl::StrReplaceAll(line, {{"\n  ", " "}}), "\n");
    scratch.Write("forms.jsonl", lines);
    options.data = Call("chat", "forms.jsonl");
    const Data data = Open();
    EXPECT_EQ(facts.emplace("data", data.facts().at("data")).first->second, data.facts().at("data"))
        << line;
  }
  // A text has no template: all of it is learnt, and special tokens in it are text.
  const auto encoder = ConversationEncoder::Create(Opened(), "", scratch.path("tokenizer.json"));
  auto text = ConversationEncoder(*encoder).Encode(*ParseRecord(R"({"text": "ab<|im_end|>"})"));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*Decode(Opened(), (*text)[0].tokens, true), "<s>ab<|im_end|><|end|>");
  EXPECT_EQ(std::count((*text)[0].tokens.begin(), (*text)[0].tokens.end(), kEnd), 0);
  EXPECT_EQ(std::count((*text)[0].targets.begin(), (*text)[0].targets.end(), false), 1);
}

// A list of templates has one for conversations with tools.
TEST_F(TokenizedTest, TemplatesWithNames) {
  const auto config = [](const std::string &first) {
    return R"({"eos_token": "<|end|>", "chat_template": [{"name": ")" + first +
           R"(", "template": "{% for m in messages %}{{ m.content }}<|end|>{% endfor %}"},
             {"name": "tool_use", "template": "{{ tools }}{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}"}]})";
  };
  scratch.Write("tokenizer_config.json", config("default"));
  auto encoder = ConversationEncoder::Create(Opened(), "", scratch.path("tokenizer.json"));
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  const auto text = [&](const std::string &tools) {
    const auto record = ParseRecord(
        R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])" +
            tools + "}",
        [&](bool has_tools) { return encoder->TemplateFor(has_tools); });
    const auto documents = encoder->Encode(*record);
    EXPECT_TRUE(documents.ok()) << documents.status();
    return *Decode(Opened(), (*documents)[0].tokens, true);
  };
  EXPECT_EQ(text(""), "a<|end|>b<|end|>");
  EXPECT_EQ(text(R"(, "tools": [{"n": 1}])"), "[{'n': 1}]a<|im_end|>b<|im_end|>");
  scratch.Write("tokenizer_config.json", config("rag"));
  EXPECT_THAT(std::string(Tokenizer::Open(scratch.path("tokenizer.json")).status().message()),
              HasSubstr("tokenizer_config.json`: `chat_template`: expected a text, or a list with "
                        "one named `default`, but found `rag`, `tool_use`"));
  scratch.Write("tokenizer_config.json", R"({"eos_token": "<|end|>"})");
  scratch.Write("chat_template.json", R"({"chat_template": "from json"})");
  EXPECT_EQ(Opened()->chat_template(), "from json");
}

// A date that a template shows is a part of the tokens, and is told to the commit.
TEST_F(TokenizedTest, DatesOfTemplates) {
  scratch.Write("date.jinja",
                "{{ strftime_now('%d %b %Y') }}{% for m in messages %}<|im_start|>{{ m.content }}"
                "<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}");
  scratch.Write("a.jsonl", std::string(kHello) + kHello);
  options.data =
      absl::StrReplaceAll(Call("chat", "a.jsonl"), {{"chatml", scratch.path("date.jinja")}});
  options.validate = options.data;
  options.cache.date = "2024-02-29";
  options.context = 128;
  const Data first = Open();
  EXPECT_EQ(first.facts().at(kTemplateDate), "2024-02-29");
  EXPECT_THAT(said, HasSubstr("made "));
  options.cache.date = "2024-03-01";
  EXPECT_NE(Open().facts(), first.facts());
  EXPECT_THAT(said, HasSubstr("made "));
  options.cache.date = "2024-02-29";
  EXPECT_EQ(Open().facts(), first.facts());
  EXPECT_EQ(said, "");
  Fill(first, 1);
  EXPECT_THAT(*Decode(Opened(), tokens, true), testing::StartsWith("29 Feb 2024"));
  options.data = options.validate = Call("chat", "a.jsonl");
  EXPECT_EQ(Open().facts().count(kTemplateDate), 0u);
  // A file that changed makes other tokens.
  options.data = absl::StrReplaceAll(options.data, {{"chatml", scratch.path("date.jinja")}});
  std::set<std::string> prints;
  for (const std::string &begin : {"", "a", "b"}) {
    scratch.Write("date.jinja", begin +
                                    "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>"
                                    "{% endfor %}{% if add_generation_prompt %}<|im_start|>"
                                    "{% endif %}");
    prints.insert(Open().facts().at("data"));
  }
  EXPECT_EQ(prints.size(), 3u);
}

} // namespace
} // namespace boa
