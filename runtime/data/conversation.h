//===- conversation.h - Tokens and targets of a conversation ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tokens of a record are those of the text that its template gives (chat_form.h), and each says
// whether it is a target. The text is cut where an answer begins, because a model is asked with the
// text before it. So no token is half of the question and half of the answer.
//
// Contents of messages are text (content_marks.h). A special token in one, such as <|im_end|>, has
// no meaning: nobody can end a turn by writing so. Where a template itself looks for such a token
// in a content, it would write another text than the one that is read, so that is refused.
//
// A prompt and its completion have no template: the completion goes on where the prompt ends, and
// the token that ends a text follows. A text is a completion of nothing.
//
// Threads: one. Errors: do not name file and line.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_CONVERSATION_H
#define BOA_RUNTIME_DATA_CONVERSATION_H

#include "runtime/data/chat_form.h"
#include "runtime/data/records.h"
#include "runtime/tokenizer/chat.h"
#include "runtime/tokenizer/content_marks.h"
#include "runtime/tokenizer/tokenizer.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace boa {

struct ChatMessage {
  std::string role, content;
};

/// Tokens to learn from, and whether each is a target.
struct LearntTokens {
  std::vector<int32_t> tokens;
  std::vector<bool> targets;
};

/// The date of today as templates are given it: 2026-11-29.
std::string Today();

/// The template of conversations, and what it sees beside them.
struct ChosenTemplate {
  std::string form;        // its name or file; "": that of the tokenizer, which pairs do not need
  std::string values = {}; // an object of JSON: variables for records that do not give them
  std::string date = {};   // "": that of today
};

class ConversationEncoder {
public:
  /// `source` names the tokenizer's file in errors.
  static absl::StatusOr<ConversationEncoder>
  Create(std::shared_ptr<const Tokenizer>, const ChosenTemplate &, const std::string &source);

  /// One to ask a model with, as above. A template whose marks are no tokens will do: then they are
  /// text for the model, too.
  static absl::StatusOr<ConversationEncoder>
  CreateToAsk(std::shared_ptr<const Tokenizer>, const ChosenTemplate &, const std::string &source);

  /// The documents of a record: one, but where a template writes answers in another way once the
  /// conversation goes on. The error is kCancelled once `stops` says so.
  absl::StatusOr<std::vector<LearntTokens>> Encode(const ChatRecord &,
                                                   const std::function<bool()> &stops = {});
  /// Appends the tokens of a conversation, and of what stands before an answer.
  absl::Status EncodeQuestion(const std::vector<ChatMessage> &, std::vector<int32_t> &tokens);
  /// Of a template: the text that ends an answer, "" if there is none.
  std::string EndOfAnswer() const;
  /// The template of conversations with tools, or without; null if there is none.
  const Template *TemplateFor(bool tools) const;
  /// A note if no template reads some of the values; otherwise "".
  std::string DescribeUnreadValues() const;

private:
  explicit ConversationEncoder(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer(tokenizer), encoder(std::move(tokenizer)) {}
  absl::Status Open(const ChosenTemplate &);
  absl::StatusOr<const ChatForm *> FormFor(const Conversation &) const;
  absl::StatusOr<LearntTokens> EncodePair(const ChatRecord &);
  absl::StatusOr<LearntTokens> EncodeText(const ChatText &, absl::string_view mark);
  absl::StatusOr<std::vector<ChatText>> MarkedAnswers(const ChatForm &, const Conversation &,
                                                      const std::function<bool()> &stops,
                                                      std::string &mark) const;
  void FindStructure();
  std::vector<int32_t> TokensAtContents(const ChatForm &) const;
  absl::Status CheckForm(const ChatForm &);
  absl::Status CheckAround();
  absl::Status CheckContent(const std::string &content);

  std::shared_ptr<const Tokenizer> tokenizer;
  Encoder encoder;
  std::string source;
  std::shared_ptr<const ChatForm> plain, with_tools;
  absl::Status no_form; // why there is none
  TemplateValues values;
  std::vector<int32_t> structure; // tokens of the template
  std::shared_ptr<const ContentMarks> marks;
};

} // namespace boa

#endif // BOA_RUNTIME_DATA_CONVERSATION_H
