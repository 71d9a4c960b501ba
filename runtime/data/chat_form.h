//===- chat_form.h - The text of a conversation, and its answers  -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A template says how a conversation is one text. Which parts of it the model has to write, follows
// in one of two ways:
//
//   - {% generation %} of the template encloses them, as in transformers.
//   - Otherwise the conversation is rendered up to each answer, without and with it:
//
//       messages before the answer, asked for the answer   <user>Hi<end><assistant>
//       messages up to the answer                          <user>Hi<end><assistant>Yes<end>
//                                                                             ^^^^^^^^ learnt
//
//     The first must begin the second. Otherwise the model would be asked in another way than it
//     was taught, so the template is refused, with the place where the two part.
//
// Some templates write an answer in another way once the conversation goes on; Qwen 3 leaves out
// what the model thought. Then one text cannot teach all answers. There is one text more for each
// answer that the later ones do not contain as the model wrote it.
//
// White space behind an answer and its mark is the template's, not the model's.
//
// Threads: any may call a const ChatForm. Errors: those of the template name its line.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_CHAT_FORM_H
#define BOA_RUNTIME_DATA_CHAT_FORM_H

#include "runtime/template/template.h"
#include "runtime/tokenizer/chat.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boa {

/// A text to learn from, and the parts of it that are learnt, in order and apart.
struct ChatText {
  std::string text;
  std::vector<Rendered::Range> targets;
};

/// What a template sees beside a conversation.
struct ChatSetting {
  std::vector<std::pair<std::string, std::string>> tokens; // texts by names: bos_token and so on
  std::optional<std::tm> date;                             // what strftime_now shows
};

class ChatForm {
public:
  ChatForm(Template form, ChatSetting setting);

  /// What a model is asked with.
  absl::StatusOr<std::string> Question(const Conversation &) const;
  /// What it learns the answers of a conversation from.
  absl::StatusOr<std::vector<ChatText>> Answers(const Conversation &) const;

  const Template &jinja() const { return form; }
  /// What stands behind an answer, without white space at its end. Nothing if the template refuses
  /// the conversation with which this was tried.
  const std::optional<std::string> &end() const { return end_of_answer; }
  /// What the template itself writes around a message of system and user, and to ask.
  const std::string &around() const { return around_messages; }
  const std::string &ask() const { return to_ask; }

private:
  /// The first `count` messages.
  absl::StatusOr<Rendered> Render(const Conversation &, size_t count, bool ask,
                                  const RenderOptions & = {}) const;
  absl::StatusOr<std::vector<ChatText>> Enclosed(const Conversation &) const;
  /// The end of an answer of which `after` is the text up to it, in a text that goes on; npos if
  /// it is written in another way there.
  size_t EndIn(absl::string_view text, absl::string_view before, absl::string_view after) const;
  std::string TokenOf(absl::string_view name) const;
  /// A message as the template takes it.
  jinja::Value Adapted(const jinja::Value &message) const;
  void Try();

  enum class Contents { as_they_are, texts, parts };
  Template form;
  ChatSetting setting;
  Contents contents = Contents::as_they_are;
  bool calls_are_objects = false; // arguments of a tool's call, which may be a text of JSON
  std::optional<std::string> end_of_answer;
  std::string around_messages, to_ask;
};

} // namespace boa

#endif // BOA_RUNTIME_DATA_CHAT_FORM_H
