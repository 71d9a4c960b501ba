//===- record_reads_test.cpp - What templates read of a record ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/record_values.h"
#include "test/runtime/data/chat_form_fixture.h"

namespace boa {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

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

// Members that the template writes as they are need no rendering each.
TEST_F(ChatFormTest, MembersAreLookedForTogether) {
  const std::string form = "{% for m in messages %}{% if m.role != 'note' %}<{{ m.role }}>"
                           "{{ m.content }}{% for c in m.tool_calls or [] %}"
                           "({{ c.function.name }}){% endfor %}<end>{% endif %}{% endfor %}";
  std::string messages = R"({"messages": [{"role": "user", "content": "q"})";
  constexpr int kCalls = 50;
  for (int i = 0; i < kCalls; ++i)
    absl::StrAppend(&messages, R"(, {"role": "assistant", "content": "", "tool_calls":)",
                    R"([{"function": {"name": "f", "arguments": {}}}]},)",
                    R"({"role": "tool", "content": "five"})");
  int renderings = 0;
  const auto check = [&](const std::string &jinja, const std::string &line) -> absl::Status {
    const absl::StatusOr<Template> parsed = Template::Parse(jinja, "chat.jinja");
    const absl::StatusOr<ChatRecord> record =
        parsed.ok() ? ParseRecord(line, [&](bool) { return &*parsed; }) : parsed.status();
    if (!record.ok())
      return record.status();
    renderings = 0;
    return records::CheckRead(record->conversation, [&](const Conversation &some) {
      ++renderings;
      return parsed->Render(jinja::Value::Mapping(
          {{jinja::Value("messages"), jinja::Value::Sequence(some.messages)}}));
    });
  };
  EXPECT_TRUE(check(form, messages + "]}").ok());
  EXPECT_EQ(renderings, 2);
  // One that is left out is still named.
  const std::string note = messages + R"(, {"role": "note", "content": "n"}]})";
  const auto unread = StartsWith("message 102 (note): `content` changes what the model reads");
  EXPECT_THAT(std::string(check(form, note).message()), unread);
  EXPECT_LT(renderings, 10);
  // Also where the template would write it if another one were not as it is.
  const std::string five = absl::StrReplaceAll(
      form, {{"m.role != 'note'", "m.role != 'note' or messages[2].content != 'five'"}});
  EXPECT_THAT(std::string(check(five, note).message()), unread);
  // Where texts are written in another way, each member is looked for.
  EXPECT_TRUE(
      check(absl::StrReplaceAll(form, {{"m.content", "m.content | upper"}}), messages + "]}").ok());
  EXPECT_GT(renderings, 2 * kCalls);
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
  // What a template gets otherwise is not given by a key, and what it does not read is named.
  const std::string fault =
      "` cannot be given: a template gets it from the conversation or its tokenizer";
  for (const char *key : {"messages", "tools", "add_generation_prompt", "bos_token"})
    EXPECT_EQ(
        Error(form, absl::StrCat(R"({"chat_template_kwargs": {")", key, R"(": [1]}, )", messages)),
        absl::StrCat("`chat_template_kwargs`: `", key, fault));
  EXPECT_EQ(Error(form, R"({"add_generation_prompt": true, )" + messages),
            "`add_generation_prompt" + fault);
  const Template parsed = *Template::Parse(form, "chat.jinja");
  const auto record = ParseRecord(
      R"({"chat_template_kwargs": {"enable_thinkin": false, "enable_thinking": 1}, )" + messages,
      [&](bool) { return &parsed; });
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_THAT(record->unread, testing::ElementsAre("chat_template_kwargs.enable_thinkin"));
}

} // namespace
} // namespace boa
