//===- chat_test.cpp - Conversations of several turns ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/generate/chat.h"

#include "test/runtime/generate/chat_fixture.h"

#include "absl/strings/match.h"

#include <csignal>
#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

namespace boa {
namespace {

/// A turn has few tokens: the context is 16.
class TurnsTest : public ChatTest {
protected:
  TurnsTest() {
    options.tokenizer = scratch.path("m/tokenizer.json");
    options.temperature = 0;
    WithTokens({{1, "\u010a"}, {8, "y"}, {43, "e"}, {5, "S"}, {28, "T"}});
  }
  void WithTokens(const Tokens &tokens) {
    WriteTokenizer(tokens, {{26, "<|im_end|>"},
                            {0, "<|im_start|>"},
                            {3, "<s>"},
                            {60, "user"},
                            {61, "assistant"},
                            {62, "system"}});
  }
  /// The template of the next conversation.
  void WithForm(const std::string &jinja) {
    options.form = scratch.path("m/form.jinja");
    scratch.Write("m/form.jinja", jinja);
  }
  absl::Status Open() {
    auto made = Chat::Create(program, linear::kKernels, {linear::Predict},
                             {"", TrainerTest::options.state, false}, options);
    if (made.ok())
      chat = *std::move(made);
    return made.status();
  }
  /// The answer; of a message that is refused, why.
  std::string Say(const std::string &message) {
    if (absl::Status status = chat->Ask(message); !status.ok())
      return std::string(status.message());
    std::ostringstream out;
    absl::StatusOr<ChatAnswer> made = chat->Answer(out);
    if (!made.ok())
      return std::string(made.status().message());
    answer = *made;
    EXPECT_EQ(out.str(), answer.text);
    return answer.text;
  }

  ChatOptions options;
  std::unique_ptr<Chat> chat;
  ChatAnswer answer;
};

TEST_F(TurnsTest, WhatDoesNotFitIsSaidAndNothingIsLost) {
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Say("x"), "ye");
  EXPECT_EQ(answer.end, ContinuedText::End::itself);
  EXPECT_EQ(answer.tokens_before, 9);
  EXPECT_FALSE(answer.is_full);
  // A second turn is 13 tokens longer.
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(Say("x"),
              "with this message the conversation has 22 tokens, more than the context of 16");
  chat->Reset();
  EXPECT_EQ(Say(std::string(9, 'x')),
            "with this message the conversation has 17 tokens, more than the context of 16");
  EXPECT_EQ(Say(std::string(8, 'x')), "y");
  EXPECT_TRUE(answer.is_full);
  EXPECT_EQ(answer.tokens_before, 16);
  // An answer may be shorter than the room.
  options.length = 1;
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Say("x"), "y");
  EXPECT_EQ(answer.end, ContinuedText::End::length);
  EXPECT_FALSE(answer.is_full);
}

TEST_F(TurnsTest, TheSystemMessageStays) {
  options.system = "b";
  ASSERT_TRUE(Open().ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Say("x"), "ye");
    EXPECT_EQ(answer.tokens_before, 15);
    chat->Reset();
  }
  // The shortest message has room beside it.
  options.system = "bb";
  EXPECT_TRUE(Open().ok());
  options.system = "bbb";
  EXPECT_EQ(Open().message(),
            "--system: with this message the conversation has 17 tokens, more than "
            "the context of 16");
  options.form = "gemma";
  EXPECT_EQ(Open().message(), "--system: `gemma`, line 2: the template refuses this: there is no "
                              "system message here\n  {{- raise_exception('there is no system "
                              "message here') -}}\n                     ^");
}

TEST_F(TurnsTest, ASystemMessageIsSeenOrRefused) {
  const std::string users = "{% for m in messages if m.role == 'user' %}{{ '<|im_start|>' + "
                            "m.content + '<|im_end|>' }}{% endfor %}";
  const std::string own = "{{ messages[0].content if messages[0].role == 'system' else 'b' }}";
  options.system = "b";
  WithForm(users);
  EXPECT_EQ(Open().message(), "--system: the template leaves it out, so the model would not see "
                              "it: make it a part of a message");
  // That of the template, word for word.
  WithForm(own + users);
  EXPECT_TRUE(Open().ok());
  WithForm("{% if not messages[-1].content %}{{ raise_exception('empty') }}{% endif %}" + own +
           users);
  EXPECT_TRUE(Open().ok());
  options.system = "a\xff";
  EXPECT_EQ(Open().message(), "--system: byte 2 of the message is not UTF-8");
}

TEST_F(TurnsTest, ARefusedMessageIsNotKept) {
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Say("x\xff"), "byte 2 of the message is not UTF-8");
  EXPECT_EQ(Say("x"), "ye");
  EXPECT_EQ(answer.tokens_before, 9);
}

// An answer becomes a message. In it, U+FFFD replaces each byte that is no UTF-8.
TEST_F(TurnsTest, AnAnswerMayBeNoText) {
  WithTokens(
      {{1, "\u010a"}, {8, "y"}, {43, "\u00ff"}, {5, "\u00ef"}, {28, "\u00bf"}, {2, "\u00bd"}});
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Say("x"), "y\xff");
  // U+FFFD has three bytes.
  EXPECT_EQ(Say("x"),
            "with this message the conversation has 24 tokens, more than the context of 16");
}

TEST_F(TurnsTest, AnAnswerThatTheTemplateRefusesIsNotKept) {
  WithForm("{% for m in messages %}{% if not m.content %}{{ raise_exception('empty') }}{% endif "
           "%}{{ '<|im_start|>' + m.content + '\n' }}{% endfor %}");
  options.stop = {"y"};
  ASSERT_TRUE(Open().ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Say("x"), "");
    EXPECT_EQ(answer.end, ContinuedText::End::itself);
    EXPECT_EQ(answer.tokens_before, 3);
    EXPECT_FALSE(answer.is_kept);
    EXPECT_TRUE(absl::StrContains(answer.refusal.message(), "the template refuses this: empty"))
        << answer.refusal;
  }
}

// The first one is that of `boa sample`, so it depends on the seed alone.
TEST_F(TurnsTest, EachTurnDrawsAnew) {
  options.temperature = 1000;
  std::vector<std::string> answers;
  for (int time = 0; time < 2; ++time) {
    ASSERT_TRUE(Open().ok());
    for (int turn = 0; turn < 3; ++turn) {
      answers.push_back(Say("x"));
      chat->Reset();
    }
  }
  EXPECT_NE(answers[1], answers[0]);
  EXPECT_NE(answers[2], answers[0]);
  EXPECT_NE(answers[2], answers[1]);
  EXPECT_EQ(answers[3], answers[0]);
  EXPECT_EQ(answers[4], answers[1]);
  EXPECT_EQ(answers[5], answers[2]);
}

/// A signal comes when it is written to.
class Interrupting : public std::stringbuf {
  std::streamsize xsputn(const char *bytes, std::streamsize count) override {
    raise(SIGINT);
    return std::stringbuf::xsputn(bytes, count);
  }
};

TEST_F(TurnsTest, ASignalStopsAnAnswer) {
  ASSERT_TRUE(Open().ok());
  {
    InterruptGuard guard;
    raise(SIGINT);
    EXPECT_EQ(Say("x"), "");
    EXPECT_EQ(answer.end, ContinuedText::End::signal);
    EXPECT_FALSE(answer.is_kept);
  }
  // The message before is not there.
  ASSERT_TRUE(chat->Ask("x").ok());
  InterruptGuard guard;
  Interrupting buffer;
  std::ostream out(&buffer);
  absl::StatusOr<ChatAnswer> made = chat->Answer(out);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->end, ContinuedText::End::signal);
  EXPECT_TRUE(made->is_kept);
  EXPECT_EQ(made->text, "y");
  EXPECT_EQ(made->tokens_before, 9);
  EXPECT_EQ(chat->Ask("x").message(),
            "with this message the conversation has 21 tokens, more than the context of 16");
}

// The values of the data hold unless others are given.
TEST_F(TurnsTest, ATemplateHasValues) {
  Write(
      "tokenizer_config.json",
      {{"eos_token", "<s>"}, {"chat_template", "{{ 'a' * (mode or 0) }}" + std::string(kChatml)}});
  const auto tokens_before = [&](std::optional<std::string> values) {
    options.values = std::move(values);
    EXPECT_TRUE(Open().ok());
    Say("x");
    return answer.tokens_before;
  };
  EXPECT_EQ(tokens_before(R"({"mode": 3})"), 12);
  EXPECT_EQ(tokens_before(std::nullopt), 9);
  EXPECT_TRUE(chat->notes().empty());
  program.train.data = R"(chat("a", "t", template_values = {"mode": 2}))";
  EXPECT_EQ(tokens_before(std::nullopt), 11);
  EXPECT_EQ(tokens_before("{}"), 9);
  EXPECT_EQ(tokens_before(R"({"mode": 3})"), 12);
  EXPECT_EQ(tokens_before(R"({"mod": 3})"), 9);
  EXPECT_EQ(chat->notes(),
            (std::vector<std::string>{
                "note: the chat template does not read `mod`, which template_values gives"}));
}

TEST_F(TurnsTest, NeedsATemplate) {
  Write("tokenizer_config.json", {{"eos_token", "<s>"}});
  EXPECT_EQ(Open().message(),
            "`" + options.tokenizer +
                "` has no chat template, so it is not known how the model takes messages: add "
                "--template NAME, or template = \"NAME\" in the spec's chat(...)");
  options.form = "chatml";
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Say("x"), "ye");
  options.tokenizer.clear();
  EXPECT_EQ(
      Open().message(),
      "a conversation needs a tokenizer, and neither the data of `linear` nor an import names "
      "one: add --tokenizer FILE");
}

} // namespace
} // namespace boa
