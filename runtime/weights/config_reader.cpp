//===- config_reader.cpp - The keys of a JSON object ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/config_reader.h"

#include "runtime/formats/json.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace boa {

/// More than any configuration has.
constexpr size_t kMostBytes = size_t{1} << 20;

/// Keys of any model that change no training: names, special tokens, defaults of generation,
/// outputs.
static const std::set<std::string> &CommonKeys() {
  static const std::set<std::string> keys = {
      "transformers_version", "use_cache", "bos_token_id", "eos_token_id", "pad_token_id",
      "sep_token_id", "cls_token_id", "mask_token_id", "decoder_start_token_id", "name_or_path",
      "tokenizer_class", "prefix", "return_dict", "output_attentions", "output_hidden_states",
      "torchscript", "use_bfloat16", "id2label", "label2id", "num_labels", "problem_type",
      "finetuning_task", "task_specific_params", "gradient_checkpointing",
      "chunk_size_feed_forward", "max_length", "min_length", "do_sample", "early_stopping",
      "num_beams", "num_beam_groups", "diversity_penalty", "temperature", "top_k", "top_p",
      "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
      "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "output_scores",
      "return_dict_in_generate", "forced_bos_token_id", "forced_eos_token_id",
      "remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens",
      "begin_suppress_tokens", "unsloth_version", "unsloth_fixed",
      // Of longer texts than a file's own, for tokenizers.
      "max_sequence_length", "model_max_length", "tokenizer_model_max_length",
      "tokenizer_padding_side",
      // Marks of the programs that wrote it.
      "is_llama_config", "is_qwen2_config", "transformers.js_config", "language", "name",
      // How a library computes, and what it returns.
      "attn_implementation", "cache_implementation", "max_new_tokens", "output_past",
      "unk_token_id", "use_flash_attn", "use_flash_attention_2", "use_reentrant_checkpointing",
      // Of training alone: noise on embeddings.
      "neftune_noise_alpha"};
  return keys;
}

/// Keys that ask for something that the language lacks, and what that is.
static const std::map<std::string, const char *> &Lacking() {
  static const std::map<std::string, const char *> lacking = {
      {"alibi", "positions as a bias of attention"},
      {"attention_chunk_size", "attention in chunks"},
      {"attn_logit_softcapping", "soft caps"},
      {"clip_qkv", "limits of queries and keys"},
      {"encoder_layers", "a second input of its own length"},
      {"final_logit_softcapping", "soft caps"},
      {"kv_lora_rank", "attention of latent keys"},
      {"linear_num_value_heads", "gated delta rules"},
      {"mamba_d_state", "scans over time"},
      {"n_routed_experts", "experts"},
      {"num_experts", "experts"},
      {"num_local_experts", "experts"},
      {"vision_config", "images"}};
  return lacking;
}

absl::StatusOr<ConfigReader> ConfigReader::Parse(const std::string &path, const std::string &text) {
  ConfigReader reader;
  reader.path = path;
  absl::StatusOr<nlohmann::json> read = nlohmann::json();
  if (text.size() <= kMostBytes)
    read = ParseJson(text);
  if (!read.ok())
    return absl::InvalidArgumentError(absl::StrCat("`", path, "`: ", read.status().message()));
  if (!read->is_object())
    return absl::InvalidArgumentError(
        absl::StrCat("`", path, "`: expected a JSON object of at most ", kMostBytes, " bytes"));
  reader.values = *std::move(read);
  return reader;
}

const nlohmann::json *ConfigReader::Find(const std::string &key) const {
  auto it = values.find(key);
  return it == values.end() || it->is_null() ? nullptr : &*it;
}

const nlohmann::json *ConfigReader::Read(const std::string &key) {
  taken.insert(key);
  return Find(key);
}

void ConfigReader::Refuse(const std::string &key, const std::string &why) {
  // One key, one fault: what follows from the first says nothing new.
  if (refused.insert(key).second)
    faults.push_back(absl::StrCat("key `", prefix, key, "`: ", why));
}

bool ConfigReader::Good(const std::vector<std::string> &keys) const {
  return std::none_of(keys.begin(), keys.end(),
                      [&](const std::string &key) { return refused.count(key) > 0; });
}

void ConfigReader::Agree(const std::vector<std::string> &names, const std::string &key,
                         double value) {
  for (const std::string &name : names)
    if (const nlohmann::json *other = Find(name); other && Good({key})) {
      taken.insert(name);
      if (!other->is_number() || other->get<double>() != value)
        Refuse(name, absl::StrCat("it is ", other->dump(), ", but `", prefix, key, "` is ", value,
                                  ", and both name the same; remove the wrong one"));
    }
}

void ConfigReader::Take(const ConfigReader &inner) {
  faults.insert(faults.end(), inner.faults.begin(), inner.faults.end());
}

absl::Status ConfigReader::status() const {
  if (faults.empty())
    return absl::OkStatus();
  const char *remark =
      by_hand
          ? "\n  a spec by hand may serve: behind `as` it names the tensors, boa train --weights "
            "reads them, boa export --config writes them"
          : "";
  if (faults.size() == 1)
    return absl::InvalidArgumentError(absl::StrCat("`", path, "`: ", faults[0], remark));
  return absl::InvalidArgumentError(absl::StrCat("`", path, "`: ", faults.size(), " faults\n  ",
                                                 absl::StrJoin(faults, "\n  "), remark));
}

int64_t ConfigReader::Whole(const std::string &key, std::optional<int64_t> fallback, int64_t least,
                            int64_t most) {
  const nlohmann::json *value = Read(key);
  if (!value && fallback)
    return *fallback;
  const std::string range = absl::StrCat("expected a whole number from ", least, " to ", most);
  if (!value)
    Refuse(key, absl::StrCat(range, " but found none"));
  else if (!value->is_number_integer() ||
           (value->is_number_unsigned() && value->get<uint64_t>() > uint64_t(most)) ||
           value->get<int64_t>() < least || value->get<int64_t>() > most)
    Refuse(key, absl::StrCat(range, " but found ", value->dump()));
  else
    return value->get<int64_t>();
  return fallback.value_or(least);
}

double ConfigReader::Real(const std::string &key, std::optional<double> fallback, double least,
                          double most) {
  const nlohmann::json *value = Read(key);
  if (!value && fallback)
    return *fallback;
  const std::string range = absl::StrCat("expected a number from ", least, " to ", most);
  if (!value)
    Refuse(key, absl::StrCat(range, " but found none"));
  else if (!value->is_number() || !(value->get<double>() >= least && value->get<double>() <= most))
    Refuse(key, absl::StrCat(range, " but found ", value->dump()));
  else
    return value->get<double>();
  return fallback.value_or(least);
}

bool ConfigReader::Flag(const std::string &key, bool fallback) {
  const nlohmann::json *value = Read(key);
  if (!value)
    return fallback;
  if (!value->is_boolean()) {
    Refuse(key, absl::StrCat("expected true or false but found ", value->dump()));
    return fallback;
  }
  return value->get<bool>();
}

std::string ConfigReader::Word(const std::string &key, const std::string &fallback) {
  const nlohmann::json *value = Read(key);
  if (!value)
    return fallback;
  if (!value->is_string()) {
    Refuse(key, "expected a string");
    return fallback;
  }
  return value->get<std::string>();
}

std::string ConfigReader::WordOrFlag(const std::string &key, const std::string &fallback) {
  const nlohmann::json *value = Find(key);
  return value && value->is_boolean() ? Flag(key, false) ? "true" : "false" : Word(key, fallback);
}

std::vector<std::string> ConfigReader::Words(const std::string &key) {
  const nlohmann::json *value = Read(key);
  std::vector<std::string> all;
  if (!value)
    return all;
  if (!value->is_array())
    Refuse(key, "expected a list of strings");
  else
    for (const nlohmann::json &element : *value)
      if (element.is_string())
        all.push_back(element.get<std::string>());
      else
        Refuse(key, "expected a list of strings");
  return all;
}

bool ConfigReader::IsOn(const std::string &key) const {
  const nlohmann::json *value = Find(key);
  return value && *value != false && *value != "" && !(value->is_structured() && value->empty());
}

bool ConfigReader::HasOnly(const std::string &key, double value) {
  const ConfigReader inner = Object(key);
  return std::all_of(inner.values.begin(), inner.values.end(),
                     [&](const nlohmann::json &number) { return number == value; });
}

ConfigReader ConfigReader::Object(const std::string &key) {
  const nlohmann::json *value = Read(key);
  ConfigReader inner;
  inner.path = path;
  inner.prefix = absl::StrCat(prefix, key, ".");
  inner.there = value && value->is_object();
  if (inner.there)
    inner.values = *value;
  else if (value)
    Refuse(key, "expected an object");
  return inner;
}

void ConfigReader::RefuseForm(const std::string &key, const std::string &why) {
  by_hand = true;
  Refuse(key, why);
}

void ConfigReader::RefuseLacking() {
  for (const auto &[key, value] : values.items())
    if (auto lacks = Lacking().find(key);
        lacks != Lacking().end() && !taken.count(key) && IsOn(key))
      Refuse(key, absl::StrCat("the language has not: ", lacks->second));
}

void ConfigReader::Finish(const std::vector<std::string> &harmless) {
  RefuseLacking();
  const std::set<std::string> more(harmless.begin(), harmless.end());
  for (const auto &[key, value] : values.items()) {
    if (taken.count(key) || refused.count(key) || more.count(key) || !IsOn(key) ||
        (!key.empty() && key[0] == '_') || (prefix.empty() && CommonKeys().count(key)))
      continue;
    Refuse(key, "Boa does not know it, and it may change the computation; remove it from the file "
                "if it does not");
  }
}

absl::StatusOr<std::string> ForExport(const std::string &path, const std::string &text,
                                      const char *dtype) {
  absl::StatusOr<nlohmann::json> config = ParseJson(text);
  if (!config.ok() || !config->is_object())
    return absl::InvalidArgumentError(absl::StrCat(
        "`", path, "`: ", config.ok() ? "expected a JSON object" : config.status().message()));
  config->erase("auto_map");
  const bool newer = config->contains("dtype");
  if (config->contains("torch_dtype") || !newer)
    (*config)["torch_dtype"] = dtype;
  if (newer)
    (*config)["dtype"] = dtype;
  return config->dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

} // namespace boa
