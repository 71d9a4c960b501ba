//===- conversation.cpp - Tokens and targets of a conversation ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/conversation.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

namespace boa {

absl::StatusOr<ConversationEncoder>
ConversationEncoder::Create(std::shared_ptr<const Tokenizer> tokenizer, const std::string &form,
                            const std::string &source) {
  if (tokenizer->NormalizesSpecial())
    return absl::InvalidArgumentError(
        absl::StrCat("`", source,
                     "`: its special tokens are looked for in a text that was changed before; "
                     "conversations of such a tokenizer are not done"));
  ConversationEncoder made(tokenizer);
  made.source = source;
  made.form = form.empty() ? ChatTemplate::Recognize(tokenizer->chat_template(), source)
                           : ChatTemplate::Named(form);
  if (!form.empty() && !made.form.ok())
    return made.form.status();
  made.FindMarks();
  if (absl::Status status = made.CheckMarks(); !status.ok())
    return status;
  return made;
}

absl::StatusOr<ConversationEncoder>
ConversationEncoder::CreateToAsk(std::shared_ptr<const Tokenizer> tokenizer,
                                 const std::string &form, const std::string &source) {
  ConversationEncoder made(tokenizer);
  made.source = source;
  made.form = form.empty() ? ChatTemplate::Recognize(tokenizer->chat_template(), source)
                           : ChatTemplate::Named(form);
  if (!made.form.ok())
    return made.form.status();
  made.FindMarks();
  return made;
}

void ConversationEncoder::FindMarks() {
  if (tokenizer->bos() >= 0)
    bos = tokenizer->TextOf(tokenizer->bos());
  if (tokenizer->eos() >= 0)
    eos = tokenizer->TextOf(tokenizer->eos());
  if (!form.ok())
    return;
  marks = tokenizer->FindAdded(form->Marks());
  marks.insert(marks.end(), {tokenizer->bos(), tokenizer->eos()});
}

/// What ends an answer, and begins a conversation, must be a token. Otherwise a user could write
/// it.
absl::Status ConversationEncoder::CheckMarks() {
  if (!form.ok())
    return absl::OkStatus();
  const std::string end = form->EndOfAnswer();
  const auto refuse = [&](const auto &...what) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", source, "`: the template ", form->name(), what...));
  };
  if (!end.empty() && !(tokenizer->Find(end) >= 0 && tokenizer->IsAdded(tokenizer->Find(end))))
    return refuse(" ends an answer with `", end, "`, which is no added token");
  if (end.empty() && eos.empty())
    return refuse(" ends an answer with the token that ends a text, and the file names none; "
                  "`eos_token` in tokenizer_config.json beside it does");
  if (form->BeginsWithBos() && bos.empty())
    return refuse(" begins with the token that begins a text, and the file names none; "
                  "`bos_token` in tokenizer_config.json beside it does");
  EncodeOptions options;
  options.surround = false;
  for (auto [text, id] : {std::pair(bos, tokenizer->bos()), std::pair(eos, tokenizer->eos())}) {
    std::vector<int32_t> tokens;
    if (text.empty())
      continue;
    if (absl::Status status = encoder.Encode(text, options, tokens); !status.ok())
      return status;
    if (tokens != std::vector<int32_t>{id})
      return refuse(" writes `", text, "`, which the file does not find in a text");
  }
  return absl::OkStatus();
}

absl::Status ConversationEncoder::Append(const std::string &text, const EncodeOptions &options,
                                         bool is_target, std::vector<int32_t> &tokens,
                                         std::vector<bool> &targets) {
  if (absl::Status status = encoder.Encode(text, options, tokens); !status.ok())
    return status;
  targets.resize(tokens.size(), is_target);
  return absl::OkStatus();
}

absl::Status ConversationEncoder::EncodePair(const ChatRecord &record, std::vector<int32_t> &tokens,
                                             std::vector<bool> &targets) {
  if (tokenizer->eos() < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("`", source,
                     "` names no token that ends a text, which a completion needs; "
                     "`eos_token` in tokenizer_config.json beside it does"));
  EncodeOptions options;
  options.special = false;
  options.closes = false;
  absl::Status status = Append(record.prompt, options, /*is_target=*/false, tokens, targets);
  options.surround = false;
  options.begins = record.prompt.empty();
  if (status.ok())
    status = Append(record.completion, options, /*is_target=*/true, tokens, targets);
  if (!status.ok())
    return status;
  tokens.push_back(tokenizer->eos());
  targets.push_back(true);
  return absl::OkStatus();
}

/// Parts that are alike are encoded together: one text, but for what the model has to write.
absl::Status ConversationEncoder::EncodeParts(const std::vector<ChatPart> &parts,
                                              std::vector<int32_t> &tokens,
                                              std::vector<bool> &targets) {
  const size_t first = tokens.size();
  EncodeOptions options;
  options.surround = false;
  options.plain.marks = marks;
  for (size_t i = 0; i < parts.size();) {
    const bool is_target = parts[i].is_target;
    std::string text;
    options.plain.ranges.clear();
    for (; i < parts.size() && parts[i].is_target == is_target; ++i) {
      const ChatPart &part = parts[i];
      if (part.is_content && !part.text.empty() && !tokenizer->NormalizesSpecial())
        options.plain.ranges.push_back({text.size(), text.size() + part.text.size()});
      text += part.text;
    }
    if (absl::Status status = Append(text, options, is_target, tokens, targets); !status.ok())
      return status;
    options.begins = options.begins && text.empty();
    if (!text.empty())
      options.follows = tokens.size() > first && tokenizer->IsAdded(tokens.back());
  }
  return absl::OkStatus();
}

absl::Status ConversationEncoder::EncodeQuestion(const std::vector<ChatMessage> &messages,
                                                 std::vector<int32_t> &tokens) {
  absl::StatusOr<std::vector<ChatPart>> parts = form->Parts(messages, /*ask=*/true, bos, eos);
  if (!parts.ok())
    return parts.status();
  for (const ChatPart &part : *parts)
    if (part.is_content && tokenizer->NormalizesSpecial())
      if (absl::Status status = CheckContent(part.text); !status.ok())
        return status;
  std::vector<bool> targets(tokens.size());
  return EncodeParts(*parts, tokens, targets);
}

/// Where special tokens are looked for in a text that was changed before, nobody knows there who
/// wrote which part. A content without special tokens needs no such knowledge.
absl::Status ConversationEncoder::CheckContent(const std::string &content) {
  EncodeOptions options;
  options.surround = false;
  std::vector<int32_t> as_marks, as_text;
  absl::Status status = encoder.Encode(content, options, as_marks);
  options.special = false;
  if (status.ok())
    status = encoder.Encode(content, options, as_text);
  const bool has_mark = std::any_of(as_text.begin(), as_text.end(), [&](int32_t token) {
    return std::find(marks.begin(), marks.end(), token) != marks.end();
  });
  if (!status.ok() || (as_marks == as_text && !has_mark))
    return status;
  return absl::InvalidArgumentError(absl::StrCat(
      "a message with a special token, which `", source,
      "` cannot tell from its own: its special tokens are looked for in a text that was changed"));
}

absl::Status ConversationEncoder::Encode(const ChatRecord &record, std::vector<int32_t> &tokens,
                                         std::vector<bool> &targets) {
  const size_t first = tokens.size();
  absl::Status status;
  if (record.is_pair) {
    status = EncodePair(record, tokens, targets);
  } else {
    if (!form.ok())
      return absl::InvalidArgumentError(
          absl::StrCat(form.status().message(), "; template = \"NAME\" in chat(...) names one"));
    absl::StatusOr<std::vector<ChatPart>> parts = form->Parts(record.messages, false, bos, eos);
    if (!parts.ok())
      return parts.status();
    status = EncodeParts(*parts, tokens, targets);
  }
  if (!status.ok())
    return status;
  // Nothing stands before it that it could follow from.
  if (targets.size() > first)
    targets[first] = false;
  if (std::find(targets.begin() + ptrdiff_t(first), targets.end(), true) == targets.end())
    return absl::InvalidArgumentError("it has no token that could be learnt");
  return absl::OkStatus();
}

} // namespace boa
