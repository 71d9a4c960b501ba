//===- sample.cpp - Text from a trained model -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/generate/sample.h"

#include "runtime/data/data.h"
#include "runtime/io/new_file.h"
#include "runtime/support/printable.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

namespace boa {
namespace {

absl::Status CheckRequest(const Program &program, const SampleOptions &options) {
  absl::Status status = CheckContinues(program);
  if (status.ok())
    status = Check(options);
  if (!status.ok())
    return status;
  if (options.tokenizer.empty() && !TokensAreBytes(program.train.data))
    return absl::InvalidArgumentError(
        absl::StrCat("`", program.model.name, "` learns ", program.train.data,
                     ", whose tokens are not bytes of a text: add --tokenizer FILE"));
  if (options.chat && options.tokenizer.empty())
    return absl::InvalidArgumentError(
        "--chat: the template of messages is in the tokenizer: add --tokenizer FILE");
  if (options.prompt.empty())
    return absl::InvalidArgumentError(
        "an empty prompt: the model continues a text of at least one byte");
  if (options.length < 0)
    return absl::InvalidArgumentError("length must not be negative");
  if (!options.logits.empty())
    if (absl::Status status = CheckNewFile({"--logits", options.logits}, /*directory=*/true);
        !status.ok())
      return status;
  for (unsigned char byte : options.prompt)
    if (options.tokenizer.empty() && byte >= program.model.vocab)
      return absl::InvalidArgumentError(absl::StrCat("the prompt's byte ", static_cast<int>(byte),
                                                     " is outside the vocabulary of ",
                                                     program.model.vocab));
  return absl::OkStatus();
}

/// The time and reads of a continued text, on one line.
std::string Describe(const Program &program, Engine &engine, int64_t prompt, double prompt_seconds,
                     int64_t tokens, double seconds) {
  int64_t weights = 0, resident = 0;
  for (const Storage &storage : program.storages)
    if (storage.role == "weights") {
      weights += storage.entry_count() * storage.bytes;
      resident +=
          (storage.ChunksOn(Home::device) + storage.ChunksOn(Home::host)) * storage.chunk_bytes();
    }
  const auto traffic = program.traffic.find("generate");
  int64_t read = 0;
  if (traffic != program.traffic.end())
    for (const auto &[role, bytes] : traffic->second.read)
      read += bytes;
  return absl::StrFormat(
      "prompt: %d tokens in %.3f s; then %d tokens in %.3f s: %.3f tokens/s; %s of %s of weights "
      "in memory; %d bytes read for each token; memory %s\n",
      prompt, prompt_seconds, tokens, seconds, seconds > 0 ? double(tokens) / seconds : 0,
      FormatBytes(resident), FormatBytes(weights), read, FormatBytes(engine.ArenaBytes()));
}

} // namespace

absl::Status Sample(const Program &program, const Kernels &kernels,
                    const GenerationEntries &entries, const GenerationSource &source,
                    const SampleOptions &options, std::ostream &out, std::ostream &notes) {
  if (absl::Status status = CheckRequest(program, options); !status.ok())
    return status;
  absl::StatusOr<Codec> codec = Codec::Open(options, options.chat, program, source);
  if (!codec.ok())
    return codec.status();
  for (const std::string &note : codec->notes())
    notes << Printable(note) << "\n";
  absl::StatusOr<std::vector<int32_t>> text =
      options.chat ? codec->Encode(std::vector<ChatMessage>{{"user", options.prompt}})
                   : codec->Encode(options.prompt);
  if (!text.ok())
    return absl::InvalidArgumentError(absl::StrCat("the prompt: ", text.status().message()));
  if (text->empty())
    return absl::InvalidArgumentError("the prompt has no tokens: the model continues at least one");
  absl::StatusOr<std::unique_ptr<Generator>> generator =
      Generator::Create(program, kernels, entries, source);
  if (!generator.ok())
    return generator.status();

  if (options.echo && !options.chat)
    out << options.prompt << std::flush;
  std::optional<NewFile> all;
  LogitsReader reader;
  if (!options.logits.empty()) {
    absl::StatusOr<NewFile> created = NewFile::Create(options.logits);
    if (!created.ok())
      return created.status();
    all = *std::move(created);
    reader = [&](const float *logits) { return all->Append(logits, program.model.vocab * 4); };
  }
  const int64_t prompt = int64_t(text->size());
  if (const int64_t unseen = (*generator)->Unseen(prompt); unseen > 0)
    notes << absl::StrFormat(
        "note: the prompt has %d tokens, more than the context of %d: the model "
        "does not see its first %d\n",
        prompt, program.model.context, unseen);
  const absl::StatusOr<ContinuedText> made =
      Continue(**generator, *codec, options, options.length, *text, out, reader);
  if (!made.ok())
    return made.status();
  if (all)
    if (absl::Status status = all->Publish(); !status.ok())
      return status;
  if (!out)
    return absl::UnavailableError("writing the text failed");
  if (options.timing) // the first token belongs to the prompt
    notes << Describe(program, (*generator)->engine(), prompt, made->first_seconds,
                      std::max<int64_t>(made->tokens - 1, 0), made->seconds);
  return absl::OkStatus();
}

} // namespace boa
