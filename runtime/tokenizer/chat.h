//===- chat.h - Conversations as the text that a model was trained on  -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model's file has a Jinja program that makes a text of messages. We run no Jinja. Known programs
// are recognised by comparing, and our own code gives the same text. Others are refused.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TOKENIZER_CHAT_H
#define BOA_RUNTIME_TOKENIZER_CHAT_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <string>
#include <vector>

namespace boa {

struct ChatMessage {
  std::string role, content; // role: system, user or assistant
  bool is_learnt = true;     // of an assistant: false leaves it out of the targets
};

/// A part of the text of a conversation.
struct ChatPart {
  std::string text;
  bool is_content = false; // what somebody wrote: special tokens in it are text
  bool is_target = false;  // what the model has to write: an answer, and the mark of its end
};

struct ChatStyle;

class ChatTemplate {
public:
  /// `source` names the file in errors.
  static absl::StatusOr<ChatTemplate> Recognize(absl::string_view jinja, const std::string &source);
  /// The names of known templates.
  static std::vector<std::string> Names();
  static absl::StatusOr<ChatTemplate> Named(absl::string_view name);

  std::string name() const;
  /// `bos` and `eos` are the texts of these tokens. `ask`: the beginning of an answer follows.
  absl::StatusOr<std::string> Render(const std::vector<ChatMessage> &messages, bool ask,
                                     absl::string_view bos, absl::string_view eos) const;

  /// The same text in its parts.
  absl::StatusOr<std::vector<ChatPart>> Parts(const std::vector<ChatMessage> &messages, bool ask,
                                              absl::string_view bos, absl::string_view eos) const;
  /// The text of all that it writes itself.
  std::string Marks() const;
  /// What ends an answer; "": the token that ends a text.
  std::string EndOfAnswer() const;
  bool BeginsWithBos() const;

private:
  explicit ChatTemplate(const ChatStyle &style) : style(&style) {}
  const ChatStyle *style;
};

} // namespace boa

#endif // BOA_RUNTIME_TOKENIZER_CHAT_H
