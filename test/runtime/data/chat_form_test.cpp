//===- chat_form_test.cpp - Texts of conversations, and what is learnt ----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/data/chat_form_fixture.h"

namespace boa {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

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
      testing::EndsWith("names another; \"enable_thinking\": true or false, in the record or in "
                        "template_values, may make both alike"));
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

// A template that loops for ever, or makes a gigabyte, ends (how soon: Template.Limits).
TEST_F(ChatFormTest, TemplatesEnd) {
  const std::string loop = "{% for a in range(99999) %}";
  for (const auto &[form, what] : {std::pair(loop + loop + "{% endfor %}{% endfor %}", "steps"),
                                   std::pair(std::string("{{ 'a' * 1000000000 }}"), "bytes")})
    EXPECT_THAT(Error(form, two), HasSubstr(what));
}

} // namespace
} // namespace boa
