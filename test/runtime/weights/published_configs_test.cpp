//===- published_configs_test.cpp - Configurations of published models ----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The values of configurations as they are published, without those that every model has. Each is
// read, or refused for what Boa lacks. Edited ones are refused, never read as something else.
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/model_config.h"

#include "test/runtime/scratch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include <array>
#include <map>
#include <string>
#include <vector>

namespace boa {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

/// hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, num_key_value_heads,
/// max_position_embeddings and vocab_size of Llama's kind.
Json LlamaLike(const char *type, const char *architecture, std::array<int64_t, 7> sizes,
               const Json &more) {
  Json config = {{"model_type", type},
                 {"architectures", {architecture}},
                 {"torch_dtype", "bfloat16"},
                 {"use_cache", true},
                 {"initializer_range", 0.02},
                 {"hidden_size", sizes[0]},
                 {"intermediate_size", sizes[1]},
                 {"num_hidden_layers", sizes[2]},
                 {"num_attention_heads", sizes[3]},
                 {"num_key_value_heads", sizes[4]},
                 {"max_position_embeddings", sizes[5]},
                 {"vocab_size", sizes[6]}};
  config.update(more);
  return config;
}

const std::map<std::string, Json> &Published() {
  static const std::map<std::string, Json> all = {
      {"SmolLM2-135M",
       LlamaLike("llama", "LlamaForCausalLM", {576, 1536, 30, 9, 3, 8192, 49152},
                 {{"attention_bias", false},
                  {"is_llama_config", true},
                  {"mlp_bias", false},
                  {"pretraining_tp", 1},
                  {"rms_norm_eps", 1e-5},
                  {"rope_interleaved", false},
                  {"rope_scaling", nullptr},
                  {"rope_theta", 100000},
                  {"tie_word_embeddings", true},
                  {"initializer_range", 0.041666666666666664},
                  {"transformers.js_config", {{"kv_cache_dtype", {{"q4f16", "float16"}}}}}})},
      {"Llama-3.2-1B",
       LlamaLike("llama", "LlamaForCausalLM", {2048, 8192, 16, 32, 8, 131072, 128256},
                 {{"head_dim", 64},
                  {"rms_norm_eps", 1e-5},
                  {"rope_scaling",
                   {{"factor", 32.0},
                    {"high_freq_factor", 4.0},
                    {"low_freq_factor", 1.0},
                    {"original_max_position_embeddings", 8192},
                    {"rope_type", "llama3"}}},
                  {"rope_theta", 500000.0},
                  {"tie_word_embeddings", true}})},
      {"Mistral-7B-v0.1",
       LlamaLike("mistral", "MistralForCausalLM", {4096, 14336, 32, 32, 8, 32768, 32000},
                 {{"rms_norm_eps", 1e-5}, {"rope_theta", 10000.0}, {"sliding_window", 4096}})},
      {"Qwen2.5-7B",
       LlamaLike("qwen2", "Qwen2ForCausalLM", {3584, 18944, 28, 28, 4, 131072, 152064},
                 {{"rms_norm_eps", 1e-6},
                  {"rope_theta", 1000000.0},
                  {"sliding_window", 131072},
                  {"max_window_layers", 28},
                  {"use_sliding_window", false},
                  {"use_mrope", false}})},
      {"Qwen3-8B", LlamaLike("qwen3", "Qwen3ForCausalLM", {4096, 12288, 36, 32, 8, 40960, 151936},
                             {{"head_dim", 128},
                              {"attention_bias", false},
                              {"rms_norm_eps", 1e-6},
                              {"rope_scaling", nullptr},
                              {"rope_theta", 1000000},
                              {"sliding_window", nullptr},
                              {"max_window_layers", 36},
                              {"use_sliding_window", false}})},
      {"OLMo-2-7B", LlamaLike("olmo2", "Olmo2ForCausalLM", {4096, 11008, 32, 32, 32, 4096, 100352},
                              {{"attention_bias", false},
                               {"attention_dropout", 0.0},
                               {"rms_norm_eps", 1e-6},
                               {"rope_scaling", nullptr},
                               {"rope_theta", 500000},
                               {"tie_word_embeddings", false}})},
      {"Granite-3.1-2B",
       LlamaLike("granite", "GraniteForCausalLM", {2048, 8192, 40, 32, 8, 131072, 49155},
                 {{"attention_bias", false},
                  {"attention_dropout", 0.1},
                  {"attention_multiplier", 0.015625},
                  {"embedding_multiplier", 12.0},
                  {"logits_scaling", 8.0},
                  {"mlp_bias", false},
                  {"residual_multiplier", 0.22},
                  {"rms_norm_eps", 1e-5},
                  {"rope_scaling", nullptr},
                  {"rope_theta", 5000000.0},
                  {"tie_word_embeddings", true}})},
      {"Seed-OSS-36B",
       LlamaLike("seed_oss", "SeedOssForCausalLM", {5120, 27648, 64, 80, 8, 524288, 155136},
                 {{"attention_bias", true},
                  {"attention_dropout", 0.1},
                  {"attention_out_bias", false},
                  {"head_dim", 128},
                  {"mlp_bias", false},
                  {"residual_dropout", 0.1},
                  {"rms_norm_eps", 1e-6},
                  {"rope_scaling", {{"rope_type", "default"}}},
                  {"rope_theta", 10000000.0},
                  {"tie_word_embeddings", false}})},
      {"StarCoder2-3B",
       LlamaLike("starcoder2", "Starcoder2ForCausalLM", {3072, 12288, 30, 24, 2, 16384, 49152},
                 {{"attention_dropout", 0.1},
                  {"embedding_dropout", 0.1},
                  {"hidden_act", "gelu_pytorch_tanh"},
                  {"initializer_range", 0.018042},
                  {"mlp_type", "default"},
                  {"norm_epsilon", 1e-5},
                  {"norm_type", "layer_norm"},
                  {"residual_dropout", 0.1},
                  {"rope_theta", 999999.4420358813},
                  {"sliding_window", 4096},
                  {"use_bias", true}})},
      {"Phi-3-mini-4k", LlamaLike("phi3", "Phi3ForCausalLM", {3072, 8192, 32, 32, 32, 4096, 32064},
                                  {{"auto_map", {{"AutoConfig", "configuration_phi3.Phi3Config"}}},
                                   {"attention_bias", false},
                                   {"attention_dropout", 0.0},
                                   {"embd_pdrop", 0.0},
                                   {"resid_pdrop", 0.0},
                                   {"original_max_position_embeddings", 4096},
                                   {"rms_norm_eps", 1e-5},
                                   {"rope_scaling", nullptr},
                                   {"rope_theta", 10000.0},
                                   {"sliding_window", 2047},
                                   {"tie_word_embeddings", false}})},
      {"Phi-4", LlamaLike("phi3", "Phi3ForCausalLM", {5120, 17920, 40, 40, 10, 16384, 100352},
                          {{"attention_bias", false},
                           {"original_max_position_embeddings", 16384},
                           {"rms_norm_eps", 1e-5},
                           {"rope_scaling", nullptr},
                           {"rope_theta", 250000},
                           {"sliding_window", nullptr}})},
      {"Falcon-7B",
       {{"model_type", "falcon"},
        {"architectures", {"FalconForCausalLM"}},
        {"auto_map", {{"AutoConfig", "configuration_falcon.FalconConfig"}}},
        {"alibi", false},
        {"apply_residual_connection_post_layernorm", false},
        {"attention_dropout", 0.0},
        {"bias", false},
        {"hidden_dropout", 0.0},
        {"hidden_size", 4544},
        {"initializer_range", 0.02},
        {"layer_norm_epsilon", 1e-5},
        {"multi_query", true},
        {"new_decoder_architecture", false},
        {"num_attention_heads", 71},
        {"num_hidden_layers", 32},
        {"parallel_attn", true},
        {"torch_dtype", "bfloat16"},
        {"vocab_size", 65024}}},
      {"DistilBERT",
       {{"model_type", "distilbert"},
        {"architectures", {"DistilBertForMaskedLM"}},
        {"activation", "gelu"},
        {"attention_dropout", 0.1},
        {"dim", 768},
        {"dropout", 0.1},
        {"hidden_dim", 3072},
        {"initializer_range", 0.02},
        {"max_position_embeddings", 512},
        {"n_heads", 12},
        {"n_layers", 6},
        {"qa_dropout", 0.1},
        {"seq_classif_dropout", 0.2},
        {"sinusoidal_pos_embds", false},
        {"tie_weights_", true},
        {"vocab_size", 30522}}},
      {"Falcon-40B",
       {{"model_type", "falcon"},
        {"architectures", {"FalconForCausalLM"}},
        {"alibi", false},
        {"bias", false},
        {"hidden_size", 8192},
        {"new_decoder_architecture", true},
        {"num_attention_heads", 128},
        {"num_hidden_layers", 60},
        {"num_kv_heads", 8},
        {"parallel_attn", true},
        {"vocab_size", 65024}}},
      {"Phi-4-mini",
       LlamaLike("phi3", "Phi3ForCausalLM", {3072, 8192, 32, 24, 8, 131072, 200064},
                 {{"full_attn_mod", 1},
                  {"interpolate_factor", 1},
                  {"lm_head_bias", false},
                  {"mlp_bias", false},
                  {"original_max_position_embeddings", 4096},
                  {"partial_rotary_factor", 0.75},
                  {"rms_norm_eps", 1e-5},
                  {"rope_scaling",
                   {{"long_factor", {1, 1.1}}, {"short_factor", {1, 1}}, {"type", "longrope"}}},
                  {"rope_theta", 10000.0},
                  {"sliding_window", 262144},
                  {"tie_word_embeddings", true}})},
      {"Mixtral-8x7B",
       LlamaLike("mixtral", "MixtralForCausalLM", {4096, 14336, 32, 32, 8, 32768, 32000},
                 {{"num_experts_per_tok", 2}, {"num_local_experts", 8}, {"rms_norm_eps", 1e-5}})},
      {"Gemma-2-2B", LlamaLike("gemma2", "Gemma2ForCausalLM", {2304, 9216, 26, 8, 4, 8192, 256000},
                               {{"attn_logit_softcapping", 50.0},
                                {"final_logit_softcapping", 30.0},
                                {"head_dim", 256},
                                {"query_pre_attn_scalar", 256},
                                {"rms_norm_eps", 1e-6},
                                {"sliding_window", 4096}})}};
  return all;
}

class PublishedConfigsTest : public testing::Test {
protected:
  absl::StatusOr<ModelConfig> Read(const std::string &name, const Json &changes = Json::object()) {
    Json config = Published().at(name);
    config.update(changes);
    scratch.Write("config.json", config.dump());
    return ReadModelConfig(scratch.path());
  }

  Scratch scratch{FastDirectory()};
};

TEST_F(PublishedConfigsTest, AreReadOrRefusedForWhatIsLacking) {
  const std::map<std::string, std::vector<const char *>> refused = {
      {"Falcon-40B", {"key `new_decoder_architecture`: expected false"}},
      {"Phi-4-mini",
       {"key `partial_rotary_factor`: expected all of each head to be rotated",
        "key `rope_scaling.rope_type`: `longrope`: the language has the rotary positions"}},
      {"Mixtral-8x7B",
       {"key `model_type`: `mixtral` is no model that Boa imports",
        "key `num_local_experts`: the language has not: experts"}},
      {"Gemma-2-2B",
       {"key `model_type`: `gemma2` is no model that Boa imports",
        "key `attn_logit_softcapping`: the language has not: soft caps",
        "key `final_logit_softcapping`: the language has not: soft caps"}}};
  for (const auto &[name, config] : Published()) {
    const absl::StatusOr<ModelConfig> read = Read(name);
    const auto reasons = refused.find(name);
    if (reasons == refused.end()) {
      EXPECT_TRUE(read.ok()) << name << ": " << read.status();
      continue;
    }
    for (const char *reason : reasons->second)
      EXPECT_THAT(std::string(read.status().message()), HasSubstr(reason)) << name;
  }
}

TEST_F(PublishedConfigsTest, ValuesAreThoseOfTheFile) {
  EXPECT_EQ(Read("SmolLM2-135M")->values["turns"], "base = 100000");
  EXPECT_EQ(Read("SmolLM2-135M")->Number("head"), 64);
  EXPECT_EQ(Read("Mistral-7B-v0.1")->Number("window"), 4096);
  EXPECT_EQ(Read("Phi-3-mini-4k")->Number("window"), 2047);
  EXPECT_EQ(Read("Phi-3-mini-4k")->window_of_some(), 0);
  EXPECT_EQ(Read("Phi-4")->Number("window"), 0);
  EXPECT_EQ(Read("StarCoder2-3B")->Number("window"), 4096);
  EXPECT_EQ(Read("Qwen2.5-7B")->Number("window"), 0);
  EXPECT_EQ(Read("Seed-OSS-36B")->Number("head"), 128);
  EXPECT_EQ(Read("Granite-3.1-2B")->values["residual_multiplier"], 0.22);
  EXPECT_EQ(Read("Falcon-7B")->Number("hidden"), 4 * 4544);
  EXPECT_EQ(Read("Falcon-7B")->Number("kv_heads"), 1);
  EXPECT_TRUE(Read("StarCoder2-3B")->Is("tied"));
  // Defaults of transformers.
  EXPECT_EQ(Read("Seed-OSS-36B", {{"num_key_value_heads", nullptr}})->Number("kv_heads"), 8);
  EXPECT_EQ(Read("OLMo-2-7B", {{"rms_norm_eps", nullptr}})->values["eps"], 1e-5);
}

TEST_F(PublishedConfigsTest, BiasesAreThoseOfTheFile) {
  using Flags = std::vector<std::string>;
  const struct {
    const char *name;
    Json changes;
    Flags on;
  } cases[] = {
      {"OLMo-2-7B", Json::object(), {}},
      {"OLMo-2-7B", {{"attention_bias", true}}, {"qkv_bias", "out_bias"}},
      {"Granite-3.1-2B", Json::object(), {}},
      {"Granite-3.1-2B", {{"attention_bias", true}}, {"qkv_bias", "out_bias"}},
      {"Granite-3.1-2B", {{"mlp_bias", true}}, {"hidden_bias"}},
      {"Seed-OSS-36B", {{"attention_bias", nullptr}}, {"qkv_bias"}},
      {"Seed-OSS-36B", {{"attention_bias", false}}, {}},
      {"Seed-OSS-36B", {{"attention_out_bias", true}}, {"qkv_bias", "out_bias"}},
      {"Seed-OSS-36B", {{"mlp_bias", true}}, {"qkv_bias", "hidden_bias"}},
      {"StarCoder2-3B", {{"use_bias", nullptr}}, {"bias"}},
      {"StarCoder2-3B", {{"use_bias", false}}, {}},
      {"Falcon-7B", {{"bias", nullptr}}, {}},
      {"Falcon-7B", {{"bias", true}}, {"bias"}},
  };
  for (const auto &[name, changes, on] : cases) {
    const absl::StatusOr<ModelConfig> read = Read(name, changes);
    ASSERT_TRUE(read.ok()) << name << " " << changes << ": " << read.status();
    Flags found;
    for (const char *flag : {"qkv_bias", "out_bias", "hidden_bias", "bias"})
      if (read->Is(flag))
        found.push_back(flag);
    EXPECT_EQ(found, on) << name << " " << changes;
  }
}

TEST_F(PublishedConfigsTest, EditedOnesAreRefused) {
  const Json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}};
  const struct {
    const char *name;
    Json changes;
    const char *expected;
  } cases[] = {
      {"SmolLM2-135M", {{"rope_interleaved", true}}, "`rope_interleaved`: Boa does not know it"},
      {"SmolLM2-135M", {{"sliding_window", 512}}, "no LlamaForCausalLM has such a key"},
      {"SmolLM2-135M", {{"num_key_value_heads", 4}}, "expected a divisor of num_attention_heads"},
      {"SmolLM2-135M", {{"head_dim", 33}}, "`head_dim`: expected an even number"},
      {"Llama-3.2-1B", {{"rope_parameters", yarn}}, "`rope_parameters.rope_type`: `yarn`"},
      {"OLMo-2-7B", {{"clip_qkv", 8.0}}, "`clip_qkv`: the language has not: limits of queries"},
      {"OLMo-2-7B", {{"sliding_window", 512}}, "`sliding_window`: Boa does not know it"},
      {"OLMo-2-7B", {{"hidden_act", "relu"}}, "`hidden_act`: `relu`: the language has silu"},
      {"Granite-3.1-2B", {{"logits_scaling", 0.0}}, "`logits_scaling`: expected a number from"},
      {"Granite-3.1-2B", {{"attention_multiplier", "x"}}, "`attention_multiplier`: expected a num"},
      {"Granite-3.1-2B", {{"num_local_experts", 4}}, "the language has not: experts"},
      {"Seed-OSS-36B", {{"rope_scaling", yarn}}, "`rope_scaling.rope_type`: `yarn`"},
      {"Mistral-7B-v0.1",
       {{"layer_types", std::vector<std::string>(32, "full_attention")}},
       "`layer_types`: expected sliding_attention in all layers of MistralForCausalLM"},
      {"StarCoder2-3B", {{"norm_type", "rms_norm"}}, "`norm_type`: expected layer_norm"},
      {"StarCoder2-3B", {{"mlp_type", "gated"}}, "`mlp_type`: expected default"},
      {"StarCoder2-3B", {{"vocab_size", nullptr}}, "`vocab_size`: expected a whole number"},
      {"Phi-4", {{"partial_rotary_factor", 0.5}}, "expected all of each head to be rotated"},
      {"Phi-4", {{"attention_bias", true}}, "`attention_bias`: Boa does not know it"},
      {"Falcon-7B", {{"alibi", true}}, "the language has not: positions as a bias of attention"},
      {"Falcon-7B", {{"multi_query", false}}, "`multi_query`: expected true"},
      {"Falcon-7B", {{"parallel_attn", false}}, "`parallel_attn`: expected true"},
      {"Falcon-7B", {{"num_ln_in_parallel_attn", 2}}, "Boa does not know it"},
      {"Falcon-7B", {{"num_attention_heads", 70}}, "expected a divisor of hidden_size"},
      {"DistilBERT", {{"sinusoidal_pos_embds", true}}, "`sinusoidal_pos_embds`: expected false"},
      {"DistilBERT", {{"tie_weights_", false}}, "`tie_weights_`: expected true"},
      {"DistilBERT", {{"hidden_size", 512}}, "`hidden_size`: it is 512, but `dim` is 768"},
      {"DistilBERT",
       {{"architectures", {"DistilBertModel"}}},
       "Boa has DistilBertForMaskedLM alone"},
  };
  for (const auto &[name, changes, expected] : cases)
    EXPECT_THAT(std::string(Read(name, changes).status().message()), HasSubstr(expected))
        << name << " " << changes;
}

} // namespace
} // namespace boa
