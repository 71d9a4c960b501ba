//===- conversation.h - Tokens and targets of a conversation ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tokens of a record are those that its template gives, and each says whether it is a target:
// those of answers, and of the mark that ends one, are. The text is cut
// where an answer begins, because a model is asked with the text before it. So no token is half of
// the question and half of the answer.
//
// Contents of messages are text. A special token in one, such as <|im_end|>, has no meaning: nobody
// can end a turn by writing so.
//
// A prompt and its completion have no template: the completion goes on where the prompt ends, and
// the token that ends a text follows.
//
// Threads: one. Errors: do not name file and line.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_CONVERSATION_H
#define BOA_RUNTIME_DATA_CONVERSATION_H

#include "runtime/data/records.h"
#include "runtime/tokenizer/chat.h"
#include "runtime/tokenizer/tokenizer.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace boa {

class ConversationEncoder {
public:
  /// `form`: the name of a template; "": that of the tokenizer, which conversations need but pairs
  /// do not. `source` names the tokenizer's file in errors.
  static absl::StatusOr<ConversationEncoder>
  Create(std::shared_ptr<const Tokenizer>, const std::string &form, const std::string &source);

  /// One to ask a model with; `form` as above. A template whose marks are no tokens will do: then
  /// they are text for the model, too.
  static absl::StatusOr<ConversationEncoder>
  CreateToAsk(std::shared_ptr<const Tokenizer>, const std::string &form, const std::string &source);

  /// Appends tokens, and whether each is a target.
  absl::Status Encode(const ChatRecord &, std::vector<int32_t> &tokens, std::vector<bool> &targets);
  /// Appends the tokens of a conversation, and of what stands before an answer.
  absl::Status EncodeQuestion(const std::vector<ChatMessage> &, std::vector<int32_t> &tokens);
  /// Of a template.
  std::string EndOfAnswer() const { return form->EndOfAnswer(); }

private:
  explicit ConversationEncoder(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer(tokenizer), encoder(std::move(tokenizer)) {}
  absl::Status EncodePair(const ChatRecord &, std::vector<int32_t> &tokens,
                          std::vector<bool> &targets);
  absl::Status EncodeParts(const std::vector<ChatPart> &, std::vector<int32_t> &tokens,
                           std::vector<bool> &targets);
  absl::Status Append(const std::string &text, const EncodeOptions &, bool is_target,
                      std::vector<int32_t> &tokens, std::vector<bool> &targets);

  void FindMarks();
  absl::Status CheckMarks();
  absl::Status CheckContent(const std::string &content);

  std::shared_ptr<const Tokenizer> tokenizer;
  Encoder encoder;
  absl::StatusOr<ChatTemplate> form = absl::NotFoundError("");
  std::vector<int32_t> marks;   // tokens of the template
  std::string source, bos, eos; // the texts of these tokens
};

} // namespace boa

#endif // BOA_RUNTIME_DATA_CONVERSATION_H
