//===- folder_files.cpp - The small files of a model's folder -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/folder_files.h"

#include "runtime/formats/json.h"
#include "runtime/io/file_system.h"
#include "runtime/io/folder_file.h"
#include "runtime/io/input_file.h"
#include "runtime/io/new_file.h"
#include "runtime/weights/gguf_tokenizer.h"
#include "runtime/weights/rest_file.h"
#include "runtime/weights/weight_files.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace boa {

static constexpr char kTemplateFile[] = "chat_template.jinja"; // the others are read after it

static constexpr const char *kSmallFiles[] = {"generation_config.json",
                                              "tokenizer.json",
                                              "tokenizer_config.json",
                                              "tokenizer.model",
                                              "vocab.json",
                                              "merges.txt",
                                              "vocab.txt",
                                              "special_tokens_map.json",
                                              "added_tokens.json",
                                              kTemplateFile,
                                              "chat_template.json",
                                              "LICENSE",
                                              "LICENSE.txt",
                                              "NOTICE"};

std::string FolderBeside(const std::string &spec) {
  return std::filesystem::path(spec).replace_extension(".hf").string();
}

bool IsNameOfFolder(const std::string &name) {
  if (name == "config.json" || name == kRestFile || name == kWeightsIndex ||
      absl::StartsWith(name, "adapter_"))
    return true;
  if (absl::StartsWith(name, "model") && absl::EndsWith(name, ".safetensors"))
    return true;
  return std::any_of(std::begin(kSmallFiles), std::end(kSmallFiles),
                     [&](const char *small) { return name == small; });
}

absl::Status WriteSmallFile(const std::string &path, const std::string &text) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    absl::StatusOr<std::string> old = ReadInput(path);
    if (!old.ok())
      return old.status();
    if (*old == text)
      return absl::OkStatus();
    return absl::AlreadyExistsError(
        absl::StrCat("`", path, "` is there with other contents: name another file, or remove it"));
  }
  absl::StatusOr<NewFile> file = NewFile::Create(path);
  absl::Status status = file.status();
  if (status.ok())
    status = file->Append(text.data(), int64_t(text.size()));
  return status.ok() ? file->Publish() : status;
}

absl::StatusOr<std::string> CopySmallFiles(const std::string &from, const std::string &to,
                                           const std::string &jinja) {
  if (absl::Status status = SystemFiles().MakeDirectory(to);
      !status.ok() && !absl::IsAlreadyExists(status))
    return status;
  if (!jinja.empty())
    if (absl::Status status = WriteSmallFile(absl::StrCat(to, "/", kTemplateFile), jinja);
        !status.ok())
      return status;
  if (IsGgufName(from)) {
    const auto files = TokenizerOfGguf(from);
    if (absl::IsFailedPrecondition(files.status()))
      return absl::StrCat("no tokenizer stands in ", to,
                          ", and none will in an export: ", files.status().message());
    if (!files.ok())
      return files.status();
    for (const auto &[name, text] : *files)
      if (absl::Status status = WriteSmallFile(absl::StrCat(to, "/", name), text); !status.ok())
        return status;
    return "";
  }
  bool has_tokenizer = false;
  for (const char *name : kSmallFiles) {
    if (!jinja.empty() && name == absl::string_view(kTemplateFile))
      continue;
    absl::StatusOr<std::string> text = ReadFolderFile(from, name);
    if (absl::IsNotFound(text.status()))
      continue;
    if (!text.ok())
      return text.status();
    if (absl::Status status = WriteSmallFile(absl::StrCat(to, "/", name), *text); !status.ok())
      return status;
    for (const char *tokenizer : {"tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt"})
      has_tokenizer |= name == absl::string_view(tokenizer);
  }
  return has_tokenizer ? ""
                       : absl::StrCat("`", from, "` has no tokenizer, so ", to,
                                      " has none: transformers needs its files there");
}

absl::StatusOr<int64_t> FindMaskToken(const std::string &folder) {
  constexpr char kMask[] = "[MASK]";
  if (absl::StatusOr<std::string> text = ReadFolderFile(folder, "tokenizer.json"); text.ok()) {
    const nlohmann::json json = ParseJson(*text).value_or(nlohmann::json());
    if (json.is_object() && json.contains("added_tokens") && json["added_tokens"].is_array())
      for (const auto &token : json["added_tokens"])
        if (token.is_object() && token.contains("content") && token["content"] == kMask &&
            token.contains("id") && token["id"].is_number_unsigned())
          return token["id"].get<int64_t>();
  }
  if (absl::StatusOr<std::string> text = ReadFolderFile(folder, "vocab.txt"); text.ok()) {
    int64_t number = 0;
    for (absl::string_view line : absl::StrSplit(*text, '\n')) {
      if (absl::StripSuffix(line, "\r") == kMask)
        return number;
      ++number;
    }
  }
  return absl::NotFoundError(absl::StrCat("`", folder,
                                          "`: neither tokenizer.json nor vocab.txt has the token "
                                          "[MASK], which the training of this model needs"));
}

} // namespace boa
