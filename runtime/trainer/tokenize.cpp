//===- tokenize.cpp - Texts as a shard of tokens --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/tokenize.h"

#include "runtime/support/units.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/trainer/file.h"
#include "runtime/trainer/outputs.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <unistd.h>

namespace boa {
namespace {

constexpr int64_t kHeaderBytes = 256 * 4;
// Without a place to cut it, a text is one part.
constexpr size_t kLargestPart = 1 << 30;

class ShardWriter {
public:
  static absl::StatusOr<ShardWriter> Create(const std::string &path, int64_t vocabulary) {
    ShardWriter writer;
    absl::StatusOr<NewFile> file = NewFile::Create(path);
    if (!file.ok())
      return file.status();
    writer.path = path;
    writer.file = *std::move(file);
    writer.wide = vocabulary > 65536;
    const std::vector<int32_t> header(kHeaderBytes / 4);
    if (absl::Status status = writer.file.Append(header.data(), kHeaderBytes); !status.ok())
      return status;
    return writer;
  }

  absl::Status Append(const std::vector<int32_t> &tokens) {
    count += static_cast<int64_t>(tokens.size());
    if (count > std::numeric_limits<int32_t>::max())
      return absl::InvalidArgumentError(absl::StrCat("`", path, "`: a shard has at most ",
                                                     std::numeric_limits<int32_t>::max(),
                                                     " tokens; give the texts to several shards"));
    if (wide)
      return file.Append(tokens.data(), static_cast<int64_t>(tokens.size()) * 4);
    const std::vector<uint16_t> narrow(tokens.begin(), tokens.end());
    return file.Append(narrow.data(), static_cast<int64_t>(narrow.size()) * 2);
  }

  absl::Status Finish() {
    const int32_t header[] = {wide ? 20240801 : 20240520, wide ? 7 : 1,
                              static_cast<int32_t>(count)};
    absl::Status status = file.Rewrite(0, header, sizeof(header));
    return status.ok() ? file.Publish() : status;
  }

  int64_t count = 0; // of tokens

private:
  std::string path;
  NewFile file;
  bool wide = false;
};

/// A line that is written again and again, for a person who waits.
class ProgressLine {
public:
  void Show(int64_t bytes, int64_t of) {
    const auto now = std::chrono::steady_clock::now();
    if (!isatty(STDERR_FILENO) || now - shown < std::chrono::milliseconds(200))
      return;
    shown = now;
    std::fprintf(stderr, "\r%s of %s ", FormatBytes(bytes).c_str(), FormatBytes(of).c_str());
    any = true;
  }
  ~ProgressLine() {
    if (any)
      std::fputs("\r\033[K", stderr);
  }

private:
  std::chrono::steady_clock::time_point shown;
  bool any = false;
};

/// `byte 7 (line 2)` of a part, as the place in its file.
struct Place {
  int64_t bytes = 0, lines = 0;
};

absl::Status TokenizeFile(const InputFile &file, const TokenizeOptions &options,
                          const std::shared_ptr<const Tokenizer> &tokenizer, Encoder &encoder,
                          ShardWriter &writer, const std::function<void(int64_t)> &show) {
  EncodeOptions encode;
  encode.special = options.special;
  std::string part;
  std::vector<int32_t> tokens;
  Place before;
  for (int64_t at = 0; at < file.size() || !part.empty();) {
    // Twice as much after each part without a place to cut, since all of it is looked at again.
    const int64_t count =
        std::min(std::max<int64_t>(options.part_bytes, part.size()), file.size() - at);
    const size_t old = part.size();
    part.resize(old + count);
    if (absl::Status status = file.Read(at, part.data() + old, count); !status.ok())
      return status;
    at += count;
    const bool is_last = at == file.size();
    const size_t cut = is_last ? part.size() : tokenizer->FindCut(part);
    if (cut == 0) {
      if (part.size() > kLargestPart)
        return absl::InvalidArgumentError(
            absl::StrCat("`", file.path(), "`: no place to cut it in ", part.size(),
                         " bytes; give a text of this tokenizer in smaller files"));
      continue;
    }
    tokens.clear();
    encode.closes = is_last;
    absl::Status status = encoder.Encode(absl::string_view(part).substr(0, cut), encode, tokens);
    if (!status.ok())
      return absl::InvalidArgumentError(absl::StrCat(
          "`", file.path(), "`: ",
          before.bytes > 0
              ? absl::StrCat("behind byte ", before.bytes, " (", before.lines, " lines): ")
              : "",
          status.message()));
    status = writer.Append(tokens);
    if (!status.ok())
      return status;
    before.bytes += static_cast<int64_t>(cut);
    before.lines += std::count(part.begin(), part.begin() + cut, '\n');
    part.erase(0, cut);
    encode.begins = false;
    show(at);
  }
  return absl::OkStatus();
}

} // namespace

FlagTable TokenizeFlags(TokenizeOptions &options) {
  return {
      {{"sample", "tokenize"},
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
  std::vector<InputFile> files;
  int64_t bytes = 0;
  for (const std::string &text : options.texts) {
    absl::StatusOr<InputFile> file = InputFile::Open(text);
    if (!file.ok())
      return file.status();
    bytes += file->size();
    files.push_back(*std::move(file));
  }
  absl::StatusOr<ShardWriter> writer = ShardWriter::Create(options.output, (*tokenizer)->size());
  if (!writer.ok())
    return writer.status();
  const auto begin = std::chrono::steady_clock::now();
  {
    ProgressLine line;
    int64_t done = 0;
    Encoder encoder(*tokenizer);
    for (const InputFile &file : files) {
      status = TokenizeFile(file, options, *tokenizer, encoder, *writer,
                            [&](int64_t at) { line.Show(done + at, bytes); });
      if (!status.ok())
        return status;
      done += file.size();
    }
  }
  if (writer->count == 0)
    return absl::InvalidArgumentError("the texts have no tokens");
  status = writer->Finish();
  if (!status.ok())
    return status;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  out << absl::StrFormat("wrote %s: %s tokens of %s (%.2f bytes a token), vocabulary %d, in %s\n",
                         options.output, FormatCount(static_cast<double>(writer->count)),
                         FormatBytes(static_cast<double>(bytes)),
                         static_cast<double>(bytes) / static_cast<double>(writer->count),
                         (*tokenizer)->size(), FormatSeconds(seconds));
  return absl::OkStatus();
}

} // namespace boa
