//===- config.cpp - What stands beside a tokenizer.json -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tokenizer_config.json names the tokens that begin and end a text, and may have the chat template;
// newer models have it in chat_template.jinja. Either file may be absent.
//
//===----------------------------------------------------------------------===//
#include "runtime/formats/json.h"
#include "runtime/io/file_system.h"
#include "runtime/tokenizer/huggingface.h"
#include "runtime/tokenizer/readers.h"

#include <utility>

namespace boa {
namespace {

using Json = nlohmann::json;

/// The id of a token by its text; -1.
int32_t FindToken(const Definition &definition, const std::string &text) {
  for (const AddedToken &token : definition.added)
    if (token.content == text)
      return token.id;
  for (size_t id = 0; id < definition.tokens.size(); ++id)
    if (definition.tokens[id] == text)
      return static_cast<int32_t>(id);
  return -1;
}

/// A token as text, or as an object with that text; "" if there is none.
std::string TokenText(const Json &config, const char *key) {
  const Json *value = JsonMember(config, key);
  return value && value->is_object() ? JsonText(*value, "content") : JsonText(config, key);
}

} // namespace

absl::Status ReadConfig(const std::string &folder, Definition &definition) {
  const std::string path = folder + "tokenizer_config.json";
  const absl::StatusOr<std::string> text = ReadSmallFile(SystemFiles(), path);
  if (!text.ok() && !absl::IsNotFound(text.status()))
    return text.status();
  if (text.ok()) {
    const absl::StatusOr<Json> config = ParseJson(*text);
    if (!config.ok())
      return RefuseFile(path, config.status().message());
    for (auto [key, id] :
         {std::pair("bos_token", &definition.bos), std::pair("eos_token", &definition.eos)}) {
      const std::string token = TokenText(*config, key);
      if (token.empty())
        continue;
      *id = FindToken(definition, token);
      if (*id < 0)
        return RefuseFile(path, "`", key, "` is `", token, "`, which is no token");
    }
    definition.chat_template = JsonText(*config, "chat_template");
  }
  const absl::StatusOr<std::string> jinja =
      ReadSmallFile(SystemFiles(), folder + "chat_template.jinja");
  if (jinja.ok())
    definition.chat_template = *jinja;
  return jinja.ok() || absl::IsNotFound(jinja.status()) ? absl::OkStatus() : jinja.status();
}

} // namespace boa
