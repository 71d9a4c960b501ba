//===- Config.cpp - The configuration of a Hugging Face model -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A key is read, known to change nothing, null or false, or refused. Defaults are those of
// transformers, which newer versions do not write out.
//
//===----------------------------------------------------------------------===//
#include "tools/models/Config.h"

#include "runtime/io/input_file.h"
#include "runtime/weights/weight_files.h"
#include "tools/models/ConfigReader.h"
#include "tools/models/GgufConfig.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <array>

namespace boa {
namespace {

/// A norm divides by its root.
constexpr double kLeastEps = 1e-30;

struct FamilyInfo {
  Family family;
  const char *name; // also the model_type
  const char *architecture;
};
constexpr std::array<FamilyInfo, 6> kFamilies = {{
    {Family::gpt2, "gpt2", "GPT2LMHeadModel"},
    {Family::llama, "llama", "LlamaForCausalLM"},
    {Family::mistral, "mistral", "MistralForCausalLM"},
    {Family::qwen2, "qwen2", "Qwen2ForCausalLM"},
    {Family::qwen3, "qwen3", "Qwen3ForCausalLM"},
    {Family::bert, "bert", "BertForMaskedLM"},
}};

const FamilyInfo &infoOf(Family family) {
  for (const FamilyInfo &info : kFamilies)
    if (info.family == family)
      return info;
  return kFamilies[0];
}

/// Finds the family, by the class that the weights were saved from.
void readFamily(ConfigReader &reader, ModelConfig &config) {
  if (reader.has("auto_map"))
    return reader.refuse("auto_map", "the model brings code of its own, which Boa does not run");
  if (reader.has("quantization_config"))
    return reader.refuse("quantization_config", "expected weights that are not quantized");
  const std::vector<std::string> classes = reader.words("architectures");
  const std::string type = reader.word("model_type", "");
  std::vector<std::string> known;
  for (const FamilyInfo &info : kFamilies) {
    known.push_back(info.architecture);
    if (type != info.name && !(type.empty() && !classes.empty() && classes[0] == info.architecture))
      continue;
    if (classes.size() > 1 || (classes.size() == 1 && classes[0] != info.architecture))
      return reader.refuse("architectures",
                           absl::StrCat("`", absl::StrJoin(classes, "`, `"),
                                        "`: of this model Boa has ", info.architecture, " alone"));
    config.family = info.family;
    config.architecture = info.architecture;
    return;
  }
  reader.refuse(type.empty() ? "architectures" : "model_type",
                absl::StrCat("`", type.empty() ? absl::StrJoin(classes, "`, `") : type,
                             "` is no model that Boa imports: ", absl::StrJoin(known, ", ")));
}

void readType(ConfigReader &reader, ModelConfig &config) {
  std::string type = reader.word("torch_dtype", "");
  type = reader.word("dtype", type.empty() ? "float32" : type);
  config.bf16 = type == "bfloat16";
  if (!config.bf16 && type != "float32" && type != "float16")
    reader.refuse("dtype", absl::StrCat("`", type, "`: expected float32, bfloat16 or float16"));
}

/// Dropout would change training alone, so it is noted and not refused.
void readDropout(ConfigReader &reader, ModelConfig &config,
                 std::initializer_list<std::pair<const char *, double>> keys) {
  for (auto [key, fallback] : keys)
    if (const double rate = reader.real(key, fallback, 0, 1); rate > 0)
      config.notes.push_back(
          absl::StrCat("`", key, "` is ", rate, ", but Boa trains without dropout"));
}

/// `rope_parameters` of transformers 5; `rope_theta` and `rope_scaling` of transformers 4.
void readRope(ConfigReader &reader, ModelConfig &config, double base) {
  config.ropeBase = reader.real("rope_theta", base, 1, 1e12);
  for (const char *key : {"rope_scaling", "rope_parameters"}) {
    ConfigReader rope = reader.object(key);
    if (!rope.isThere())
      continue;
    config.ropeBase = rope.real("rope_theta", config.ropeBase, 1, 1e12);
    const std::string older = rope.word("type", "default");
    const std::string type = rope.word("rope_type", older);
    if (rope.real("partial_rotary_factor", 1, 0, 1) != 1)
      rope.refuse("partial_rotary_factor", "expected all of each head to be rotated");
    if (type == "linear") {
      config.scaling.kind = RopeScaling::Kind::linear;
      config.scaling.factor = rope.real("factor", std::nullopt, 1, 1e6);
    } else if (type == "llama3") {
      config.scaling.kind = RopeScaling::Kind::llama3;
      config.scaling.factor = rope.real("factor", std::nullopt, 1, 1e6);
      config.scaling.low = rope.real("low_freq_factor", std::nullopt, 1e-6, 1e6);
      config.scaling.high = rope.real("high_freq_factor", std::nullopt, 1e-6, 1e6);
      config.scaling.context =
          rope.whole("original_max_position_embeddings", std::nullopt, 1, INT32_MAX);
      if (config.scaling.low >= config.scaling.high)
        rope.refuse("low_freq_factor", "expected less than high_freq_factor");
    } else if (type != "default") {
      rope.refuse("rope_type", absl::StrCat("`", type,
                                            "`: Boa has the rotary positions default, linear and "
                                            "llama3"));
    }
    rope.finish({});
    reader.take(rope.status());
  }
}

void readActivation(ConfigReader &reader, ModelConfig &config, const char *key,
                    const char *fallback) {
  const std::string name = reader.word(key, fallback);
  const bool gelu = config.family == Family::gpt2 || config.family == Family::bert;
  config.exactGelu = gelu && name == "gelu";
  const bool tanh = name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast";
  if (gelu ? !(tanh || config.exactGelu) : name != "silu" && name != "swish")
    reader.refuse(key,
                  absl::StrCat("`", name, "`: expected ",
                               gelu ? "gelu_new, gelu_pytorch_tanh, gelu_fast or gelu" : "silu"));
}

/// The window of attention, and whether all layers have it. One that no layer uses may be there.
void readWindow(ConfigReader &reader, ModelConfig &config) {
  const bool mistral = config.family == Family::mistral;
  const int64_t window = reader.whole("sliding_window", mistral ? 4096 : 0, 0, INT32_MAX);
  const bool none = reader.names("sliding_window") && !reader.has("sliding_window"); // null
  bool some = mistral ? window > 0 && !none : reader.flag("use_sliding_window", false);
  bool all = mistral;
  if (const std::vector<std::string> types = reader.words("layer_types"); !types.empty()) {
    size_t sliding = 0;
    for (const std::string &type : types)
      if (type == "sliding_attention")
        ++sliding;
      else if (type != "full_attention")
        reader.refuse("layer_types", absl::StrCat("`", type,
                                                  "`: expected full_attention or "
                                                  "sliding_attention"));
    some = sliding > 0;
    all = sliding == types.size();
  }
  if (config.family == Family::llama && (window != 0 || some))
    reader.refuse("sliding_window", "no Llama has such a key");
  config.window = some ? window : 0;
  config.windowOfAll = some && all;
}

/// Llama, Mistral, Qwen 2 and Qwen 3.
void readLlama(ConfigReader &reader, ModelConfig &config) {
  config.width = reader.whole("hidden_size", std::nullopt, 1, INT32_MAX);
  config.hidden = reader.whole("intermediate_size", std::nullopt, 1, INT32_MAX);
  config.depth = reader.whole("num_hidden_layers", std::nullopt, 1, 65536);
  config.heads = reader.whole("num_attention_heads", std::nullopt, 1, 65536);
  config.kvHeads = reader.whole("num_key_value_heads", config.heads, 1, 65536);
  config.positions = reader.whole("max_position_embeddings", std::nullopt, 1, INT32_MAX);
  config.eps = reader.real("rms_norm_eps", 1e-6, kLeastEps, 1);
  const int64_t head = config.family == Family::qwen3 ? 128 : config.width / config.heads;
  if (config.family != Family::qwen3 && !reader.has("head_dim") && config.width % config.heads != 0)
    reader.refuse("num_attention_heads", "expected a divisor of hidden_size");
  config.head = reader.whole("head_dim", std::max<int64_t>(head, 1), 1, 65536);
  if (config.head % 2 != 0)
    reader.refuse("head_dim", "expected an even number");
  if (config.heads % config.kvHeads != 0)
    reader.refuse("num_key_value_heads", "expected a divisor of num_attention_heads");
  const bool bias = config.family != Family::mistral && reader.flag("attention_bias", false);
  config.qkvBias = bias || config.family == Family::qwen2;
  config.outBias = bias && config.family != Family::qwen2;
  if (config.family == Family::qwen2 && bias)
    reader.refuse("attention_bias", "no Qwen 2 has such a key");
  config.hiddenBias = config.family == Family::llama && reader.flag("mlp_bias", false);
  config.tied = reader.flag("tie_word_embeddings", false);
  readWindow(reader, config);
  readActivation(reader, config, "hidden_act", "silu");
  readRope(reader, config, 10000);
  readDropout(reader, config, {{"attention_dropout", 0}});
  reader.finish({"pretraining_tp", "max_window_layers"});
}

void readGpt2(ConfigReader &reader, ModelConfig &config) {
  config.width = reader.whole("n_embd", 768, 1, INT32_MAX);
  config.depth = reader.whole("n_layer", 12, 1, 65536);
  config.heads = config.kvHeads = reader.whole("n_head", 12, 1, 65536);
  config.positions = reader.whole("n_positions", 1024, 1, INT32_MAX);
  config.hidden = reader.whole("n_inner", 4 * config.width, 1, INT32_MAX);
  config.eps = reader.real("layer_norm_epsilon", 1e-5, kLeastEps, 1);
  config.tied = reader.flag("tie_word_embeddings", true);
  if (config.width % config.heads != 0)
    reader.refuse("n_head", "expected a divisor of n_embd");
  config.head = config.width / config.heads;
  if (!reader.flag("scale_attn_weights", true))
    reader.refuse("scale_attn_weights", "expected true");
  if (reader.flag("scale_attn_by_inverse_layer_idx", false))
    reader.refuse("scale_attn_by_inverse_layer_idx", "expected false");
  readActivation(reader, config, "activation_function", "gelu_new");
  readDropout(reader, config, {{"resid_pdrop", 0.1}, {"embd_pdrop", 0.1}, {"attn_pdrop", 0.1}});
  // The second only computes in another order; the rest are of heads for classes.
  reader.finish({"n_ctx", "reorder_and_upcast_attn", "summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_type", "summary_use_proj"});
}

void readBert(ConfigReader &reader, ModelConfig &config) {
  config.width = reader.whole("hidden_size", 768, 1, INT32_MAX);
  config.depth = reader.whole("num_hidden_layers", 12, 1, 65536);
  config.heads = config.kvHeads = reader.whole("num_attention_heads", 12, 1, 65536);
  config.hidden = reader.whole("intermediate_size", 3072, 1, INT32_MAX);
  config.positions = reader.whole("max_position_embeddings", 512, 1, INT32_MAX);
  config.types = reader.whole("type_vocab_size", 2, 1, 1024);
  config.eps = reader.real("layer_norm_eps", 1e-12, kLeastEps, 1);
  config.tied = reader.flag("tie_word_embeddings", true);
  if (!config.tied)
    reader.refuse("tie_word_embeddings", "expected true");
  if (config.width % config.heads != 0)
    reader.refuse("num_attention_heads", "expected a divisor of hidden_size");
  config.head = config.width / config.heads;
  if (reader.word("position_embedding_type", "absolute") != "absolute")
    reader.refuse("position_embedding_type", "expected absolute");
  readActivation(reader, config, "hidden_act", "gelu");
  readDropout(reader, config,
              {{"hidden_dropout_prob", 0.1}, {"attention_probs_dropout_prob", 0.1}});
  reader.finish({"classifier_dropout", "directionality", "pooler_fc_size",
                 "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head",
                 "pooler_type"});
}

/// For messages.
std::string configPath(const std::string &folder) {
  return IsGgufName(folder) ? folder : absl::StrCat(folder, "/config.json");
}

} // namespace

const char *nameOf(Family family) { return infoOf(family).name; }

absl::StatusOr<std::string> configText(const std::string &folder) {
  if (IsGgufName(folder))
    return configOfGguf(folder);
  if (absl::Status status = CheckFolderFile(folder, "config.json"); !status.ok())
    return status;
  return ReadInput(configPath(folder));
}

absl::StatusOr<ModelConfig> readConfig(const std::string &folder) {
  absl::StatusOr<std::string> text = configText(folder);
  if (!text.ok())
    return text.status();
  absl::StatusOr<ConfigReader> opened = ConfigReader::parse(configPath(folder), *text);
  if (!opened.ok())
    return opened.status();
  ConfigReader &reader = *opened;
  ModelConfig config;
  readFamily(reader, config);
  if (!reader.status().ok())
    return reader.status();
  config.vocab = reader.whole(
      "vocab_size", config.family == Family::gpt2 ? 50257 : std::optional<int64_t>(), 1, INT32_MAX);
  config.deviation = reader.real("initializer_range", 0.02, 0, 1e6);
  readType(reader, config);
  if (config.family == Family::gpt2)
    readGpt2(reader, config);
  else if (config.family == Family::bert)
    readBert(reader, config);
  else
    readLlama(reader, config);
  if (!reader.status().ok())
    return reader.status();
  return config;
}

absl::StatusOr<std::string> configWithType(const std::string &folder, bool bf16) {
  absl::StatusOr<std::string> text = configText(folder);
  if (!text.ok())
    return text.status();
  return withDtype(configPath(folder), *text, bf16 ? "bfloat16" : "float32");
}

} // namespace boa
