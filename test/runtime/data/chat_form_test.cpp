//===- chat_form_test.cpp - Texts of conversations, and what is learnt ----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/chat_form.h"
#include "runtime/data/conversation.h"
#include "runtime/data/records.h"
#include "runtime/formats/json.h"
#include "test/runtime/scratch.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <ctime>

namespace boa {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kChatml[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

class ChatFormTest : public testing::Test {
protected:
  /// The texts to learn from, with brackets around what is learnt, and a bar between two of them.
  absl::StatusOr<std::string> Marked(const std::string &jinja, const std::string &line) {
    absl::StatusOr<Template> parsed = Template::Parse(jinja, "chat.jinja");
    if (!parsed.ok())
      return parsed.status();
    const ChatForm form(*parsed,
                        {{{"bos_token", "<s>"}, {"eos_token", "</s>"}}, std::nullopt, added});
    absl::StatusOr<ChatRecord> record = ParseRecord(line, [&](bool) { return &form.jinja(); });
    if (!record.ok())
      return record.status();
    absl::StatusOr<std::vector<ChatText>> texts = form.Answers(record->conversation);
    if (!texts.ok())
      return texts.status();
    std::string out;
    for (const ChatText &text : *texts) {
      size_t done = 0;
      absl::StrAppend(&out, out.empty() ? "" : "|");
      for (const auto &[begin, end] : text.targets) {
        absl::StrAppend(&out, text.text.substr(done, begin - done), "[",
                        text.text.substr(begin, end - begin), "]");
        done = end;
      }
      absl::StrAppend(&out, text.text.substr(done));
    }
    return out;
  }
  std::string Text(const std::string &jinja, const std::string &line) {
    const absl::StatusOr<std::string> text = Marked(jinja, line);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.value_or("");
  }
  std::string Error(const std::string &jinja, const std::string &line) {
    return std::string(Marked(jinja, line).status().message());
  }

  std::vector<std::string> added; // tokens of the tokenizer
  const std::string two = R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
      {"role": "assistant", "content": "d"}]})",
                    first_not = R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b", "train": false}, {"role": "user", "content": "c"},
      {"role": "assistant", "content": "d"}]})";
};

// Without {% generation %}, an answer is what follows when the model is asked for it.
TEST_F(ChatFormTest, AnswersFollowTheQuestion) {
  EXPECT_EQ(Text(kChatml, two),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n[b<|im_end|>]\n"
            "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n[d<|im_end|>]\n");
  EXPECT_EQ(Text(kChatml, first_not),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
            "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n[d<|im_end|>]\n");
  // What stands before an answer, and is not asked with, is the model's.
  EXPECT_EQ(Text("{% for m in messages %}{% if m.role == 'user' %} [INST] {{ m.content }} [/INST]"
                 "{% else %} {{ m.content + eos_token }}{% endif %}{% endfor %}",
                 two),
            " [INST] a [/INST][ b</s>] [INST] c [/INST][ d</s>]");
  // The whole text may end with one more token.
  EXPECT_EQ(Text("{% for m in messages %}<{{ m.role }}>{{ m.content }}<|end|>\n{% endfor %}"
                 "{% if add_generation_prompt %}<assistant>{% else %}{{ eos_token }}{% endif %}",
                 two),
            "<user>a<|end|>\n<assistant>[b<|end|>]\n<user>c<|end|>\n<assistant>[d<|end|>\n</s>]");
  // Where that token is the mark itself, it must not be missing from an answer.
  EXPECT_EQ(Text("{% for m in messages %}<{{ m.role }}>{{ m.content }}"
                 "{{ eos_token if loop.last and m.role == 'assistant' else '<|end|>' }}{% endfor %}"
                 "{% if add_generation_prompt %}<assistant>{% endif %}",
                 two),
            "<user>a<|end|><assistant>[b</s>]|"
            "<user>a<|end|><assistant>b<|end|><user>c<|end|><assistant>[d</s>]");
  // Several answers may follow one another, and one may come first.
  EXPECT_EQ(Text(kChatml, R"({"messages": [{"role": "assistant", "content": "a"},
      {"role": "assistant", "content": "b"}]})"),
            "<|im_start|>assistant\n[a<|im_end|>]\n<|im_start|>assistant\n[b<|im_end|>]\n");
}

TEST_F(ChatFormTest, AnswersToNothing) {
  const std::string form =
      "{% if messages[0].role == 'system' %}S{% endif %}" + std::string(kChatml);
  const std::string line = R"({"messages": [{"role": "assistant", "content": "a"},
      {"role": "user", "content": "b"}, {"role": "assistant", "content": "c"}]})";
  EXPECT_THAT(
      Error(form, line),
      StartsWith("message 1 is an answer, and the template cannot ask for it without a "
                 "message; with \"train\": false it is not learnt: `chat.jinja`, line 1: "));
  EXPECT_THAT(Text(form, absl::StrReplaceAll(line, {{"\"a\"", "\"a\", \"train\": false"}})),
              StartsWith("<|im_start|>assistant\na<|im_end|>\n"));
}

// A template that leaves out of earlier answers what the model thought: each is learnt as it was
// written when it was the last.
TEST_F(ChatFormTest, AnswersThatAreWrittenAnew) {
  const std::string thinks =
      "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}"
      "{% set ns.last = loop.index %}{% endif %}{% endfor %}"
      "{% for m in messages %}<{{ m.role }}>"
      "{% if m.reasoning_content and loop.index > ns.last %}(({{ m.reasoning_content }})){% endif "
      "%}"
      "{{ m.content }}<end>\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
  const std::string line = R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b", "reasoning_content": "hm"},
      {"role": "user", "content": "c"}, {"role": "assistant", "content": "", "tool_calls": [],
      "reasoning_content": "call"}, {"role": "tool", "content": "5"},
      {"role": "assistant", "content": "d", "reasoning_content": "oh"}]})";
  EXPECT_EQ(Text(thinks, line),
            "<user>a<end>\n<assistant>[((hm))b<end>]\n"
            "|<user>a<end>\n<assistant>b<end>\n<user>c<end>\n<assistant>[((call))<end>]\n"
            "<tool>5<end>\n<assistant>[((oh))d<end>]\n");
}

// Where a model is asked in another way than it is taught, nothing is learnt.
TEST_F(ChatFormTest, PartingTextsAreRefused) {
  EXPECT_EQ(
      Error("{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
            "{% if add_generation_prompt %}<assistant><think>{% endif %}",
            two),
      "`chat.jinja`: the template asks for message 4 in another way than it writes it, so the "
      "model would not be asked as it was taught. Behind `>b<end><user>c<end><assistant>`, at "
      "byte 52, it asks with `<think>` and writes `d<end>`. {% generation %} in a "
      "template says what is learnt; template = \"FILE\" in chat(...) names another");
  // A template may ask alike in another mode.
  const std::string modes = "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
                            "{% if add_generation_prompt %}<assistant>"
                            "{{ '' if enable_thinking else '<think></think>' }}{% endif %}";
  EXPECT_THAT(
      Error(modes, two),
      testing::EndsWith("names another; \"enable_thinking\": true or false in the record may "
                        "make both alike"));
  EXPECT_THAT(Text(modes, "{\"enable_thinking\": true, " + two.substr(1)),
              StartsWith("<user>a<end><assistant>[b<end>]"));
}

TEST_F(ChatFormTest, GenerationSaysWhatIsLearnt) {
  const std::string form = "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}"
                           "{% generation %}{{ m.content }}{% endgeneration %}!"
                           "{% generation %}<end>\n{% endgeneration %}"
                           "{% else %}{{ m.content }}{% endif %}{% endfor %}";
  EXPECT_EQ(Text(form, two), "<user>a<assistant>[b]![<end>\n]<user>c<assistant>[d]![<end>\n]");
  EXPECT_EQ(Text(form, first_not), "<user>a<assistant>b!<end>\n<user>c<assistant>[d]![<end>\n]");
  EXPECT_EQ(Error("{% macro f(m) %}\n{% generation %}{{ m.content }}{% endgeneration %}"
                  "{% endmacro %}{% for m in messages %}{{ f(m) }}{% endfor %}",
                  two),
            "`chat.jinja`, line 2: a {% generation %} within a macro or a block whose text is used "
            "later, so its place in the conversation is not known");
}

// An answer that is not learnt loses its own blocks, by their places in the whole conversation.
TEST_F(ChatFormTest, BlocksOfOneMessage) {
  // One more block at the end of each text, which belongs to the last answer.
  const std::string closes =
      "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}"
      "{{ m.content }}<end>{% endgeneration %}{% else %}{{ m.content }}<end>{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% elif messages[-1].role == 'assistant' %}"
      "{% generation %}</s>{% endgeneration %}{% else %}</s>{% endif %}";
  EXPECT_EQ(Text(closes, first_not),
            "<user>a<end><assistant>b<end><user>c<end><assistant>[d<end>][</s>]");
  const std::string last_not = R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
      {"role": "assistant", "content": "d", "weight": 0}]})";
  EXPECT_EQ(Text(closes, last_not),
            "<user>a<end><assistant>[b<end>]<user>c<end><assistant>d<end></s>");
  // One more in the last answer alone.
  const std::string thinks =
      "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% if loop.last %}"
      "{% generation %}hm{{ m.content }}{% endgeneration %}|{% endif %}"
      "{% generation %}{{ m.content }}<end>{% endgeneration %}{% else %}{{ m.content }}{% endif %}"
      "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
  EXPECT_EQ(Text(thinks, first_not), "<user>a<assistant>b<end><user>c<assistant>[hmd]|[d<end>]");
  // Messages of other roles, where a template encloses them.
  const std::string any = "{% for m in messages %}<{{ m.role }}>{% if m.role == 'user' %}"
                          "{{ m.content }}{% else %}{% generation %}{{ m.content }}<end>"
                          "{% endgeneration %}{% endif %}{% endfor %}";
  const std::string model = R"({"messages": [{"role": "user", "content": "a", "train": false},
      {"role": "model", "content": "b", "train": false}, {"role": "user", "content": "c"},
      {"role": "assistant", "content": "d"}]})";
  const std::string not_b = "<user>a<model>b<end><user>c<assistant>[d<end>]";
  EXPECT_EQ(Text(any, model), not_b);
  EXPECT_EQ(Text(any, "{\"system\": \"s\", " + model.substr(1)), "<system>[s<end>]" + not_b);
  EXPECT_EQ(Text(any, absl::StrReplaceAll(model, {{", \"train\": false", ""}})),
            "<user>a<model>[b<end>]<user>c<assistant>[d<end>]");
  // Where no text up to a message begins the whole, nothing tells its blocks.
  const std::string counts = "{{ messages | length }}" + any;
  EXPECT_EQ(Error(counts, first_not), "`chat.jinja`: which {% generation %} is of message 2, which "
                                      "is not learnt, cannot be told");
  EXPECT_EQ(Text(counts, absl::StrReplaceAll(two, {{"\"a\"", "\"a\", \"train\": false"}})),
            "4<user>a<assistant>[b<end>]<user>c<assistant>[d<end>]");
}

// What a template writes only because a conversation ends there is no end of an answer.
TEST_F(ChatFormTest, EndsOfConversations) {
  const std::string loop = "{% for m in messages %}<turn><{{ m.role }}>{{ m.content }}<end>"
                           "{% endfor %}";
  added = {"<s>", "<turn>", "<end>", "</s>"};
  // The beginning of the next turn.
  EXPECT_EQ(Text("<s>" + loop + "<turn><assistant>", two),
            "<s><turn><user>a<end><turn><assistant>[b<end>]<turn><user>c<end><turn><assistant>"
            "[d<end>]<turn><assistant>");
  // A word behind long conversations.
  const std::string bye = loop + "{% if add_generation_prompt %}<turn><assistant>{% elif "
                                 "messages[-1].role == 'assistant' and messages | length > 2 %}BYE"
                                 "{% endif %}";
  EXPECT_EQ(Text(bye, two), "<turn><user>a<end><turn><assistant>[b<end>]<turn><user>c<end><turn>"
                            "<assistant>[d<end>]BYE");
  // A call may end in another way than an answer.
  EXPECT_EQ(Text(absl::StrReplaceAll(
                     bye, {{"<end>", "{{ '<call>' if m.tool_calls else '<end>' }}"}, {"BYE", ""}}),
                 R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant",
      "content": "<end>f", "tool_calls": [{"name": "f"}]}, {"role": "tool", "content": "5"},
      {"role": "assistant", "content": "d"}]})"),
            "<turn><user>a<end><turn><assistant>[<end>f<call>]<turn><tool>5<end><turn><assistant>"
            "[d<end>]");
}

TEST_F(ChatFormTest, ALongConversationCanBeStopped) {
  const ChatForm form(*Template::Parse(kChatml, "chat.jinja"), {});
  const auto record = ParseRecord(two);
  int asked = 0;
  const auto texts = form.Answers(record->conversation, [&] { return ++asked == 2; });
  EXPECT_TRUE(absl::IsCancelled(texts.status())) << texts.status();
  EXPECT_EQ(asked, 2);
}

// A content is a text or a list of parts. Templates that take one of them get it.
TEST_F(ChatFormTest, ContentsComeAsTheTemplateTakesThem) {
  const std::string parts = R"({"messages": [{"role": "user", "content": [{"type": "text",
      "text": "a"}, {"type": "text", "text": "b"}]}, {"role": "assistant", "content": "c"}]})";
  const std::string texts = "<|im_start|>user\na\nb<|im_end|>\n<|im_start|>assistant\n"
                            "[c<|im_end|>]\n";
  EXPECT_EQ(Text(kChatml, parts), texts);
  // One for parts alone, and one for both.
  const std::string loop = "{% for p in m.content %}({{ p.text }}){% endfor %}";
  for (const std::string &content :
       {loop, "{% if m.content is string %}({{ m.content }}){% else %}" + loop + "{% endif %}"})
    EXPECT_EQ(Text("{% for m in messages %}<{{ m.role }}>" + content +
                       "<end>{% endfor %}"
                       "{% if add_generation_prompt %}<assistant>{% endif %}",
                   parts),
              "<user>(a)(b)<end><assistant>[(c)<end>]");
  // One that takes parts of a user alone, and one that takes texts of a user alone.
  for (const auto &[user, other] : {std::pair(loop, std::string("{{ m.content }}")),
                                    std::pair(std::string("{{ m.content }}"), loop)})
    for (const std::string &line : {absl::StrReplaceAll(two, {{"\"a\"", R"([{"type": "text",
             "text": "a"}])"}}),
                                    absl::StrReplaceAll(two, {{"\"b\"", R"([{"type": "text",
             "text": "b"}])"}})})
      EXPECT_EQ(absl::StrReplaceAll(
                    Text("{% for m in messages %}<{{ m.role }}>{% if m.role == 'user' %}" + user +
                             "{% else %}" + other +
                             "{% endif %}<end>{% endfor %}"
                             "{% if add_generation_prompt %}<assistant>{% endif %}",
                         line),
                    {{"(", ""}, {")", ""}}),
                "<user>a<end><assistant>[b<end>]<user>c<end><assistant>[d<end>]");
}

// Calls go to the template as they are, but for arguments that it would write as a text in quotes.
TEST_F(ChatFormTest, ToolsGoToTheTemplate) {
  const std::string form =
      "{% if tools %}{% for t in tools %}{{ t | tojson }}\n{% endfor %}{% endif %}"
      "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
      "{{ c.function.name }} ARGUMENTS{% endfor %}<end>{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  const auto with = [&](const std::string &arguments) {
    std::string out = form;
    return out.replace(out.find("ARGUMENTS"), 9, arguments);
  };
  const std::string line = R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": null, "tool_calls": [{"type": "function", "function":
      {"name": "f", "arguments": "{\"z\": 1, \"b\": null}"}}]}, {"role": "tool", "content": "5"},
      {"role": "assistant", "content": "d"}], "tools": [{"type": "function", "function":
      {"name": "f", "description": "<&>"}}]})";
  const std::string expected =
      R"({"type": "function", "function": {"name": "f", "description": "<&>"}})"
      "\n<user>a<end><assistant>[f {\"z\": 1, \"b\": null}<end>]<tool>5<end><assistant>[d<end>]";
  EXPECT_EQ(Text(with("{{ c.function.arguments | tojson }}"), line), expected);
  EXPECT_EQ(
      Text(with("{{ c.function.arguments if c.function.arguments is string else 'no' }}"), line),
      expected);
  // What is no object would be learnt as a text in quotes.
  const std::string object = R"("{\"z\": 1, \"b\": null}")";
  for (const auto &[arguments, shown] :
       {std::pair(R"("{\"id\": 123456789012345678901}")",
                  "`{\"id\": 123456789012345678901}` is none: the number 123456789012345678901 has "
                  "more than 64 bits"),
        std::pair(R"("{\"a\": 1, \"a\": 2}")",
                  "`{\"a\": 1, \"a\": 2}` is none: the key `a` stands twice in one object"),
        std::pair(R"("{bad json}")", "`{bad json}` is none: no JSON at byte 2"),
        std::pair("\"[1]\"", "`[1]` is none")})
    EXPECT_EQ(
        Error(with("{{ c.function.arguments | tojson }}"),
              absl::StrReplaceAll(line, {{object, arguments}})),
        absl::StrCat("message 2: the template takes the arguments of a call as an object, but ",
                     shown));
  EXPECT_THAT(Text(with("{{ c.function.arguments | tojson }}"),
                   absl::StrReplaceAll(line, {{object, "\" \""}})),
              HasSubstr("[f {}<end>]"));
  // The same tools and calls, as other programs and tables write them.
  const std::string
      functions = R"("functions": [{"name": "f", "description": "<&>"}]})",
      json =
          R"("tools": "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"<&>\"}}]"})",
      items =
          R"("tools": ["{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"<&>\"}}"]})";
  for (const std::string &tools : {functions, json, items})
    EXPECT_EQ(Text(with("{{ c.function.arguments | tojson }}"),
                   line.substr(0, line.find("\"tools\"")) + tools),
              expected);
  EXPECT_EQ(
      Text(
          with("{{ c.function.arguments | tojson }}"),
          absl::StrReplaceAll(
              line,
              {{R"([{"type": "function", "function":
      {"name": "f", "arguments": "{\"z\": 1, \"b\": null}"}}])",
                R"("[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": {\"z\": 1, \"b\": null}}}]")"}})),
      expected);
  EXPECT_EQ(Text(with("{{ c.function.arguments | tojson }}"), R"({"conversations": [
      {"from": "human", "value": "a"}, {"from": "function_call", "value":
      "{\"name\": \"f\", \"arguments\": {\"z\": 1, \"b\": null}}"},
      {"from": "observation", "value": "5"}, {"from": "gpt", "value": "d"}], )" +
                                                                  functions),
            expected);
  // A template that reads no tools would let them be forgotten.
  EXPECT_EQ(
      Error(kChatml, R"({"messages": [{"role": "assistant", "content": "a"}], "tools": [{}]})"),
      "`tools` changes what the model reads or learns, and the template does not read it; "
      "where it should not count, remove it");
  EXPECT_EQ(Error(kChatml, R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b", "tool_calls": [{}]}]})"),
            "message 2 (assistant): `tool_calls` changes what the model reads or learns, and the "
            "template does not read it; where it should not count, remove it");
  EXPECT_EQ(Error(kChatml, R"({"messages": [{"role": "user", "content": [{"type": "image"}]},
      {"role": "assistant", "content": "b"}]})"),
            "message 1 of `messages`: a part of the type `image`, but a model here reads texts "
            "alone");
}

// A member that counts is refused if the text is the same without it, also where the template has
// its name.
TEST_F(ChatFormTest, WhatIsNotReadIsRefused) {
  const std::string calls =
      "{% for c in m.tool_calls or [] %}({{ c.function.name }}){% endfor %}<end>{% endfor %}";
  const std::string form = "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}" + calls;
  const auto line = [](const std::string &user, const std::string &answer,
                       const std::string &columns = "") {
    return R"({"messages": [{"role": "user", "content": "q")" + user +
           R"(}, {"role": "assistant", )" + answer + "}]" + columns + "}";
  };
  const std::string plain = R"("content": "a")",
                    one = R"("content": "", "tool_calls": [{"function": {"name": "f"}}])",
                    two = R"("content": "", "tool_calls": [{"function": {"name": "f"}},
                             {"function": {"name": "g"}}])";
  const auto unread = [](const std::string &what) {
    return StartsWith(what + " changes what the model reads or learns, and the template does not");
  };
  // The name of a tool is another one.
  EXPECT_THAT(Error(form, line(R"(, "name": "BOB")", plain)), unread("message 1 (user): `name`"));
  EXPECT_EQ(
      Text("{% for m in messages %}{{ m.name }}<{{ m.role }}>{{ m.content }}<end>{% endfor %}",
           line(R"(, "name": "BOB")", plain)),
      "BOB<user>q<end>[<assistant>a<end>]");
  // A branch that is taken with tools alone.
  const std::string branch = "{% if tools %}{{ tools }}" + form +
                             "{% else %}{% for m in messages %}<{{ m.role }}>"
                             "{{ m.content }}<end>{% endfor %}{% endif %}";
  EXPECT_THAT(Error(branch, line("", one)), unread("message 2 (assistant): `tool_calls`"));
  EXPECT_EQ(Text(branch, line("", one, R"(, "tools": [{"n": 1}])")),
            "[{'n': 1}]<user>q<end>[<assistant>(f)<end>]");
  // Some of a list, and what stands beside it.
  EXPECT_EQ(Text(form, line("", two)), "<user>q<end>[<assistant>(f)(g)<end>]");
  EXPECT_THAT(Error(absl::StrReplaceAll(form, {{"m.tool_calls or []", "(m.tool_calls or [])[:1]"}}),
                    line("", two)),
              unread("message 2 (assistant): `tool_calls`"));
  const std::string one_of_both =
      "{% for m in messages %}<{{ m.role }}>{{ m.content if not m.tool_calls }}" + calls;
  EXPECT_EQ(Text(one_of_both, line("", one)), "<user>q<end>[<assistant>(f)<end>]");
  EXPECT_THAT(Error(one_of_both, line("", absl::StrReplaceAll(one, {{"\"\"", "\"I look.\""}}))),
              unread("message 2 (assistant): `content`"));
  EXPECT_THAT(
      Error("{{ tools[0].n }}" + form, line("", plain, R"(, "tools": [{"n": 1}, {"n": 2}])")),
      unread("`tools`"));
  // A role that the template leaves out.
  const std::string known = "{% for m in messages if m.role in ('user', 'assistant', 'tool') %}"
                            "<{{ m.role }}>{{ m.content }}<end>{% endfor %}";
  const std::string before = R"({"messages": [{"role": "developer", "content": "Be."}, )",
                    rest = line("", plain).substr(14);
  EXPECT_THAT(Error(known, before + rest), unread("message 1 (developer): `content`"));
  EXPECT_EQ(Text(known, R"({"messages": [{"role": "developer", "content": ""}, )" + rest),
            "<user>q<end>[<assistant>a<end>]");
  // A text that is the template's own choice is read.
  EXPECT_EQ(Text("{{ messages[0].content if messages[0].role == 'system' else 'Be.' }}" + known,
                 absl::StrReplaceAll(before, {{"developer", "system"}}) + rest),
            "Be.<user>q<end>[<assistant>a<end>]");
  // A result of a tool follows its call, also where nothing names it.
  EXPECT_EQ(Text(known, R"({"messages": [{"role": "tool", "content": "5", "name": "f",
                          "tool_call_id": "1"}, {"role": "assistant", "content": "a"}]})"),
            "<tool>5<end>[<assistant>a<end>]");
  // One that writes all of a message reads each key.
  EXPECT_EQ(
      Text("{% for m in messages %}{{ m }}<end>{% endfor %}", line(R"(, "name": "B")", plain)),
      "{'role': 'user', 'content': 'q', 'name': 'B'}<end>"
      "[{'role': 'assistant', 'content': 'a'}<end>]");
}

// What the model thought is read where its answer is the last one.
TEST_F(ChatFormTest, ThoughtsAreReadInTheLastAnswer) {
  const std::string form = "{% for m in messages %}<{{ m.role }}>"
                           "{% if loop.last and m.thinking %}({{ m.thinking }}){% endif %}"
                           "{{ m.content }}<end>{% endfor %}";
  const std::string line = absl::StrReplaceAll(two, {{R"("b"})", R"("b", "thinking": "hm"})"}}),
                    first_alone =
                        absl::StrReplaceAll(line, {{R"("hm")", R"("hm", "train": false)"}});
  EXPECT_EQ(Text(form, line), "<user>a<end>[<assistant>(hm)b<end>]|"
                              "<user>a<end><assistant>b<end><user>c<end>[<assistant>d<end>]");
  EXPECT_EQ(Text(form, first_alone),
            "<user>a<end><assistant>b<end><user>c<end>[<assistant>d<end>]");
  EXPECT_THAT(Error(kChatml, line), StartsWith("message 2 (assistant): `thinking` changes what"));
}

// The line's own keys are variables of the template.
TEST_F(ChatFormTest, KeysAreVariables) {
  const std::string form = "{{ '/no ' if enable_thinking is false }}{% for d in documents or [] %}"
                           "{{ d.title }} {% endfor %}" +
                           std::string(kChatml);
  const std::string messages = R"("messages": [{"role": "assistant", "content": "a"}]})";
  for (const char *key :
       {R"("chat_template_kwargs": {"enable_thinking": false}, )", R"("enable_thinking": false, )"})
    EXPECT_THAT(Text(form, absl::StrCat("{", key, messages)), StartsWith("/no <"));
  EXPECT_THAT(Text(form, absl::StrCat(R"({"documents": [{"title": "T"}], )", messages)),
              StartsWith("T <"));
  // Also where the name may be that of a text which counts.
  const std::string thinks = "{% if thinking is not defined %}{% set thinking = true %}{% endif %}"
                             "{{ '(on)' if thinking else '(off)' }}" +
                             std::string(kChatml);
  for (const auto &[column, begin] :
       {std::pair("", "(on)<"), std::pair(R"("thinking": true, )", "(on)<"),
        std::pair(R"("thinking": false, )", "(off)<")})
    EXPECT_THAT(Text(thinks, absl::StrCat("{", column, messages)), StartsWith(begin));
  EXPECT_THAT(Error(kChatml, absl::StrCat(R"({"thinking": true, )", messages)),
              StartsWith("`thinking` changes what the model reads or learns, and is not done"));
  // A variable of the template's own is none that a record gives.
  EXPECT_THAT(Error("{% set context = 'c' %}{{ context }}" + std::string(kChatml),
                    absl::StrCat(R"({"context": "Paris", )", messages)),
              StartsWith("`context` changes what the model reads or learns, and the template does "
                         "not read it"));
  EXPECT_EQ(Error(form, R"({"chat_template_kwargs": {"x": 18446744073709551616}, )" + messages),
            "`x`: the number 18446744073709551616 has more than 64 bits");
  EXPECT_THAT(Text(form, R"({"id": 18446744073709551616, )" + messages), StartsWith("<"));
}

// What a template itself refuses, or cannot do, has its line.
TEST_F(ChatFormTest, ErrorsOfTemplatesHaveTheirLine) {
  EXPECT_EQ(
      Error("{% for m in messages %}\n{% if loop.index0 == 1 %}{{ raise_exception('no ' + "
            "m.role) }}{% endif %}{% endfor %}",
            two),
      "`chat.jinja`, line 2: the template refuses this: no assistant\n  ...if loop.index0 == 1 "
      "%}{{ raise_exception('no ' + m.role) }}{% endif %}{% endfor %}\n" +
          std::string(45, ' ') + "^");
  EXPECT_EQ(Error("{{ eos_token + sep_token }}", two),
            "`chat.jinja`, line 1: `sep_token` is not defined\n  {{ eos_token + sep_token }}\n"
            "               ^");
}

// A template that loops for ever, or makes a gigabyte, ends within a second.
TEST_F(ChatFormTest, TemplatesEnd) {
  const std::string loop = "{% for a in range(99999) %}";
  for (const auto &[form, what] : {std::pair(loop + loop + "{% endfor %}{% endfor %}", "steps"),
                                   std::pair(std::string("{{ 'a' * 1000000000 }}"), "bytes")}) {
    // The limits end a template within a second of a processor. A sanitizer takes longer.
    const std::clock_t begin = std::clock();
    EXPECT_THAT(Error(form, two), HasSubstr(what));
    EXPECT_LT(std::clock() - begin, 8 * CLOCKS_PER_SEC);
  }
}

} // namespace
} // namespace boa
