//===- huggingface.cpp - tokenizer.json -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/huggingface.h"

#include "runtime/formats/json.h"
#include "runtime/support/refuse.h"
#include "runtime/tokenizer/readers.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"

#include <utility>

namespace boa {
namespace {

using Json = nlohmann::json;
using Ids = absl::flat_hash_map<absl::string_view, int32_t>;

/// A token id within the limits; false if it is none.
bool ReadId(const Json &value, int32_t &id) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= static_cast<uint64_t>(kMostTokens))
    return false;
  id = value.get<int32_t>();
  return true;
}

absl::Status ReadVocabulary(const Json &model, Definition &definition) {
  const Json *vocabulary = JsonMember(model, "vocab");
  if (!vocabulary || !vocabulary->is_object())
    return Refuse("`model.vocab` is not an object of tokens and their ids");
  for (const auto &[token, value] : vocabulary->items()) {
    int32_t id = 0;
    if (!ReadId(value, id))
      return Refuse("token ", Backquoted(token), " has the id ", value.dump(),
                    ", which is not a number from 0 to ", kMostTokens - 1);
    if (token.empty())
      return Refuse("token ", id, " is empty");
    if (static_cast<size_t>(id) >= definition.tokens.size())
      definition.tokens.resize(id + 1);
    if (!definition.tokens[id].empty())
      return Refuse("tokens ", Backquoted(definition.tokens[id]), " and ", Backquoted(token),
                    " have one id, ", id);
    definition.tokens[id] = token;
  }
  if (IsSparse(definition.tokens.size(), vocabulary->size()))
    return Refuse("ids up to ", definition.tokens.size() - 1, " for ", vocabulary->size(),
                  " tokens");
  return absl::OkStatus();
}

absl::Status ReadMerges(const Json &model, const Ids &ids, Definition &definition) {
  const Json *merges = JsonMember(model, "merges");
  if (!merges || !merges->is_array())
    return Refuse("`model.merges` is not a list");
  std::string joined;
  for (size_t rank = 0; rank < merges->size(); ++rank) {
    const Json &merge = (*merges)[rank];
    absl::string_view left, right;
    if (merge.is_string()) {
      const absl::string_view pair = merge.get_ref<const std::string &>();
      const size_t space = pair.find(' ');
      if (space == absl::string_view::npos || pair.find(' ', space + 1) != pair.npos)
        return Refuse("merge ", rank, " is ", Backquoted(pair),
                      ", not two tokens with a space between");
      left = pair.substr(0, space);
      right = pair.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      left = merge[0].get_ref<const std::string &>();
      right = merge[1].get_ref<const std::string &>();
    } else {
      return Refuse("merge ", rank, " is not a pair of tokens");
    }
    joined = absl::StrCat(left, right);
    Merge found;
    found.rank = static_cast<int32_t>(rank);
    for (auto [token, id] : {std::pair(left, &found.left), std::pair(right, &found.right),
                             std::pair(absl::string_view(joined), &found.result)}) {
      auto it = ids.find(token);
      if (token.empty() || it == ids.end())
        return Refuse("merge ", rank, ", of ", Backquoted(left), " and ", Backquoted(right), ": ",
                      Backquoted(token), " is no token");
      *id = it->second;
    }
    definition.merges.push_back(found);
  }
  return absl::OkStatus();
}

absl::Status ReadUnknown(const Json &model, const Ids &ids, Definition &definition) {
  const std::string unknown = JsonText(model, "unk_token");
  if (unknown.empty())
    return absl::OkStatus();
  auto it = ids.find(unknown);
  if (it == ids.end())
    return Refuse("`unk_token` is ", Backquoted(unknown), ", which is no token");
  definition.unknown = it->second;
  return absl::OkStatus();
}

/// Older files do not name the model.
std::string TypeOfModel(const Json &model) {
  const std::string type = JsonText(model, "type");
  if (!type.empty())
    return type;
  return JsonMember(model, "merges")                     ? "BPE"
         : JsonMember(model, "max_input_chars_per_word") ? "WordPiece"
                                                         : "";
}

absl::Status ReadModel(const Json &model, Definition &definition) {
  const std::string type = TypeOfModel(model);
  if (type != "BPE" && type != "WordPiece")
    return Refuse("the model is ", Backquoted(type), "; BPE and WordPiece can be read");
  if (absl::Status status = ReadVocabulary(model, definition); !status.ok())
    return status;
  Ids ids;
  ids.reserve(definition.tokens.size());
  for (size_t id = 0; id < definition.tokens.size(); ++id)
    if (!definition.tokens[id].empty())
      ids.emplace(definition.tokens[id], static_cast<int32_t>(id));
  if (absl::Status status = ReadUnknown(model, ids, definition); !status.ok())
    return status;
  if (type == "WordPiece") {
    definition.model = Definition::Model::wordpiece;
    definition.continuing = JsonText(model, "continuing_subword_prefix", "##");
    const Json *most = JsonMember(model, "max_input_chars_per_word");
    if (most && (!most->is_number_unsigned() || most->get<uint64_t>() > 1000000))
      return Refuse("`max_input_chars_per_word` is ", most->dump(), ", not a number to 1000000");
    if (most)
      definition.most_word_characters = most->get<int64_t>();
    return definition.unknown < 0 ? Refuse("a WordPiece model without `unk_token`")
                                  : absl::OkStatus();
  }
  for (const char *key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const std::string affix = JsonText(model, key); !affix.empty())
      return Refuse("`model.", key, "` is ", Backquoted(affix), ", which is not done for BPE");
  const Json *dropout = JsonMember(model, "dropout");
  if (dropout && !(dropout->is_number() && dropout->get<double>() == 0))
    return Refuse("`model.dropout` is ", dropout->dump(), ": merges are never left out");
  definition.fuse_unknown = JsonFlag(model, "fuse_unk", false);
  definition.byte_fallback = JsonFlag(model, "byte_fallback", false);
  definition.ignore_merges = JsonFlag(model, "ignore_merges", false);
  return ReadMerges(model, ids, definition);
}

absl::Status ReadAdded(const Json &list, Definition &definition) {
  if (!list.is_array())
    return Refuse("`added_tokens` is not a list");
  absl::flat_hash_map<int32_t, std::string> contents;
  absl::flat_hash_map<std::string, int32_t> ids;
  for (const Json &entry : list) {
    AddedToken token;
    const Json *id = JsonMember(entry, "id");
    token.content = JsonText(entry, "content");
    if (!id || !ReadId(*id, token.id) || token.content.empty())
      return Refuse("an entry of `added_tokens` without id or content: ",
                    entry.dump().substr(0, 80));
    if (static_cast<int64_t>(token.content.size()) > kMostTokenBytes)
      return Refuse("added token ", token.id, " has ", token.content.size(), " bytes");
    if (auto [it, is_new] = contents.emplace(token.id, token.content); !is_new)
      return Refuse("added tokens ", Backquoted(it->second), " and ", Backquoted(token.content),
                    " have one id, ", token.id);
    if (auto [it, is_new] = ids.emplace(token.content, token.id); !is_new)
      return Refuse("added tokens ", it->second, " and ", token.id, " are both ",
                    Backquoted(token.content));
    if (static_cast<size_t>(token.id) < definition.tokens.size() &&
        !definition.tokens[token.id].empty() && definition.tokens[token.id] != token.content)
      return Refuse("added token ", Backquoted(token.content), " and token ",
                    Backquoted(definition.tokens[token.id]), " have one id, ", token.id);
    token.special = JsonFlag(entry, "special", false);
    token.normalized = JsonFlag(entry, "normalized", !token.special);
    token.left_strip = JsonFlag(entry, "lstrip", false);
    token.right_strip = JsonFlag(entry, "rstrip", false);
    token.single_word = JsonFlag(entry, "single_word", false);
    definition.added.push_back(std::move(token));
  }
  return absl::OkStatus();
}

absl::Status ReadDocument(const Json &document, Definition &definition) {
  const Json *model = JsonMember(document, "model");
  if (!model || !model->is_object())
    return Refuse("no `model`: this is no tokenizer.json");
  if (absl::Status status = ReadModel(*model, definition); !status.ok())
    return status;
  struct Part {
    const char *key;
    absl::Status (*read)(const Json &, Definition &);
  };
  for (const Part &part : {Part{"added_tokens", ReadAdded}, Part{"normalizer", ReadNormalizer},
                           Part{"pre_tokenizer", ReadPreTokenizer},
                           Part{"post_processor", ReadPostProcessor}, Part{"decoder", ReadDecoder}})
    if (const Json *value = JsonMember(document, part.key))
      if (absl::Status status = part.read(*value, definition); !status.ok())
        return status;
  if (!JsonMember(document, "decoder") && definition.model == Definition::Model::bpe)
    return Refuse("no `decoder`: it is not said how tokens become text again");
  return absl::OkStatus();
}

} // namespace

const Json *JsonMember(const Json &object, const char *key) {
  if (!object.is_object())
    return nullptr;
  auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string JsonText(const Json &object, const char *key, const std::string &absent) {
  const Json *value = JsonMember(object, key);
  return value && value->is_string() ? value->get<std::string>() : absent;
}

bool JsonFlag(const Json &object, const char *key, bool absent) {
  const Json *value = JsonMember(object, key);
  return value && value->is_boolean() ? value->get<bool>() : absent;
}

absl::StatusOr<Definition> ReadHuggingFace(absl::string_view text, const std::string &source) {
  absl::StatusOr<Json> document = ParseJson(text);
  if (!document.ok())
    return RefuseFile(source, document.status().message());
  Definition definition;
  if (absl::Status status = ReadDocument(*document, definition); !status.ok())
    return RefuseFile(source, status.message());
  if (definition.byte_level)
    if (absl::Status status = MakeByteLevel(definition, source); !status.ok())
      return status;
  return definition;
}

} // namespace boa
