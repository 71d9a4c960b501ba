//===- gguf_tokenizer.cpp - The tokenizer in a GGUF file ------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/gguf_tokenizer.h"

#include "runtime/formats/gguf.h"
#include "runtime/tokenizer/readers.h"
#include "runtime/tokenizer/tokenizer.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

namespace boa {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

absl::Status CannotWrite(const std::string &why) { return absl::FailedPreconditionError(why); }

Json ByteLevel(bool splits) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", splits}};
}

/// A byte-level model composes characters or leaves the text alone. Others write a mark for a
/// space, and put one before the text.
Json Normalizer(const Definition &definition) {
  if (definition.byte_level)
    return definition.normalizers.empty() ? Json() : Json{{"type", "NFC"}};
  Json steps = Json::array();
  if (definition.prefix_mark)
    steps.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMark}});
  return {{"type", "Sequence"}, {"normalizers", steps}};
}

/// Splits of byte-level models: digits, then the pieces of a family.
Json PreTokenizer(const Definition &definition) {
  if (!definition.byte_level)
    return nullptr;
  Json steps = Json::array();
  bool splits = false;
  for (const SplitStep &step : definition.splits) {
    if (step.matcher.kind == Matcher::Kind::digits)
      steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
    else if (splits = step.matcher.rules == SplitRules(); !splits) // those of GPT-2 are its own
      steps.push_back({{"type", "Split"},
                       {"pattern", {{"Regex", PatternOf(step.matcher.rules)}}},
                       {"behavior", "Isolated"},
                       {"invert", false}});
  }
  steps.push_back(ByteLevel(splits));
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

Json Decoder(const Definition &definition) {
  if (definition.byte_level)
    return ByteLevel(true);
  Json steps = Json::array();
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", kSpaceMark}}}, {"content", " "}});
  steps.push_back({{"type", "ByteFallback"}});
  steps.push_back({{"type", "Fuse"}});
  if (definition.strip_first_space)
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", steps}};
}

/// The tokens around a text; null if there are none.
Json Around(const Definition &definition, const Texts &texts) {
  if (definition.before.empty() && definition.after.empty())
    return nullptr;
  Json single = Json::array(), pair = Json::array(), special = Json::object();
  const auto add = [&](const std::vector<int32_t> &ids, int type, Json &list) {
    for (int32_t id : ids) {
      const std::string &text = texts[size_t(id)];
      list.push_back({{"SpecialToken", {{"id", text}, {"type_id", type}}}});
      special[text] = {{"id", text}, {"ids", Json::array({id})}, {"tokens", Json::array({text})}};
    }
  };
  const auto sequence = [](const char *name, int type) {
    return Json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  add(definition.before, 0, single);
  pair = single;
  single.push_back(sequence("A", 0));
  add(definition.after, 0, single);
  pair.push_back(sequence("A", 0));
  pair.push_back(sequence("B", 1));
  add(definition.after, 1, pair);
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", special}};
}

/// Merges in their order. Where scores decide, equal ones would leave it open.
absl::StatusOr<Json> Merges(const Definition &definition, const Texts &texts) {
  std::vector<Merge> merges = definition.merges;
  std::sort(merges.begin(), merges.end(), [](const Merge &a, const Merge &b) {
    return std::tie(a.rank, a.left, a.right) < std::tie(b.rank, b.left, b.right);
  });
  Json list = Json::array();
  for (size_t i = 0; i < merges.size(); ++i) {
    if (i > 0 && merges[i].rank == merges[i - 1].rank && merges[i].result != merges[i - 1].result)
      return CannotWrite("two of its tokens have the same score");
    const std::string &left = texts[size_t(merges[i].left)],
                      &right = texts[size_t(merges[i].right)];
    // A space ends the name of a token here. In a text it is a mark, so no merge has one.
    if (left.find(' ') == left.npos && right.find(' ') == right.npos)
      list.push_back(absl::StrCat(left, " ", right));
  }
  return list;
}

Json AddedTokens(const Definition &definition) {
  Json list = Json::array();
  for (const AddedToken &token : definition.added)
    list.push_back({{"id", token.id},
                    {"content", token.content},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", token.special}});
  return list;
}

/// What the tokenizer of the file does.
absl::StatusOr<Definition> Read(const std::string &path) {
  absl::StatusOr<Definition> read = ReadGguf(path);
  if (!read.ok())
    return CannotWrite(std::string(read.status().message()));
  if (auto made = Tokenizer::Create(*read, path); !made.ok())
    return CannotWrite(std::string(made.status().message()));
  if (read->model != Definition::Model::bpe)
    return CannotWrite(absl::StrCat("`", path, "`: its tokenizer is no BPE"));
  return read;
}

std::string Print(const Json &json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace

absl::StatusOr<std::map<std::string, std::string>> TokenizerOfGguf(const std::string &path) {
  absl::StatusOr<GgufFile> file = GgufFile::Open(path);
  if (!file.ok())
    return file.status();
  absl::StatusOr<Definition> read = Read(path);
  if (!read.ok())
    return read.status();
  const Texts &texts = file->Find("tokenizer.ggml.tokens")->texts;
  absl::StatusOr<Json> merges = Merges(*read, texts);
  if (!merges.ok())
    return CannotWrite(absl::StrCat("`", path, "`: ", merges.status().message()));
  Json vocab = Json::object();
  for (size_t id = 0; id < texts.size(); ++id)
    vocab.push_back({texts[id], id});
  const auto text_of = [&](int32_t id) { return id < 0 ? Json() : Json(texts[size_t(id)]); };
  Json all = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  all["added_tokens"] = AddedTokens(*read);
  all["normalizer"] = Normalizer(*read);
  all["pre_tokenizer"] = PreTokenizer(*read);
  all["post_processor"] = Around(*read, texts);
  all["decoder"] = Decoder(*read);
  all["model"] = {{"type", "BPE"},
                  {"dropout", nullptr},
                  {"unk_token", read->byte_level ? Json() : text_of(read->unknown)},
                  {"continuing_subword_prefix", nullptr},
                  {"end_of_word_suffix", nullptr},
                  {"fuse_unk", read->fuse_unknown},
                  {"byte_fallback", read->byte_fallback},
                  {"ignore_merges", read->ignore_merges},
                  {"vocab", vocab},
                  {"merges", *merges}};
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  for (auto [key, id] :
       {std::pair("bos_token", int64_t(read->bos)), std::pair("eos_token", int64_t(read->eos)),
        std::pair("unk_token", file->Number("tokenizer.ggml.unknown_token_id", -1)),
        std::pair("pad_token", file->Number("tokenizer.ggml.padding_token_id", -1))})
    if (id >= 0 && id < int64_t(texts.size()))
      config[key] = texts[size_t(id)];
  const Definition::Chat &chat = read->chat;
  if (!chat.with_tools.empty())
    config["chat_template"] = {{{"name", "default"}, {"template", chat.jinja}},
                               {{"name", "tool_use"}, {"template", chat.with_tools}}};
  else if (!chat.jinja.empty())
    config["chat_template"] = chat.jinja;
  std::map<std::string, std::string> files = {{"tokenizer.json", Print(all, 1)},
                                              {"tokenizer_config.json", Print(config, 2)}};
  // The other tokens that end a text: those of a turn and of a message.
  if (!read->ends.empty()) {
    std::vector<int32_t> ends = read->ends;
    ends.erase(std::remove(ends.begin(), ends.end(), read->eos), ends.end());
    if (read->eos >= 0)
      ends.insert(ends.begin(), read->eos);
    files["generation_config.json"] = Print({{"eos_token_id", ends}}, 2);
  }
  return files;
}

} // namespace boa
