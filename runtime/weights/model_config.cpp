//===- model_config.cpp - The configuration of a model --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A key is read, known to change nothing, null, false or empty, or refused. Defaults are those of
// transformers, which newer versions do not write out.
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/model_config.h"

#include "runtime/io/folder_file.h"
#include "runtime/weights/config_reader.h"
#include "runtime/weights/gguf_config.h"
#include "runtime/weights/weight_files.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <array>
#include <filesystem>

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

const FamilyInfo &InfoOf(Family family) {
  for (const FamilyInfo &info : kFamilies)
    if (info.family == family)
      return info;
  return kFamilies[0];
}

/// Finds the family, by the class that the weights were saved from. Whether Boa has it, so that its
/// keys are known.
bool ReadFamily(ConfigReader &reader, ModelConfig &config) {
  if (reader.Has("auto_map"))
    reader.Refuse("auto_map", "the model brings code of its own, which Boa does not run");
  if (reader.Has("quantization_config"))
    reader.Refuse("quantization_config", "expected weights that are not quantized");
  const std::vector<std::string> classes = reader.Words("architectures");
  const std::string type = reader.Word("model_type", "");
  std::vector<std::string> known;
  for (const FamilyInfo &info : kFamilies) {
    known.push_back(info.architecture);
    if (type != info.name && !(type.empty() && !classes.empty() && classes[0] == info.architecture))
      continue;
    if (classes.size() > 1 || (classes.size() == 1 && classes[0] != info.architecture))
      reader.Refuse("architectures",
                    absl::StrCat("`", absl::StrJoin(classes, "`, `"), "`: of this model Boa has ",
                                 info.architecture, " alone"));
    config.family = info.family;
    config.architecture = info.architecture;
    return true;
  }
  reader.Refuse(type.empty() ? "architectures" : "model_type",
                absl::StrCat("`", type.empty() ? absl::StrJoin(classes, "`, `") : type,
                             "` is no model that Boa imports: ", absl::StrJoin(known, ", ")));
  return false;
}

void ReadType(ConfigReader &reader, ModelConfig &config) {
  const std::string older = reader.Word("torch_dtype", "");
  const std::string type = reader.Word("dtype", older.empty() ? "float32" : older);
  if (!older.empty() && older != type)
    reader.Refuse("torch_dtype", absl::StrCat("it is ", older, ", but `dtype` is ", type,
                                              ", and both name the same; remove the wrong one"));
  config.bf16 = type == "bfloat16";
  if (!config.bf16 && type != "float32" && type != "float16")
    reader.Refuse("dtype", absl::StrCat("`", type, "`: expected float32, bfloat16 or float16"));
}

/// Dropout would change training alone, so it is noted and not refused.
void ReadDropout(ConfigReader &reader, ModelConfig &config,
                 std::initializer_list<std::pair<const char *, double>> keys) {
  for (auto [key, fallback] : keys)
    if (const double rate = reader.Real(key, fallback, 0, 1); rate > 0)
      config.notes.push_back(
          absl::StrCat("`", key, "` is ", rate, ", but Boa trains without dropout"));
}

/// One of the objects that tell how positions are rotated. Refuses what Boa does not have.
RopeScaling ReadScaling(ConfigReader &rope) {
  RopeScaling scaling;
  const std::string older = rope.Word("type", "default");
  const std::string type = rope.Word("rope_type", older);
  if (rope.Has("type") && type != older)
    rope.Refuse("type", absl::StrCat("it is ", older, ", but `rope_type` is ", type,
                                     ", and both name the same; remove the wrong one"));
  if (rope.Real("partial_rotary_factor", 1, 0, 1) != 1)
    rope.Refuse("partial_rotary_factor", "expected all of each head to be rotated");
  if (type == "linear") {
    scaling.kind = RopeScaling::Kind::linear;
    scaling.factor = rope.Real("factor", std::nullopt, 1, 1e6);
  } else if (type == "llama3") {
    scaling.kind = RopeScaling::Kind::llama3;
    scaling.factor = rope.Real("factor", std::nullopt, 1, 1e6);
    scaling.low = rope.Real("low_freq_factor", std::nullopt, 1e-6, 1e6);
    scaling.high = rope.Real("high_freq_factor", std::nullopt, 1e-6, 1e6);
    scaling.context = rope.Whole("original_max_position_embeddings", std::nullopt, 1, INT32_MAX);
    if (rope.Good({"low_freq_factor", "high_freq_factor"}) && scaling.low >= scaling.high)
      rope.Refuse("low_freq_factor", "expected less than high_freq_factor");
  } else if (type != "default") {
    rope.Refuse(
        "rope_type",
        absl::StrCat("`", type, "`: Boa has the rotary positions default, linear and llama3"));
  } else if (rope.Real("factor", 1, 0, 1e6) != 1) {
    rope.Refuse("factor", "the rotary positions default have none");
  }
  return scaling;
}

/// `rope_parameters` of transformers 5; `rope_theta` and `rope_scaling` of transformers 4. Where
/// more of them are there, they must say the same: versions differ in which one counts.
void ReadRope(ConfigReader &reader, ModelConfig &config, double base) {
  config.rope_base = reader.Real("rope_theta", base, 1, 1e12);
  for (const char *key : {"partial_rotary_factor", "rotary_pct"})
    if (reader.Real(key, 1, 0, 1) != 1)
      reader.Refuse(key, "expected all of each head to be rotated");
  std::string said = reader.Has("rope_theta") ? "rope_theta" : ""; // what told the base
  std::string scaled;                                              // what told the scaling
  for (const std::string key : {"rope_scaling", "rope_parameters"}) {
    ConfigReader rope = reader.Object(key);
    if (!rope.IsThere())
      continue;
    const double theta = rope.Real("rope_theta", config.rope_base, 1, 1e12);
    if (!said.empty() && theta != config.rope_base)
      rope.Refuse("rope_theta", absl::StrCat("it is ", theta, ", but `", said, "` is ",
                                             config.rope_base, "; remove the wrong one"));
    if (rope.Has("rope_theta"))
      said = absl::StrCat(key, ".rope_theta");
    config.rope_base = theta;
    const RopeScaling scaling = ReadScaling(rope);
    if (rope.Good({"rope_type"}))
      rope.Finish({});
    reader.Take(rope);
    if (!scaled.empty() && rope.status().ok() && !(scaling == config.scaling))
      reader.Refuse(key, absl::StrCat("its rotary positions differ from those of `", scaled,
                                      "`; remove the wrong one"));
    config.scaling = scaling;
    scaled = key;
  }
  if (config.scaling.kind == RopeScaling::Kind::llama3)
    reader.Agree({"original_max_position_embeddings"},
                 "rope_scaling.original_max_position_embeddings", double(config.scaling.context));
}

void ReadActivation(ConfigReader &reader, ModelConfig &config, const char *key,
                    const char *fallback) {
  const std::string name = reader.Word(key, fallback);
  const bool gelu = config.family == Family::gpt2 || config.family == Family::bert;
  config.exact_gelu = gelu && name == "gelu";
  const bool tanh = name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast";
  if (gelu ? !(tanh || config.exact_gelu) : name != "silu" && name != "swish")
    reader.Refuse(key,
                  absl::StrCat("`", name, "`: expected ",
                               gelu ? "gelu_new, gelu_pytorch_tanh, gelu_fast or gelu" : "silu"));
}

/// The window of attention, and whether all layers have it. One that no layer uses may be there.
void ReadWindow(ConfigReader &reader, ModelConfig &config) {
  const bool mistral = config.family == Family::mistral;
  const int64_t window = reader.Whole("sliding_window", mistral ? 4096 : 0, 0, INT32_MAX);
  const bool none = reader.Names("sliding_window") && !reader.Has("sliding_window"); // null
  bool some = mistral ? window > 0 && !none : reader.Flag("use_sliding_window", false);
  bool all = mistral;
  if (const std::vector<std::string> types = reader.Words("layer_types"); !types.empty()) {
    if (reader.Good({"num_hidden_layers"}) && int64_t(types.size()) != config.depth)
      reader.Refuse("layer_types",
                    absl::StrCat("it has ", types.size(), " layers, but `num_hidden_layers` is ",
                                 config.depth));
    size_t sliding = 0;
    for (const std::string &type : types)
      if (type == "sliding_attention")
        ++sliding;
      else if (type != "full_attention")
        reader.Refuse("layer_types", absl::StrCat("`", type,
                                                  "`: expected full_attention or "
                                                  "sliding_attention"));
    if (sliding > 0 && (none || (reader.Has("use_sliding_window") && !some)))
      reader.Refuse("layer_types", absl::StrCat("some layers have a window, but `",
                                                none ? "sliding_window` is null"
                                                     : "use_sliding_window` is false"));
    some = sliding > 0;
    all = sliding == types.size();
  }
  if (config.family == Family::llama && (window != 0 || some))
    reader.Refuse("sliding_window", "no Llama has such a key");
  config.window = some ? window : 0;
  config.window_of_all = some && all;
}

/// Llama, Mistral, Qwen 2 and Qwen 3.
void ReadLlama(ConfigReader &reader, ModelConfig &config) {
  config.width = reader.Whole("hidden_size", std::nullopt, 1, INT32_MAX);
  config.hidden = reader.Whole("intermediate_size", std::nullopt, 1, INT32_MAX);
  config.depth = reader.Whole("num_hidden_layers", std::nullopt, 1, 65536);
  config.heads = reader.Whole("num_attention_heads", std::nullopt, 1, 65536);
  config.kv_heads = reader.Whole("num_key_value_heads", config.heads, 1, 65536);
  config.positions = reader.Whole("max_position_embeddings", std::nullopt, 1, INT32_MAX);
  config.eps = reader.Real("rms_norm_eps", 1e-6, kLeastEps, 1);
  const int64_t head = config.family == Family::qwen3 ? 128 : config.width / config.heads;
  if (config.family != Family::qwen3 && !reader.Has("head_dim") &&
      config.width % config.heads != 0 && reader.Good({"hidden_size", "num_attention_heads"}))
    reader.Refuse("num_attention_heads", "expected a divisor of hidden_size");
  config.head = reader.Whole("head_dim", std::max<int64_t>(head, 1), 1, 65536);
  const bool head_is_good = reader.Good({"hidden_size", "num_attention_heads", "head_dim"});
  if (head_is_good && config.head % 2 != 0)
    reader.Refuse("head_dim", "expected an even number");
  if (reader.Good({"num_attention_heads", "num_key_value_heads"}) &&
      config.heads % config.kv_heads != 0)
    reader.Refuse("num_key_value_heads", "expected a divisor of num_attention_heads");
  const bool bias = config.family != Family::mistral && reader.Flag("attention_bias", false);
  config.qkv_bias = bias || config.family == Family::qwen2;
  config.out_bias = bias && config.family != Family::qwen2;
  if (config.family == Family::qwen2 && bias)
    reader.Refuse("attention_bias", "no Qwen 2 has such a key");
  config.hidden_bias = config.family == Family::llama && reader.Flag("mlp_bias", false);
  config.tied = reader.Flag("tie_word_embeddings", false);
  ReadWindow(reader, config);
  ReadActivation(reader, config, "hidden_act", "silu");
  ReadRope(reader, config, 10000);
  ReadDropout(reader, config,
              {{"attention_dropout", 0},
               {"attention_probs_dropout_prob", 0},
               {"embd_pdrop", 0},
               {"hidden_dropout", 0},
               {"hidden_dropout_prob", 0},
               {"resid_pdrop", 0}});
  reader.Agree({"n_embd", "d_model", "dim"}, "hidden_size", double(config.width));
  reader.Agree({"n_inner", "ffn_hidden_size", "ffn_dim"}, "intermediate_size",
               double(config.hidden));
  reader.Agree({"n_layer", "n_layers", "num_layers"}, "num_hidden_layers", double(config.depth));
  reader.Agree({"n_head", "n_heads", "num_heads"}, "num_attention_heads", double(config.heads));
  reader.Agree({"n_kv_heads", "n_head_kv", "num_kv_heads"}, "num_key_value_heads",
               double(config.kv_heads));
  if (head_is_good)
    reader.Agree({"kv_channels", "head_size", "attention_head_dim"}, "head_dim",
                 double(config.head));
  reader.Agree({"n_positions"}, "max_position_embeddings", double(config.positions));
  reader.Agree({"norm_eps", "layer_norm_eps", "layer_norm_epsilon"}, "rms_norm_eps", config.eps);
  reader.Finish(
      {"is_decoder", "max_window_layers", "original_max_position_embeddings", "pretraining_tp"});
}

void ReadGpt2(ConfigReader &reader, ModelConfig &config) {
  // transformers knows four of the keys by other names, too.
  const auto whole = [&](const char *key, const char *other, int64_t fallback, int64_t most) {
    const int64_t value = reader.Whole(reader.Has(key) ? key : other, fallback, 1, most);
    if (reader.Has(key))
      reader.Agree({other}, key, double(value));
    return value;
  };
  config.width = whole("n_embd", "hidden_size", 768, INT32_MAX);
  config.depth = whole("n_layer", "num_hidden_layers", 12, 65536);
  config.heads = config.kv_heads = whole("n_head", "num_attention_heads", 12, 65536);
  config.positions = whole("n_positions", "max_position_embeddings", 1024, INT32_MAX);
  config.hidden = reader.Whole("n_inner", 4 * config.width, 1, INT32_MAX);
  config.eps = reader.Real("layer_norm_epsilon", 1e-5, kLeastEps, 1);
  config.tied = reader.Flag("tie_word_embeddings", true);
  if (reader.Good({"n_embd", "hidden_size", "n_head", "num_attention_heads"}) &&
      config.width % config.heads != 0)
    reader.Refuse("n_head", "expected a divisor of n_embd");
  config.head = config.width / config.heads;
  reader.Agree({"intermediate_size"}, "n_inner", double(config.hidden));
  reader.Agree({"head_dim"}, "n_embd / n_head", double(config.head));
  if (!reader.Flag("scale_attn_weights", true))
    reader.Refuse("scale_attn_weights", "expected true");
  if (reader.Flag("scale_attn_by_inverse_layer_idx", false))
    reader.Refuse("scale_attn_by_inverse_layer_idx", "expected false");
  ReadActivation(reader, config, "activation_function", "gelu_new");
  ReadDropout(reader, config, {{"resid_pdrop", 0.1}, {"embd_pdrop", 0.1}, {"attn_pdrop", 0.1}});
  // The second only computes in another order; the rest are of heads for classes.
  reader.Finish({"is_decoder", "n_ctx", "n_special", "predict_special_tokens",
                 "reorder_and_upcast_attn", "summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_type", "summary_use_proj"});
}

void ReadBert(ConfigReader &reader, ModelConfig &config) {
  config.width = reader.Whole("hidden_size", 768, 1, INT32_MAX);
  config.depth = reader.Whole("num_hidden_layers", 12, 1, 65536);
  config.heads = config.kv_heads = reader.Whole("num_attention_heads", 12, 1, 65536);
  config.hidden = reader.Whole("intermediate_size", 3072, 1, INT32_MAX);
  config.positions = reader.Whole("max_position_embeddings", 512, 1, INT32_MAX);
  config.types = reader.Whole("type_vocab_size", 2, 1, 1024);
  config.eps = reader.Real("layer_norm_eps", 1e-12, kLeastEps, 1);
  config.tied = reader.Flag("tie_word_embeddings", true);
  if (!config.tied)
    reader.Refuse("tie_word_embeddings", "expected true");
  if (reader.Good({"hidden_size", "num_attention_heads"}) && config.width % config.heads != 0)
    reader.Refuse("num_attention_heads", "expected a divisor of hidden_size");
  config.head = config.width / config.heads;
  reader.Agree({"embedding_size", "n_embd"}, "hidden_size", double(config.width));
  reader.Agree({"n_layer", "n_layers", "num_layers"}, "num_hidden_layers", double(config.depth));
  reader.Agree({"head_dim"}, "hidden_size / num_attention_heads", double(config.head));
  if (reader.Word("position_embedding_type", "absolute") != "absolute")
    reader.Refuse("position_embedding_type", "expected absolute");
  ReadActivation(reader, config, "hidden_act", "gelu");
  ReadDropout(reader, config,
              {{"hidden_dropout_prob", 0.1}, {"attention_probs_dropout_prob", 0.1}});
  reader.Finish({"classifier_dropout", "directionality", "pooler_fc_size",
                 "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head",
                 "pooler_type"});
}

/// For messages.
std::string ConfigPath(const std::string &folder) {
  return IsGgufName(folder) ? folder : absl::StrCat(folder, "/config.json");
}

} // namespace

const char *FamilyName(Family family) { return InfoOf(family).name; }

absl::StatusOr<std::string> ModelConfigText(const std::string &folder) {
  if (IsGgufName(folder))
    return ConfigOfGguf(folder);
  std::error_code error;
  if (!std::filesystem::exists(folder, error) && !error)
    return absl::NotFoundError(
        absl::StrCat("there is no folder `", folder,
                     "`; a model is read from a folder or a GGUF file, and none "
                     "is downloaded"));
  return ReadFolderFile(folder, "config.json");
}

absl::StatusOr<ModelConfig> ReadModelConfig(const std::string &folder) {
  absl::StatusOr<std::string> text = ModelConfigText(folder);
  if (!text.ok())
    return text.status();
  absl::StatusOr<ConfigReader> opened = ConfigReader::Parse(ConfigPath(folder), *text);
  if (!opened.ok())
    return opened.status();
  ConfigReader &reader = *opened;
  ModelConfig config;
  if (!ReadFamily(reader, config))
    return reader.status();
  config.vocab = reader.Whole(
      "vocab_size", config.family == Family::gpt2 ? 50257 : std::optional<int64_t>(), 1, INT32_MAX);
  config.deviation = reader.Real("initializer_range", 0.02, 0, 1e6);
  ReadType(reader, config);
  if (config.family == Family::gpt2)
    ReadGpt2(reader, config);
  else if (config.family == Family::bert)
    ReadBert(reader, config);
  else
    ReadLlama(reader, config);
  if (!reader.status().ok())
    return reader.status();
  return config;
}

absl::StatusOr<std::string> ModelConfigWithType(const std::string &folder, bool bf16) {
  absl::StatusOr<std::string> text = ModelConfigText(folder);
  if (!text.ok())
    return text.status();
  return WithDtype(ConfigPath(folder), *text, bf16 ? "bfloat16" : "float32");
}

} // namespace boa
