//===- gguf.cpp - The tokenizer of a GGUF file ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/formats/gguf.h"

#include "runtime/tokenizer/readers.h"
#include "runtime/tokenizer/scored.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"

#include <algorithm>
#include <utility>

namespace boa {
namespace {

constexpr char kPrefix[] = "tokenizer.ggml.";

/// The parts that all models have.
struct Tokens {
  std::vector<std::string> texts;
  std::vector<TokenType> types;
  int32_t bos = -1, eos = -1, unknown = -1;
  int32_t end_of_turn = -1, end_of_message = -1;
};

absl::StatusOr<Tokens> ReadTokens(const GgufFile &file) {
  const auto key = [](const char *name) { return absl::StrCat(kPrefix, name); };
  const GgufValue *texts = file.Find(key("tokens")), *types = file.Find(key("token_type"));
  if (!texts || !texts->is_list || !texts->is_text || texts->texts.empty())
    return RefuseFile(file.path(), "no list `tokenizer.ggml.tokens`: it has no tokenizer");
  const size_t count = texts->texts.size();
  if (static_cast<int64_t>(count) > kMostTokens)
    return RefuseFile(file.path(), count, " tokens, where at most ", kMostTokens, " are allowed");
  const auto filled =
      static_cast<size_t>(std::count_if(texts->texts.begin(), texts->texts.end(),
                                        [](const std::string &text) { return !text.empty(); }));
  if (IsSparse(count, filled))
    return RefuseFile(file.path(), "ids up to ", count - 1, " for ", filled, " tokens");
  Tokens out;
  out.texts = texts->texts;
  out.types.assign(count, TokenType::normal);
  if (types) {
    if (types->numbers.size() != count)
      return RefuseFile(file.path(), types->numbers.size(), " types for ", count, " tokens");
    for (size_t id = 0; id < count; ++id) {
      const double type = types->numbers[id];
      if (!(type >= 0 && type <= 6))
        return RefuseFile(file.path(), "token ", id, " has the type ", type);
      if (type > 0) // 0: undefined
        out.types[id] = static_cast<TokenType>(static_cast<int>(type));
    }
  }
  for (auto [name, id] :
       {std::pair("bos_token_id", &out.bos), std::pair("eos_token_id", &out.eos),
        std::pair("unknown_token_id", &out.unknown), std::pair("eot_token_id", &out.end_of_turn),
        std::pair("eom_token_id", &out.end_of_message)}) {
    const int64_t value = file.Number(key(name), -1);
    if (value < -1 || value >= static_cast<int64_t>(count))
      return RefuseFile(file.path(), key(name), " is ", value, " of ", count, " tokens");
    *id = static_cast<int32_t>(value);
  }
  for (size_t id = 0; id < count; ++id) {
    if (FindInvalidUtf8(out.texts[id]) != absl::string_view::npos)
      return RefuseFile(file.path(), "token ", id, ", `", absl::CHexEscape(out.texts[id]),
                        "`, is no UTF-8");
    if (static_cast<int64_t>(out.texts[id].size()) > kMostTokenBytes)
      return RefuseFile(file.path(), "token ", id, " has ", out.texts[id].size(), " bytes");
  }
  return out;
}

/// Control and user-defined tokens are found in the text.
absl::Status MoveAdded(const Tokens &tokens, const std::string &source, Definition &definition) {
  definition.tokens = tokens.texts;
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    const TokenType type = tokens.types[id];
    if (type == TokenType::unused)
      definition.tokens[id].clear();
    if (type != TokenType::control && type != TokenType::user_defined)
      continue;
    AddedToken added;
    added.id = static_cast<int32_t>(id);
    added.content = tokens.texts[id];
    added.special = type == TokenType::control;
    if (added.content.empty())
      return RefuseFile(source, "token ", id, " is empty");
    definition.added.push_back(std::move(added));
  }
  return absl::OkStatus();
}

absl::Status ReadMerges(const GgufFile &file, Definition &definition) {
  const GgufValue *merges = file.Find("tokenizer.ggml.merges");
  if (!merges || !merges->is_list || !merges->is_text)
    return RefuseFile(file.path(), "no list `tokenizer.ggml.merges`");
  absl::flat_hash_map<absl::string_view, int32_t> ids;
  for (size_t id = 0; id < definition.tokens.size(); ++id)
    ids.emplace(definition.tokens[id], static_cast<int32_t>(id));
  std::string joined;
  for (size_t rank = 0; rank < merges->texts.size(); ++rank) {
    const absl::string_view pair = merges->texts[rank];
    const size_t space = pair.find(' ', 1);
    if (space == absl::string_view::npos || space + 1 == pair.size())
      return RefuseFile(file.path(), "merge ", rank, " is `", absl::CHexEscape(pair),
                        "`, not two tokens with a space between");
    joined = absl::StrCat(pair.substr(0, space), pair.substr(space + 1));
    const auto left = ids.find(pair.substr(0, space)), right = ids.find(pair.substr(space + 1)),
               whole = ids.find(joined);
    if (left == ids.end() || right == ids.end() || whole == ids.end())
      return RefuseFile(file.path(), "merge ", rank, ", `", absl::CHexEscape(pair),
                        "`, is not of tokens");
    definition.merges.push_back(
        {left->second, right->second, static_cast<int32_t>(rank), whole->second});
  }
  return absl::OkStatus();
}

absl::StatusOr<Definition> ReadBytePairs(const GgufFile &file, const Tokens &tokens) {
  Definition definition;
  definition.byte_level = true;
  const std::string family = file.Text("tokenizer.ggml.pre");
  std::vector<Matcher> matchers;
  if (family.empty())
    return RefuseFile(file.path(), "no `tokenizer.ggml.pre`: it does not say how texts are split");
  if (!MatchersForFamily(family, matchers))
    return RefuseFile(file.path(), "the pre-tokenizer `", absl::CHexEscape(family),
                      "` is not done");
  for (Matcher &matcher : matchers) {
    definition.splits.emplace_back();
    definition.splits.back().matcher = std::move(matcher);
  }
  // Not in the file, but in the tokenizer that it was made from.
  if (family == "qwen2" || family == "qwen35" || family == "deepseek-r1-qwen")
    definition.normalizers.emplace_back();
  definition.ignore_merges =
      family == "llama-bpe" || family == "llama3" || family == "llama-v3" || family == "tekken";
  if (absl::Status status = MoveAdded(tokens, file.path(), definition); !status.ok())
    return status;
  if (absl::Status status = ReadMerges(file, definition); !status.ok())
    return status;
  if (absl::Status status = MakeByteLevel(definition, file.path()); !status.ok())
    return status;
  if (file.Flag("tokenizer.ggml.add_bos_token", definition.ignore_merges) && tokens.bos >= 0)
    definition.before = {tokens.bos};
  if (file.Flag("tokenizer.ggml.add_eos_token", false) && tokens.eos >= 0)
    definition.after = {tokens.eos};
  return definition;
}

absl::StatusOr<Definition> ReadScored(const GgufFile &file, Tokens tokens) {
  ScoredTokens scored;
  const GgufValue *scores = file.Find("tokenizer.ggml.scores");
  if (!scores || scores->numbers.size() != tokens.texts.size())
    return RefuseFile(file.path(), "no score for each token");
  scored.scores.assign(scores->numbers.begin(), scores->numbers.end());
  scored.prefix_space = file.Flag("tokenizer.ggml.add_space_prefix", true);
  scored.bos = tokens.bos >= 0 ? tokens.bos : 1;
  scored.eos = tokens.eos >= 0 ? tokens.eos : 2;
  scored.add_bos = file.Flag("tokenizer.ggml.add_bos_token", true);
  scored.add_eos = file.Flag("tokenizer.ggml.add_eos_token", false);
  scored.texts = std::move(tokens.texts);
  scored.types = std::move(tokens.types);
  return ToDefinition(std::move(scored), file.path());
}

/// A token that begins a word is written with U+2581 before it, others without ##.
absl::StatusOr<Definition> ReadWordPiece(const GgufFile &file, Tokens tokens) {
  Definition definition;
  definition.model = Definition::Model::wordpiece;
  definition.decoding = Definition::Decoding::wordpiece;
  definition.cleanup = true;
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    std::string &text = tokens.texts[id];
    if (tokens.types[id] != TokenType::normal)
      continue;
    if (text.compare(0, 3, "\xe2\x96\x81") == 0)
      text.erase(0, 3);
    else if (text.size() < 2 || text.front() != '[' || text.back() != ']')
      text.insert(0, "##");
  }
  if (absl::Status status = MoveAdded(tokens, file.path(), definition); !status.ok())
    return status;
  NormalizerStep bert;
  bert.kind = NormalizerStep::Kind::bert;
  bert.clean_text = bert.separate_cjk = bert.accents = bert.lowercase = true;
  definition.normalizers = {bert};
  SplitStep spaces, punctuation;
  spaces.matcher.kind = Matcher::Kind::space;
  spaces.behavior = SplitBehavior::removed;
  punctuation.matcher.kind = Matcher::Kind::punctuation;
  definition.splits = {spaces, punctuation};
  const int64_t cls = file.Number("tokenizer.ggml.cls_token_id", tokens.bos);
  const int64_t separator = file.Number("tokenizer.ggml.seperator_token_id", tokens.eos);
  for (auto [id, list] :
       {std::pair(cls, &definition.before), std::pair(separator, &definition.after)})
    if (id >= 0 && id < static_cast<int64_t>(tokens.texts.size()))
      list->push_back(static_cast<int32_t>(id));
  if (tokens.unknown < 0)
    return RefuseFile(file.path(), "a WordPiece model without an unknown token");
  return definition;
}

} // namespace

absl::StatusOr<Definition> ReadGguf(const std::string &path) {
  absl::StatusOr<GgufFile> file = GgufFile::Open(path);
  if (!file.ok())
    return file.status();
  const std::string model = file->Text("tokenizer.ggml.model");
  if (model != "gpt2" && model != "llama" && model != "bert")
    return RefuseFile(path, model.empty()
                                ? "it has no tokenizer"
                                : absl::StrCat("the tokenizer model `", absl::CHexEscape(model),
                                               "` is not done; gpt2, llama and bert can be "
                                               "read"));
  absl::StatusOr<Tokens> tokens = ReadTokens(*file);
  if (!tokens.ok())
    return tokens.status();
  const int32_t bos = tokens->bos, eos = tokens->eos, unknown = tokens->unknown;
  std::vector<int32_t> ends;
  for (int32_t id : {tokens->end_of_turn, tokens->end_of_message})
    if (id >= 0)
      ends.push_back(id);
  absl::StatusOr<Definition> definition = model == "gpt2"    ? ReadBytePairs(*file, *tokens)
                                          : model == "llama" ? ReadScored(*file, *tokens)
                                                             : ReadWordPiece(*file, *tokens);
  if (!definition.ok())
    return definition;
  // Of `llama` there are tokens where the file names none.
  if (bos >= 0)
    definition->bos = bos;
  if (eos >= 0)
    definition->eos = eos;
  definition->ends = std::move(ends);
  // Byte-level models have a token for every byte.
  if (model != "gpt2" && unknown >= 0)
    definition->unknown = unknown;
  Definition::Chat &chat = definition->chat;
  chat.jinja = file->Text("tokenizer.chat_template");
  chat.with_tools = file->Text("tokenizer.chat_template.tool_use");
  chat.source = chat.jinja.empty() ? "" : path;
  for (auto [name, key] : {std::pair("unk_token", "unknown"), std::pair("pad_token", "padding"),
                           std::pair("mask_token", "mask")}) {
    const int64_t id = file->Number(absl::StrCat("tokenizer.ggml.", key, "_token_id"), -1);
    for (const AddedToken &token : definition->added)
      if (token.id == id)
        chat.tokens.emplace_back(name, token.content);
  }
  return definition;
}

} // namespace boa
