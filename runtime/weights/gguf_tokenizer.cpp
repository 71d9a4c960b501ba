//===- gguf_tokenizer.cpp - The tokenizer in a GGUF file ------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/gguf_tokenizer.h"

#include "runtime/formats/gguf.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

#include <vector>

namespace boa {
namespace {

using Json = nlohmann::ordered_json;

/// Types of tokens.
constexpr int kControl = 3, kUserDefined = 4;

struct Kind {
  const char *name;     // `tokenizer.ggml.pre`
  const char *pattern;  // of the pieces; null: that of GPT-2
  bool digits;          // each digit is a piece
  bool composes;        // the text is brought into the form NFC
  bool begins_with_bos; // where the file does not say it
};
constexpr char kLlama3[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kQwen2[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr Kind kKinds[] = {{"gpt-2", nullptr, false, false, false},
                           {"smollm", nullptr, true, false, false},
                           {"llama-bpe", kLlama3, false, false, true},
                           {"qwen2", kQwen2, false, true, false}};

Json PreTokenizer(const Kind &kind) {
  Json steps = Json::array();
  if (kind.digits)
    steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (kind.pattern)
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", kind.pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  steps.push_back({{"type", "ByteLevel"},
                   {"add_prefix_space", false},
                   {"trim_offsets", true},
                   {"use_regex", !kind.pattern}});
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

/// Puts the first token before a text.
Json WithFirst(const std::string &token, int64_t id) {
  const Json special = {{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
  const auto sequence = [](const char *name, int type) {
    return Json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", Json::array({special, sequence("A", 0)})},
          {"pair", Json::array({special, sequence("A", 0), sequence("B", 1)})},
          {"special_tokens",
           {{token, {{"id", token}, {"ids", Json::array({id})}, {"tokens", {token}}}}}}};
}

} // namespace

absl::StatusOr<std::map<std::string, std::string>> TokenizerOfGguf(const std::string &path) {
  absl::StatusOr<GgufFile> file = GgufFile::Open(path);
  if (!file.ok())
    return file.status();
  std::map<std::string, std::string> files;
  const std::string pre = file->Text("tokenizer.ggml.pre");
  const Kind *kind = nullptr;
  for (const Kind &known : kKinds)
    if (pre == known.name)
      kind = &known;
  const GgufValue *tokens = file->Find("tokenizer.ggml.tokens"),
                  *types = file->Find("tokenizer.ggml.token_type"),
                  *merges = file->Find("tokenizer.ggml.merges");
  const bool is_byte_level = file->Text("tokenizer.ggml.model") == "gpt2" && tokens && merges;
  if (!kind || !is_byte_level)
    return files;
  const bool has_types = types && types->numbers.size() == tokens->texts.size();
  Json vocab = Json::object(), added = Json::array(), pairs = Json::array();
  for (size_t id = 0; id < tokens->texts.size(); ++id) {
    const std::string &text = tokens->texts[id];
    const int type = has_types ? int(types->numbers[id]) : 1;
    if (type == kControl || type == kUserDefined)
      added.push_back({{"id", id},
                       {"content", text},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", type == kControl}});
    vocab.push_back({text, id});
  }
  for (const std::string &merge : merges->texts)
    pairs.push_back(merge);

  const auto token_of = [&](const char *key) {
    const int64_t id = file->Number(absl::StrCat("tokenizer.ggml.", key, "_token_id"), -1);
    return id >= 0 && id < int64_t(tokens->texts.size()) ? id : -1;
  };
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  const int64_t bos = token_of("bos");
  const bool first = bos >= 0 && file->Flag("tokenizer.ggml.add_bos_token", kind->begins_with_bos);
  Json all = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  all["added_tokens"] = added;
  all["normalizer"] = kind->composes ? Json{{"type", "NFC"}} : Json();
  all["pre_tokenizer"] = PreTokenizer(*kind);
  all["post_processor"] = first ? WithFirst(tokens->texts[size_t(bos)], bos) : Json();
  all["decoder"] = byte_level;
  all["model"] = {{"type", "BPE"},
                  {"dropout", nullptr},
                  {"unk_token", nullptr},
                  {"continuing_subword_prefix", nullptr},
                  {"end_of_word_suffix", nullptr},
                  {"fuse_unk", false},
                  {"byte_fallback", false},
                  {"ignore_merges", pre == "llama-bpe"},
                  {"vocab", vocab},
                  {"merges", pairs}};
  constexpr auto replace = Json::error_handler_t::replace;
  files["tokenizer.json"] = all.dump(1, ' ', false, replace) + "\n";

  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  for (const char *key : {"bos", "eos", "unknown", "padding"})
    if (const int64_t id = token_of(key); id >= 0) {
      const std::string name = key == std::string("unknown")   ? "unk_token"
                               : key == std::string("padding") ? "pad_token"
                                                               : absl::StrCat(key, "_token");
      config[name] = tokens->texts[size_t(id)];
    }
  if (const std::string chat = file->Text("tokenizer.chat_template"); !chat.empty())
    config["chat_template"] = chat;
  files["tokenizer_config.json"] = config.dump(2, ' ', false, replace) + "\n";
  return files;
}

} // namespace boa
