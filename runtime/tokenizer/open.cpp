//===- open.cpp - A tokenizer from a file of any format -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/io/file_system.h"
#include "runtime/io/folder_file.h"
#include "runtime/support/memory_errors.h"
#include "runtime/tokenizer/readers.h"
#include "runtime/tokenizer/tokenizer.h"

#include "absl/strings/ascii.h"

#include <algorithm>
#include <utility>

namespace boa {
namespace {

// Gemma's tokenizer.json has 34 MB.
constexpr int64_t kLargestFile = 256 << 20;

absl::StatusOr<Definition> ReadDefinition(const std::string &path, const std::string &family) {
  // A name that leads nowhere is opened unchanged, so that the error names it.
  absl::StatusOr<std::unique_ptr<OpenFile>> file =
      SystemFiles().Open(SystemFiles().RealPath(path).value_or(path), {});
  if (!file.ok())
    return file.status();
  absl::StatusOr<int64_t> size = (*file)->Size();
  if (!size.ok())
    return size.status();
  char magic[4] = {};
  if (*size >= 4)
    if (absl::Status status = (*file)->Read(0, magic, 4); !status.ok())
      return status;
  if (std::equal(magic, magic + 4, "GGUF")) // with a model's weights, of any size
    return ReadGguf(path);
  if (*size > kLargestFile)
    return RefuseFile(path, "it has ", *size, " bytes, where a tokenizer has at most ",
                      kLargestFile);
  std::string text(*size, '\0');
  if (absl::Status status = (*file)->Read(0, text.data(), *size); !status.ok())
    return status;
  const absl::string_view begin = absl::StripLeadingAsciiWhitespace(text);
  if (!begin.empty() && begin[0] == '{') {
    absl::StatusOr<Definition> definition = ReadHuggingFace(text, path);
    if (definition.ok() && path.substr(path.rfind('/') + 1) == "tokenizer.json")
      if (absl::Status status = ReadConfig(FolderOf(path), *definition); !status.ok())
        return status;
    return definition;
  }
  if (LooksLikeTiktoken(text))
    return ReadTiktoken(text, family, path);
  if (!text.empty() && text[0] == '\n') // the tag of the first piece
    return ReadSentencePiece(text, path);
  return RefuseFile(path, "it is no tokenizer: neither a tokenizer.json, a tokenizer.model of "
                          "SentencePiece, a tiktoken file nor a GGUF file");
}

} // namespace

absl::StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::Open(const std::string &path,
                                                                 const std::string &family) {
  using Opened = absl::StatusOr<std::shared_ptr<const Tokenizer>>;
  return WithinMemory(path, [&]() -> Opened {
    absl::StatusOr<Definition> definition = ReadDefinition(path, family);
    if (!definition.ok())
      return definition.status();
    return Create(*std::move(definition), path);
  });
}

} // namespace boa
