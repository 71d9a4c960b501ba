//===- tokenizer_print.cpp - Fingerprints of tokenizers and templates -----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/tokenizer_print.h"

#include "runtime/io/folder_file.h"
#include "runtime/io/input_file.h"
#include "runtime/tokenizer/chat.h"
#include "runtime/tokenizer/readers.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace boa {
namespace {

constexpr int64_t kLargestTokenizer = 256 << 20; // of a GGUF file, what is behind are weights

bool HasFilesBeside(const std::string &path) {
  return path.substr(path.rfind('/') + 1) == "tokenizer.json";
}

/// The first bytes of a file, at most so many.
absl::StatusOr<std::string> ReadBegin(const std::string &path, int64_t most) {
  absl::StatusOr<InputFile> opened = InputFile::Open(path);
  if (!opened.ok())
    return opened.status();
  std::string text(size_t(std::min(opened->size(), most)), '\0');
  if (absl::Status status = opened->Read(0, text.data(), int64_t(text.size())); !status.ok())
    return status;
  return text;
}

/// What a tokenizer's files say of conversations.
absl::StatusOr<Definition::Chat> ChatOfTokenizer(const std::string &path) {
  if (HasFilesBeside(path))
    return ReadChat(FolderOf(path));
  absl::StatusOr<std::string> magic = ReadBegin(path, 4);
  if (!magic.ok())
    return magic.status();
  if (*magic != "GGUF")
    return Definition::Chat();
  absl::StatusOr<Definition> definition = ReadGguf(path);
  if (!definition.ok())
    return definition.status();
  return definition->chat;
}

} // namespace

absl::StatusOr<std::string> PrintOfTokenizer(const std::string &path) {
  absl::StatusOr<std::string> text = ReadBegin(path, kLargestTokenizer);
  if (!text.ok())
    return text.status();
  absl::StatusOr<std::vector<std::string>> parts = std::vector<std::string>();
  if (HasFilesBeside(path))
    parts = PartsBeside(FolderOf(path));
  if (!parts.ok())
    return parts.status();
  parts->insert(parts->begin(), *std::move(text));
  std::string all;
  for (const std::string &part : *parts)
    absl::StrAppend(&all, part.empty() ? "none" : KeyOf(part), " ");
  return KeyOf(all);
}

absl::StatusOr<TemplatePrint> PrintOfTemplate(const DataSource &source, const CacheOptions &cache) {
  TemplatePrint print;
  if (source.kind != SourceKind::chat)
    return print;
  absl::StatusOr<Definition::Chat> own = Definition::Chat();
  if (source.form.empty())
    own = ChatOfTokenizer(source.tokenizer);
  if (!own.ok())
    return own.status();
  absl::StatusOr<std::vector<TemplateSource>> templates = FindTemplates(source.form, *own);
  if (!templates.ok())
    return templates.status();
  for (const TemplateSource &one : *templates) {
    absl::StrAppend(&print.text, KeyOf(one.text), " ");
    if (absl::StrContains(one.text, "strftime_now"))
      print.date = cache.date;
  }
  return print;
}

} // namespace boa
