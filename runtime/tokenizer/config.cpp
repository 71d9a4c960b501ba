//===- config.cpp - What stands beside a tokenizer.json -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four files may name the tokens that begin and end a text, and any of them may be absent. The
// first one that names a token of the tokenizer holds. The others are compared with it.
//
// A model ends its text with the token that ends a document, and with those that
// generation_config.json names; where that names none, with those of config.json.
//
// The chat template is in chat_template.jinja, else in chat_template.json, else in
// tokenizer_config.json. A list of named templates has `default`, and perhaps `tool_use`.
//
//===----------------------------------------------------------------------===//
#include "runtime/formats/json.h"
#include "runtime/io/folder_file.h"
#include "runtime/tokenizer/huggingface.h"
#include "runtime/tokenizer/readers.h"

#include "absl/strings/match.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace boa {
namespace {

using Json = nlohmann::json;

/// In the order in which they hold. The first two write tokens as texts, the others as ids.
constexpr const char *kConfig = "tokenizer_config.json", *kModel = "config.json",
                     *kGeneration = "generation_config.json", *kJinja = "chat_template.jinja",
                     *kChatJson = "chat_template.json",
                     *kNaming[] = {kConfig, "special_tokens_map.json", kModel, kGeneration};

struct NamingFile {
  std::string name, path;
  Json json;
  bool has_ids() const { return name == kModel || name == kGeneration; }
  /// What the file says of the token "bos" or "eos"; null if nothing.
  const Json *Find(const std::string &token) const {
    return JsonMember(json, absl::StrCat(token, has_ids() ? "_token_id" : "_token").c_str());
  }
  /// The text of the token, which stands there or in an object; "": the file names none.
  std::string TextOf(const std::string &token) const {
    const Json *value = Find(token);
    return !value               ? ""
           : value->is_object() ? JsonText(*value, "content")
           : value->is_string() ? value->get<std::string>()
                                : "";
  }
};

absl::StatusOr<std::vector<NamingFile>> ReadNaming(const std::string &folder) {
  std::vector<NamingFile> files;
  for (const char *name : kNaming) {
    const absl::StatusOr<std::string> text = ReadFolderFile(folder, name);
    if (absl::IsNotFound(text.status()))
      continue;
    if (!text.ok())
      return text.status();
    const std::string path = absl::StrCat(folder, "/", name);
    absl::StatusOr<Json> json = ParseJson(*text);
    if (!json.ok())
      return RefuseFile(path, json.status().message());
    files.push_back({name, path, *std::move(json)});
  }
  return files;
}

/// The id of a token by its text; -1.
int32_t FindToken(const Definition &definition, const std::string &text) {
  for (const AddedToken &token : definition.added)
    if (token.content == text)
      return token.id;
  for (size_t id = 0; id < definition.tokens.size() && !text.empty(); ++id)
    if (definition.tokens[id] == text)
      return static_cast<int32_t>(id);
  return -1;
}

/// The text of a token; nothing if there is no such id.
std::optional<std::string> TextOf(const Definition &definition, uint64_t id) {
  for (const AddedToken &token : definition.added)
    if (uint64_t(token.id) == id)
      return token.content;
  if (id < definition.tokens.size() && !definition.tokens[id].empty())
    return definition.tokens[id];
  return std::nullopt;
}

/// The tokens that a file names, in its order. Those that the tokenizer lacks are left out, with a
/// note.
absl::StatusOr<std::vector<int32_t>> IdsOf(const NamingFile &file, const std::string &token,
                                           Definition &definition) {
  std::vector<int32_t> ids;
  const Json *value = file.Find(token);
  if (!value)
    return ids;
  if (!file.has_ids()) {
    const std::string text = file.TextOf(token);
    const int32_t id = FindToken(definition, text);
    if (id >= 0)
      ids.push_back(id);
    else if (!text.empty() && file.name == kConfig)
      return RefuseFile(file.path, "`", token, "_token` is `", text, "`, which is no token");
    else if (!text.empty())
      definition.notes.push_back(absl::StrCat("`", file.path, "`: `", token, "_token` is ",
                                              Backquoted(text),
                                              ", which is no token: it is left out"));
    return ids;
  }
  for (const Json &id : value->is_array() ? *value : Json::array({*value})) {
    if (!id.is_number_integer())
      return RefuseFile(file.path, "`", token,
                        "_token_id`: expected the number of a token, or a "
                        "list of them, but found ",
                        id.dump().substr(0, 40));
    if (!id.is_number_unsigned()) // -1 is a way to say none
      continue;
    const std::optional<std::string> text = TextOf(definition, id.get<uint64_t>());
    const bool is_added =
        std::any_of(definition.added.begin(), definition.added.end(), [&](const AddedToken &added) {
          return uint64_t(added.id) == id.get<uint64_t>();
        });
    // A number of config.json that a family has by default may be any word of another vocabulary.
    if (is_added || (text && file.name == kGeneration))
      ids.push_back(id.get<int32_t>());
    else
      definition.notes.push_back(
          absl::StrCat("`", file.path, "`: `", token, "_token_id` is ", id.dump(),
                       text ? absl::StrCat(", ", Backquoted(*text), ", which is no added token")
                            : ", which the tokenizer does not have",
                       ": it is left out"));
  }
  return ids;
}

/// The token "bos" or "eos" by the first file that names one.
absl::Status ReadToken(const std::vector<NamingFile> &files, const std::string &token,
                       Definition &definition, int32_t &id) {
  const NamingFile *first = nullptr;
  std::vector<int32_t> ends;
  const bool is_end = token == "eos";
  for (const NamingFile &file : files) {
    absl::StatusOr<std::vector<int32_t>> ids = IdsOf(file, token, definition);
    if (!ids.ok())
      return ids.status();
    if (ids->empty())
      continue;
    if (file.has_ids())
      ends = *ids;
    if (!first) {
      first = &file;
      id = ids->front();
    } else if (is_end && std::find(ids->begin(), ids->end(), id) == ids->end()) {
      definition.notes.push_back(absl::StrCat(
          "`", first->path, "` ends a document with ",
          Backquoted(*TextOf(definition, uint64_t(id))), ", `", file.path, "` with ",
          Backquoted(*TextOf(definition, uint64_t(ids->front()))), ": the former holds"));
    }
  }
  if (is_end)
    definition.ends = std::move(ends);
  return absl::OkStatus();
}

/// `chat_template`: a text, or a list of {"name", "template"}, or an object of texts by their
/// names.
absl::Status ReadTemplates(const std::string &path, const Json &json, Definition::Chat &chat) {
  const Json *value = JsonMember(json, "chat_template");
  if (!value)
    return absl::OkStatus();
  if (value->is_string()) {
    chat.jinja = value->get<std::string>();
    chat.source = path;
    return absl::OkStatus();
  }
  std::vector<std::pair<std::string, std::string>> named;
  if (value->is_object())
    for (const auto &[name, text] : value->items())
      named.emplace_back(name, JsonText(*value, name.c_str()));
  else if (value->is_array())
    for (const Json &entry : *value)
      named.emplace_back(JsonText(entry, "name"), JsonText(entry, "template"));
  std::string names;
  for (auto &[name, text] : named) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", Backquoted(name));
    if (name == "default") {
      chat.jinja = std::move(text);
      chat.source = path;
    } else if (name == "tool_use") {
      chat.with_tools = std::move(text);
    }
  }
  if (chat.jinja.empty())
    return RefuseFile(path,
                      "`chat_template`: expected a text, or a list with one named `default`, ",
                      "but found ", names.empty() ? value->type_name() : names);
  return absl::OkStatus();
}

/// Special tokens by the names that templates use.
void ReadNames(const Json &json, Definition::Chat &chat) {
  for (const auto &[name, value] : json.items()) {
    const std::string text = value.is_string()   ? value.get<std::string>()
                             : value.is_object() ? JsonText(value, "content")
                                                 : "";
    if (absl::EndsWith(name, "_token") && !text.empty() && name != "bos_token" &&
        name != "eos_token")
      chat.tokens.emplace_back(name, text);
  }
}

/// The text of a file; "" if there is none.
absl::StatusOr<std::string> ReadIfThere(const std::string &folder, const std::string &name) {
  absl::StatusOr<std::string> text = ReadFolderFile(folder, name);
  return absl::IsNotFound(text.status()) ? "" : text;
}

absl::Status ReadChat(const std::string &folder, const std::vector<NamingFile> &files,
                      Definition::Chat &chat) {
  if (!files.empty() && files.front().name == kConfig) {
    ReadNames(files.front().json, chat);
    absl::Status status = ReadTemplates(files.front().path, files.front().json, chat);
    if (!status.ok())
      return status;
  }
  absl::StatusOr<std::string> json = ReadIfThere(folder, kChatJson);
  absl::StatusOr<std::string> jinja = ReadIfThere(folder, kJinja);
  if (!json.ok() || !jinja.ok())
    return json.ok() ? jinja.status() : json.status();
  if (!json->empty()) {
    const std::string path = absl::StrCat(folder, "/", kChatJson);
    absl::StatusOr<Json> read = ParseJson(*json);
    absl::Status status = read.status();
    if (status.ok())
      status = ReadTemplates(path, *read, chat);
    if (!status.ok())
      return read.ok() ? status : RefuseFile(path, status.message());
  }
  if (!jinja->empty()) {
    chat.jinja = *std::move(jinja);
    chat.source = absl::StrCat(folder, "/", kJinja);
    chat.with_tools.clear();
  }
  return absl::OkStatus();
}

} // namespace

absl::Status ReadConfig(const std::string &folder, Definition &definition) {
  absl::StatusOr<std::vector<NamingFile>> files = ReadNaming(folder);
  if (!files.ok())
    return files.status();
  for (auto [token, id] : {std::pair("bos", &definition.bos), std::pair("eos", &definition.eos)})
    if (absl::Status status = ReadToken(*files, token, definition, *id); !status.ok())
      return status;
  return ReadChat(folder, *files, definition.chat);
}

absl::StatusOr<Definition::Chat> ReadChat(const std::string &folder) {
  absl::StatusOr<std::vector<NamingFile>> files = ReadNaming(folder);
  if (!files.ok())
    return files.status();
  Definition::Chat chat;
  absl::Status status = ReadChat(folder, *files, chat);
  if (!status.ok())
    return status;
  return chat;
}

absl::StatusOr<std::vector<std::string>> PartsBeside(const std::string &folder) {
  std::vector<std::string> parts;
  for (const char *name : {kConfig, kJinja, kChatJson}) {
    absl::StatusOr<std::string> text = ReadIfThere(folder, name);
    if (!text.ok())
      return text.status();
    parts.push_back(*std::move(text));
  }
  absl::StatusOr<std::vector<NamingFile>> files = ReadNaming(folder);
  if (!files.ok())
    return files.status();
  const bool has_config = !files->empty() && files->front().name == kConfig;
  for (const char *token : {"bos", "eos"})
    if (!has_config || files->front().TextOf(token).empty())
      for (const NamingFile &file : *files)
        if (const Json *value = file.Find(token))
          parts.push_back(absl::StrCat(file.name, " ", token, " ", value->dump()));
  return parts;
}

} // namespace boa
