//===- chat.cpp - A conversation of several turns -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/generate/chat.h"

#include "runtime/support/random.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace boa {
namespace {

/// A message that any template takes.
constexpr char kAnyText[] = "a";

/// A model may write bytes that are no characters. A tokenizer refuses them in a message.
std::string WholeCharacters(std::string text) {
  for (size_t at; (at = FindNoCharacter(text)) < text.size();)
    text.replace(at, 1, "\xef\xbf\xbd"); // U+FFFD
  return text;
}

} // namespace

absl::StatusOr<std::unique_ptr<Chat>> Chat::Create(const Program &program, const Kernels &kernels,
                                                   const GenerationEntries &entries,
                                                   const GenerationSource &source,
                                                   const ChatOptions &options) {
  absl::Status status = CheckContinues(program);
  if (status.ok())
    status = Check(options);
  if (!status.ok())
    return status;
  if (options.tokenizer.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("a conversation needs a tokenizer, and neither the data of `",
                     program.model.name, "` nor an import names one: add --tokenizer FILE"));
  std::unique_ptr<Chat> chat(new Chat(program, options));
  chat->codec = Codec::Open(options, /*converses=*/true, program, source);
  if (!chat->codec.ok())
    return chat->codec.status();
  chat->Reset();
  // Weights may take minutes to read.
  if (!options.system.empty())
    if (status = chat->CheckSystem(); !status.ok())
      return absl::Status(status.code(), absl::StrCat("--system: ", status.message()));
  chat->Reset();
  absl::StatusOr<std::unique_ptr<Generator>> generator =
      Generator::Create(program, kernels, entries, source);
  if (!generator.ok())
    return generator.status();
  chat->generator = *std::move(generator);
  return chat;
}

/// Refuses a system message that the model would not see. A template may have the same one of its
/// own, so another one is tried, too.
absl::Status Chat::CheckSystem() {
  if (absl::Status status = Ask(kAnyText); !status.ok())
    return status;
  const ChatMessage user = {"user", kAnyText};
  const auto without = codec->Encode({user});
  const auto other = codec->Encode({{"system", options.system + kAnyText}, user});
  if (without.ok() && other.ok() && text == *without && text == *other)
    return absl::InvalidArgumentError(
        "the template leaves it out, so the model would not see it: make it a part of a message");
  return absl::OkStatus();
}

void Chat::Reset() {
  messages.clear();
  if (!options.system.empty())
    messages.push_back({"system", options.system});
}

absl::Status Chat::Ask(const std::string &message) {
  messages.push_back({"user", message});
  absl::StatusOr<std::vector<int32_t>> encoded = codec->Encode(messages);
  absl::Status status = encoded.status();
  if (status.ok() && int64_t(encoded->size()) > program.model.context)
    status = absl::ResourceExhaustedError(
        absl::StrCat("with this message the conversation has ", encoded->size(),
                     " tokens, more than the context of ", program.model.context));
  if (status.ok())
    text = *std::move(encoded);
  else
    messages.pop_back();
  return status;
}

absl::StatusOr<ChatAnswer> Chat::Answer(std::ostream &out) {
  DrawOptions draw = options;
  if (turns > 0)
    draw.seed = int64_t(Hash({uint64_t(options.seed), uint64_t(turns)}));
  ++turns;
  ChatAnswer answer;
  answer.tokens_before = int64_t(text.size());
  const int64_t before = generator->Computed();
  // The last token that fits is not read again.
  const int64_t room = program.model.context - answer.tokens_before + 1;
  absl::StatusOr<ContinuedText> made = Continue(
      *generator, *codec, draw, std::min(options.length, room), text, out, [&](const float *) {
        if (answer.computed == 0)
          answer.computed = generator->Computed() - before;
        return absl::OkStatus();
      });
  if (!made.ok()) {
    messages.pop_back();
    return made.status();
  }
  static_cast<ContinuedText &>(answer) = *std::move(made);
  answer.is_full = answer.end == ContinuedText::End::length && answer.tokens == room;
  answer.is_kept = answer.end != ContinuedText::End::signal || answer.tokens > 0;
  if (answer.is_kept) {
    // Otherwise the template would refuse each later message.
    std::vector<ChatMessage> next = messages;
    next.push_back({"assistant", WholeCharacters(answer.text)});
    next.push_back({"user", kAnyText});
    answer.refusal = codec->Encode(next).status();
    answer.is_kept = answer.refusal.ok();
    next.pop_back();
    if (answer.is_kept)
      messages = std::move(next);
  }
  if (!answer.is_kept)
    messages.pop_back();
  return answer;
}

} // namespace boa
