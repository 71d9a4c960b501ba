//===- tokenize.cpp - Texts as a shard of tokens --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/tokenize.h"

#include "runtime/data/encode_text.h"
#include "runtime/data/file_kinds.h"
#include "runtime/data/shard_writer.h"
#include "runtime/io/input_file.h"
#include "runtime/io/new_file.h"
#include "runtime/support/interrupt.h"
#include "runtime/support/units.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/trainer/output_checks.h"
#include "runtime/view/progress_line.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <chrono>

namespace boa {
FlagTable TokenizeFlags(TokenizeOptions &options) {
  return {
      {{"sample", "chat", "tokenize", "data"},
       "tokenizer",
       0,
       "FILE",
       "tokenizer.json, tokenizer.model, tiktoken or GGUF",
       FileValue{&options.tokenizer}},
      {{"tokenize"}, "output", 'o', "FILE", "where the tokens go", FileValue{&options.output}},
      {{"tokenize"},
       "special",
       0,
       "",
       "special tokens in the texts count as such",
       &options.special},
  };
}

absl::Status Tokenize(const TokenizeOptions &options, std::ostream &out) {
  if (options.tokenizer.empty() || options.output.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        "boa tokenize: expected ", options.tokenizer.empty() ? "--tokenizer FILE" : "-o FILE"));
  const FileUse output{"--output", options.output};
  std::vector<FileUse> kept = {{"the tokenizer", options.tokenizer}};
  for (const std::string &text : options.texts)
    kept.push_back({"a text", text});
  absl::Status status = CheckOutputs({output, {"--output", TemporaryName(options.output)}}, kept);
  if (status.ok())
    status = CheckNewFile(output, /*directory=*/true);
  if (!status.ok())
    return status;
  absl::StatusOr<std::shared_ptr<const Tokenizer>> tokenizer = Tokenizer::Open(options.tokenizer);
  if (!tokenizer.ok())
    return tokenizer.status();
  // All of them can be read, before anything is written. They may be more than can be open at once.
  int64_t bytes = 0;
  for (const std::string &text : options.texts) {
    absl::StatusOr<InputFile> file = InputFile::Open(text);
    if (!file.ok())
      return file.status();
    if (status = CheckKind(*file, Wanted::any_text); !status.ok())
      return status;
    bytes += file->size();
  }
  absl::StatusOr<ShardWriter> writer = ShardWriter::Create(options.output, (*tokenizer)->size());
  if (!writer.ok())
    return writer.status();
  const auto begin = std::chrono::steady_clock::now();
  {
    ProgressLine line;
    int64_t done = 0;
    Encoder encoder(*tokenizer);
    TextOptions text;
    text.special = options.special;
    text.part_bytes = options.part_bytes;
    for (const std::string &path : options.texts) {
      absl::StatusOr<InputFile> file = InputFile::Open(path);
      if (!file.ok())
        return file.status();
      status = EncodeText(
          *file, text, *tokenizer, encoder,
          [&](const std::vector<int32_t> &tokens) { return writer->Append(tokens); },
          [&](int64_t at) {
            line.Show(done + at, bytes);
            return Interrupted() ? Interruption() : absl::OkStatus();
          });
      if (!status.ok())
        return IfInterrupted(status,
                             absl::StrCat("interrupted; `", options.output, "` was not written"));
      done += file->size();
    }
  }
  if (writer->tokens() == 0)
    return absl::InvalidArgumentError("the texts have no tokens");
  status = writer->Finish();
  if (!status.ok())
    return status;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  out << absl::StrFormat("wrote %s: %s tokens of %s (%.2f bytes a token), vocabulary %d, in %s\n",
                         options.output, FormatCount(static_cast<double>(writer->tokens())),
                         FormatBytes(static_cast<double>(bytes)),
                         static_cast<double>(bytes) / static_cast<double>(writer->tokens()),
                         (*tokenizer)->size(), FormatSeconds(seconds));
  return absl::OkStatus();
}

} // namespace boa
