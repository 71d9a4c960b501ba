//===- codec.cpp - Texts and conversations as tokens, and back ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/generate/codec.h"

#include "runtime/abi/sources.h"
#include "runtime/data/other_tokens.h"
#include "runtime/generate/committed_settings.h"
#include "runtime/support/printable.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>
#include <utility>

namespace boa {

size_t FindNoCharacter(const std::string &text) {
  size_t at = 0;
  while (at < text.size() && Utf8Length(text, at) > 0)
    at += Utf8Length(text, at);
  return at;
}

absl::StatusOr<Codec> Codec::Open(const CodecOptions &options, bool converses,
                                  const Program &program, const GenerationSource &source) {
  const int64_t vocab = program.model.vocab;
  for (const std::string &stop : options.stop)
    if (stop.empty())
      return absl::InvalidArgumentError("an empty stop string: it would end any text at once");
  Codec codec;
  codec.stops = options.stop;
  // A vocabulary may go beyond bytes, to a mask token or to round sizes.
  codec.count = std::min<int64_t>(vocab, 256);
  if (options.tokenizer.empty())
    return codec;
  absl::StatusOr<std::shared_ptr<const Tokenizer>> opened = Tokenizer::Open(options.tokenizer);
  if (!opened.ok())
    return opened.status();
  codec.tokenizer = *std::move(opened);
  codec.count = codec.tokenizer->size();
  if (codec.count > vocab)
    return absl::InvalidArgumentError(absl::StrCat(
        "`", options.tokenizer, "` has ", codec.count, " tokens, but the model's vocabulary is ",
        vocab, ": the model was trained with another tokenizer"));
  const std::map<std::string, std::string> committed =
      CommittedSettings(source.weights.empty() ? source.state : source.weights);
  codec.AddNote(NoteOtherTokenizer(committed, options.tokenizer));
  if (!converses)
    return codec;
  const DataSource learnt = ChatOf(program.train.data);
  const ChosenTemplate chosen = {options.form.empty() ? learnt.form : options.form,
                                 options.values.value_or(learnt.values), TemplateDateOf(committed)};
  if (absl::Status status = codec.OpenChat(options.tokenizer, chosen); !status.ok())
    return status;
  return codec;
}

void Codec::AddNote(std::string note) {
  if (!note.empty())
    lines.push_back(std::move(note));
}

absl::Status Codec::OpenChat(const std::string &path, const ChosenTemplate &chosen) {
  if (chosen.form.empty() && tokenizer->chat_template().empty())
    return absl::InvalidArgumentError(absl::StrCat(
        "`", path,
        "` has no chat template, so it is not known how the model takes messages: add --template "
        "NAME, or template = \"NAME\" in the spec's chat(...)"));
  absl::StatusOr<ConversationEncoder> opened =
      ConversationEncoder::CreateToAsk(tokenizer, chosen, path);
  if (!opened.ok())
    return opened.status();
  chat = *std::move(opened);
  AddNote(chat->DescribeUnreadValues());
  const std::string text = chat->EndOfAnswer();
  const int32_t token = tokenizer->Find(text);
  if (token >= 0 && tokenizer->IsAdded(token))
    mark = token;
  else if (!text.empty())
    stops.push_back(text);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> Codec::Encode(const std::string &text) {
  std::vector<int32_t> tokens;
  if (!tokenizer) {
    for (unsigned char byte : text)
      tokens.push_back(byte);
    return tokens;
  }
  EncodeOptions options;
  options.closes = false; // a prompt goes on: nothing is put behind it
  const absl::Status status = Encoder(tokenizer).Encode(text, options, tokens);
  return Begin(status, std::move(tokens));
}

absl::StatusOr<std::vector<int32_t>> Codec::Encode(const std::vector<ChatMessage> &messages) {
  for (const ChatMessage &message : messages)
    if (const size_t at = FindNoCharacter(message.content); at < message.content.size())
      return absl::InvalidArgumentError(
          absl::StrCat("byte ", at + 1, " of the message is not UTF-8"));
  std::vector<int32_t> tokens;
  const absl::Status status = chat->EncodeQuestion(messages, tokens);
  return Begin(status, std::move(tokens));
}

/// What a token adds to a text depends on those before it.
absl::StatusOr<std::vector<int32_t>> Codec::Begin(absl::Status status,
                                                  std::vector<int32_t> tokens) {
  if (!status.ok())
    return status;
  decoder = std::make_unique<StreamDecoder>(tokenizer, /*show_special=*/false);
  for (int32_t token : tokens)
    if (absl::StatusOr<std::string> shown = decoder->Add(token); !shown.ok())
      return shown.status();
  return tokens;
}

absl::StatusOr<std::string> Codec::Add(int32_t token) {
  return tokenizer ? decoder->Add(token) : std::string(1, static_cast<char>(token));
}

} // namespace boa
