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
  auto encoder = ConversationEncoder::Create(Opened(), {"chatml"}, scratch.path("tokenizer.json"));
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

/// A tokenizer with the tokens of thoughts, which are special or not.
class ThoughtsTest : public TokenizedTest, public testing::WithParamInterface<bool> {
protected:
  ThoughtsTest() {
    auto tokenizer = *ParseJson(ReadWhole(scratch.path("tokenizer.json")));
    int32_t id = kEnd;
    for (const char *text : {"<think>", "</think>", "[INST]", "[/INST]"})
      tokenizer["added_tokens"].push_back({{"id", ++id},
                                           {"content", text},
                                           {"single_word", false},
                                           {"lstrip", false},
                                           {"rstrip", false},
                                           {"normalized", false},
                                           {"special", GetParam()}});
    scratch.Write("tokenizer.json", tokenizer.dump());
  }
  absl::StatusOr<ConversationEncoder> Make(const std::string &jinja) {
    return ConversationEncoder::Create(Opened(), {scratch.Write("t.jinja", jinja)},
                                       scratch.path("tokenizer.json"));
  }
  /// Added tokens stand in braces. `all`: not only what is learnt.
  std::string Learnt(const std::string &jinja, const std::string &line, bool all = false) {
    auto encoder = Make(jinja);
    if (!encoder.ok())
      return std::string(encoder.status().message());
    const auto record = ParseRecord(line, [&](bool t) { return encoder->TemplateFor(t); });
    EXPECT_TRUE(record.ok()) << record.status();
    const auto documents = encoder->Encode(*record);
    if (!documents.ok())
      return std::string(documents.status().message());
    const auto tokenizer = Opened();
    std::string out;
    for (const LearntTokens &document : *documents)
      for (size_t i = 0; i < document.tokens.size(); ++i)
        if (const int32_t token = document.tokens[i]; all || document.targets[i])
          absl::StrAppend(&out, tokenizer->IsAdded(token) ? "{" : "", tokenizer->TextOf(token),
                          tokenizer->IsAdded(token) ? "}" : "");
    return out;
  }
  static std::string Line(const std::string &user, const std::string &answer,
                          const std::string &more = "") {
    return absl::StrCat(R"({"messages": [{"role": "user", "content": ")", user,
                        R"("}, {"role": "assistant", "content": ")", answer, "\"}]", more, "}");
  }
};

constexpr char kAsked[] = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
               kLoop[] = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
                         "<|im_end|>\n{% endfor %}";

// The tokens of a thought are the model's: templates find them in an answer, and it learns them.
TEST_P(ThoughtsTest, ThoughtsAreTokens) {
  // A template asks with the end of one, and drops that of an answer.
  const std::string drops =
      "{% for m in messages %}{% if m.role != 'assistant' %}<|im_start|>{{ m.content }}{% else %}"
      "<|im_end|></think>{{ m.content.split('</think>')[-1] }}<|end|>{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}<|im_end|></think>{% endif %}";
  EXPECT_EQ(Learnt(drops, Line("q", "hm</think>ans")), "ans{<|end|>}");
  // It writes both, or asks for none.
  const std::string takes =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
      "<think>\n{{ m.content.split('</think>')[0].split('<think>')[-1].strip() "
      "if '</think>' in m.content }}\n</think>\n\n{{ m.content.split('</think>')[-1].strip() }}"
      "{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}"
      "<|im_start|>assistant\n<think>\n{{ '' if enable_thinking else '\\n</think>\\n\\n' }}"
      "{% endif %}";
  const std::string thought = "<think>\\nhm\\n</think>\\n\\nans";
  EXPECT_EQ(Learnt(takes, Line("q", thought, R"(, "enable_thinking": true)")),
            "hm\n{</think>}\n\nans{<|im_end|>}");
  EXPECT_THAT(Learnt(takes, Line("q", thought)),
              HasSubstr("it asks with `\\x0a</think>\\x0a\\x0a` and writes `hm\\x0a</think>"));
  EXPECT_EQ(Learnt(takes, Line("q", "ans")), "ans{<|im_end|>}");
  // A template's own words about them change nothing.
  const std::string mentions = "<|im_start|>system\nUse <think> and </think>.<|im_end|>\n";
  for (const std::string &first : {std::string(), mentions})
    EXPECT_EQ(Learnt(first + kLoop + kAsked, Line("q", "<think>hm</think>ans")),
              "{<think>}hm{</think>}ans{<|im_end|>}");
}

// Nothing that a user writes ends or opens a turn, whether or not the file calls its token special.
TEST_P(ThoughtsTest, TurnsAreTheTemplates) {
  const std::string form =
      "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %}"
      "{{ m.content }}<|end|>{% endif %}{% endfor %}";
  EXPECT_EQ(Learnt(form, Line("a [/INST] b<|end|>[INST]", "c[/INST]"), /*all=*/true),
            "{[INST]} a [/INST] b<|end|>[INST] {[/INST]}c[/INST]{<|end|>}");
  // A thought in a message of a user is what transformers makes of it, unless it is special.
  EXPECT_EQ(Learnt(absl::StrCat(kLoop, kAsked), Line("<think>", "c"), /*all=*/true),
            absl::StrCat("{<|im_start|>}user\n", GetParam() ? "<think>" : "{<think>}",
                         "{<|im_end|>}\n{<|im_start|>}assistant\nc{<|im_end|>}\n"));
}

// Where the text depends on whether a content has tokens or letters, it is not known what to learn.
TEST_P(ThoughtsTest, TemplatesThatLookForTokens) {
  const std::string form =
      "{% for m in messages %}<|im_start|>{{ m.content.split('<|im_end|>')[0] }}<|im_end|>"
      "{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}";
  const std::string refusal =
      absl::StrCat("`", scratch.path("t.jinja"),
                   "`: the template looks for special tokens in contents, which "
                   "are text here. Behind `<|im_start|>a<|im_end|>` it writes `");
  EXPECT_EQ(Learnt(form, Line("a<|im_end|>b", "c")),
            refusal + "<|im_start|>c<|im_end|>` where they are tokens, and "
                      "`b<|im_end|><|im_start|>c<|im_end|>` where they are text");
  auto encoder = Make(form);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  const absl::Status status = encoder->EncodeQuestion({{"user", "a<|im_end|>b"}}, tokens);
  EXPECT_THAT(std::string(status.message()), testing::StartsWith(refusal));
  EXPECT_TRUE(encoder->EncodeQuestion({{"user", "a<|im_end |>b"}}, tokens).ok());
}

// A template that teaches no end, or what opens the next turn, is refused at once.
TEST_P(ThoughtsTest, TemplatesWithoutAnEnd) {
  const std::string said = absl::StrCat("`", scratch.path("tokenizer.json"), "`: the template ",
                                        scratch.path("t.jinja"));
  EXPECT_EQ(Learnt(absl::StrCat("Talk: ", kLoop,
                                "<|im_start|>"
                                "{% if add_generation_prompt %}<|im_start|>{% endif %}"),
                   Line("a", "b")),
            said +
                " writes `<|im_end|>\\x0a<|im_start|>` behind an answer, and `<|im_start|>` to ask "
                "for one, so a model would learn to go on behind the end");
  scratch.Write("tokenizer_config.json", "{}");
  EXPECT_EQ(
      Learnt("{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}", Line("a", "b")),
      said + " writes nothing behind an answer, so a model would not learn where to end; two "
             "steps mend that: `eos_token` in tokenizer_config.json beside the file names a "
             "token that ends a text, and `{{ eos_token }}` behind the answers of the "
             "template writes it");
}

INSTANTIATE_TEST_SUITE_P(Special, ThoughtsTest, testing::Bool());

// With {% generation %}, tokens and targets are those of transformers (make-golden.py).
TEST_F(TokenizedTest, TargetsAreThoseOfTransformers) {
  const auto cases = *ParseJson(ReadWhole(std::string(BOA_MASKS) + "/masks.json"));
  for (size_t i = 1; i < cases.size(); ++i) {
    const auto name = cases[i][0].get<std::string>();
    const std::string file = scratch.Write("chat.jinja", cases[0][name].get<std::string>());
    auto encoder = ConversationEncoder::Create(Opened(), {file}, scratch.path("tokenizer.json"));
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
  const auto encoder = ConversationEncoder::Create(Opened(), {}, scratch.path("tokenizer.json"));
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
  auto encoder = ConversationEncoder::Create(Opened(), {}, scratch.path("tokenizer.json"));
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

// Values hold for each record that does not give its own, and are text as contents are.
TEST_F(TokenizedTest, ValuesOfTemplates) {
  const std::string form = scratch.Write(
      "mode.jinja", "{% if not mode %}{{ raise_exception('no mode') }}{% endif %}{{ mode }}:"
                    "{% for d in documents or [] %}{{ d }}{% endfor %}"
                    "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
                    "{% if add_generation_prompt %}<|im_start|>{% endif %}");
  auto encoder = ConversationEncoder::Create(
      Opened(),
      {form, R"({"mode": "fast<|im_end|>", "mod": 1, "thinking": "x", "documents": ["D"]})"},
      scratch.path("tokenizer.json"));
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  EXPECT_EQ(encoder->EndOfAnswer(), "<|im_end|>"); // the template was tried with them
  // Not each record must read them.
  EXPECT_EQ(encoder->DescribeUnreadValues(),
            "note: the chat template does not read `mod`, `thinking`, which template_values gives");
  const auto text = [&](const std::string &keys, int ends) {
    const auto record = ParseRecord(keys + std::string(kHello).substr(1), [&](bool has_tools) {
      return encoder->TemplateFor(has_tools);
    });
    EXPECT_TRUE(record.ok()) << record.status();
    const auto documents = encoder->Encode(*record);
    EXPECT_TRUE(documents.ok()) << documents.status();
    if (!documents.ok())
      return std::string();
    tokens = (*documents)[0].tokens;
    EXPECT_EQ(std::count(tokens.begin(), tokens.end(), kEnd), ends);
    return *Decode(Opened(), tokens, true);
  };
  const std::string rest = "<|im_start|>Hi<|im_end|><|im_start|>Yes<|im_end|>";
  EXPECT_EQ(text("{", 2), "fast<|im_end|>:D" + rest);
  EXPECT_EQ(text(R"({"mode": null, "documents": [], )", 2), "fast<|im_end|>:D" + rest);
  EXPECT_EQ(text(R"({"mode": "slow", "documents": ["D"], )", 2), "slow:D" + rest);
  EXPECT_EQ(text(R"({"chat_template_kwargs": {"mode": "slow"}, "documents": ["E"], )", 2),
            "slow:E" + rest);
  tokens.clear();
  ASSERT_TRUE(encoder->EncodeQuestion({{"user", "Hi"}}, tokens).ok());
  EXPECT_EQ(*Decode(Opened(), tokens, true),
            "fast<|im_end|>:D<|im_start|>Hi<|im_end|><|im_start|>");

  // Other values are other tokens. Those that nothing reads are noted when tokens are made.
  scratch.Write("a.jsonl", std::string(kHello) + kHello);
  std::set<std::string> prints;
  for (const char *values : {R"({"mode": "a"})", R"({"mode": "b", "mod": 1})"}) {
    options.data = absl::StrReplaceAll(
        Call("chat", "a.jsonl"),
        {{"\"chatml\")", absl::StrCat("\"", form, "\", template_values = ", values, ")")}});
    options.validate = options.data;
    prints.insert(Open().facts().at("data"));
    EXPECT_THAT(said, HasSubstr("made "));
  }
  EXPECT_EQ(prints.size(), 2u);
  EXPECT_THAT(said, HasSubstr("\nnote: the chat template does not read `mod`, which "
                              "template_values gives\n"));
}

// A token in a value is text. So it is none that the template writes, and no answer ends with it.
TEST_F(TokenizedTest, TokensInValuesAreText) {
  constexpr int32_t kCall = kEnd + 1;
  auto file = *ParseJson(ReadWhole(scratch.path("tokenizer.json")));
  file["added_tokens"].push_back({{"id", kCall},
                                  {"content", "<|call|>"},
                                  {"single_word", false},
                                  {"lstrip", false},
                                  {"rstrip", false},
                                  {"normalized", false},
                                  {"special", false}});
  scratch.Write("tokenizer.json", file.dump());
  const auto make = [&](const std::string &end, const std::string &values) {
    const std::string form = scratch.Write(
        "t.jinja",
        absl::StrCat("{{ hint }}{% for m in messages %}<|im_start|>{{ m.content }}", end,
                     "{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}"));
    return ConversationEncoder::Create(Opened(), {form, values}, scratch.path("tokenizer.json"));
  };
  const std::string line = absl::StrReplaceAll(kHello, {{"Yes", "<|call|>go"}});
  for (const char *values : {R"({"hint": "call"})", R"({"hint": "<|call|>"})"}) {
    auto encoder = make("<|im_end|>", values);
    ASSERT_TRUE(encoder.ok()) << encoder.status();
    const auto documents = encoder->Encode(*ParseRecord(line));
    ASSERT_TRUE(documents.ok()) << documents.status();
    const LearntTokens &document = (*documents)[0];
    int calls = 0;
    for (size_t i = 0; i < document.tokens.size(); ++i)
      calls += document.targets[i] && document.tokens[i] == kCall;
    EXPECT_EQ(calls, 1) << values;
  }
  EXPECT_THAT(std::string(make("{{ eot }}", R"({"eot": "<|im_end|>"})").status().message()),
              HasSubstr("ends an answer with a value, and a special token in a value is text"));
}

} // namespace
} // namespace boa
