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
// White space behind an answer and its mark is the template's, not the model's. So is the beginning
// of the next turn, which some templates write at the end of each conversation.
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
#include <functional>
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
  std::vector<std::string> added = {};                     // texts of the tokenizer's added tokens
  TemplateValues values = {};                              // of the conversations that try it
};

/// The bytes with which both texts begin, as whole characters.
size_t CommonBytes(absl::string_view a, absl::string_view b);
/// Some of a text for a message, on one line.
std::string Excerpt(absl::string_view text);

class ChatForm {
public:
  /// A content with which a template is tried; no template has it itself.
  static constexpr absl::string_view kProbe = "Qx7 zj";

  ChatForm(Template form, ChatSetting setting);

  /// The conversation as the template takes it: contents as texts or parts, and arguments of calls
  /// as objects. What has this form already stays as it is.
  absl::StatusOr<Conversation> Adapt(Conversation) const;
  /// What a model is asked with.
  absl::StatusOr<std::string> Question(const Conversation &) const;
  /// What it learns the answers of a conversation from. The error is kCancelled once `stops` says
  /// so; a long conversation takes seconds.
  absl::StatusOr<std::vector<ChatText>> Answers(const Conversation &,
                                                const std::function<bool()> &stops = {}) const;

  const Template &jinja() const { return form; }
  /// What stands behind an answer, without white space at its end. Nothing if the template refuses
  /// the conversation with which this was tried.
  const std::optional<std::string> &end() const { return end_of_answer; }
  /// The added token with which end() begins, or all of it.
  std::string mark() const;
  /// What the template itself writes around messages of system and user, of which the contents are
  /// kProbe, and to ask.
  const std::string &around() const { return around_messages; }
  const std::string &ask() const { return to_ask; }

private:
  enum class Contents { as_they_are, texts, parts };
  using Texts = std::vector<ChatText>;

  /// The first `count` messages of an adapted conversation.
  absl::StatusOr<Rendered> Render(const Conversation &, size_t count, bool ask,
                                  const RenderOptions & = {}) const;
  absl::StatusOr<Texts> Enclosed(const Conversation &, const std::function<bool()> &stops) const;
  bool LearnsOthers(const Conversation &, const Rendered &whole) const;
  std::optional<size_t> BeginOf(const Conversation &, const Rendered &whole, size_t message) const;
  absl::string_view UpToEnd(const Conversation &, size_t count, absl::string_view before,
                            absl::string_view after) const;
  size_t EndIn(absl::string_view text, absl::string_view before, absl::string_view answer) const;
  std::string TokenOf(absl::string_view name) const;
  /// The longest added token with which a text begins; "" if there is none.
  absl::string_view FirstToken(absl::string_view text) const;
  Contents ContentsOf(const jinja::Value &message) const;
  void Try();
  void TakeEnd(absl::string_view begin, absl::string_view tail);

  Template form;
  ChatSetting setting;
  std::vector<std::pair<std::string, Contents>> contents; // by role; of others, that of the first
  bool calls_are_objects = false; // arguments of a tool's call, which may be a text of JSON
  std::optional<std::string> end_of_answer;
  std::string opening; // the beginning of a turn that stands at the end of a conversation
  std::string around_messages, to_ask;
};

} // namespace boa

#endif // BOA_RUNTIME_DATA_CHAT_FORM_H
