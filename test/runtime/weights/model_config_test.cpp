//===- model_config_test.cpp - The keys of config.json --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/model_config.h"

#include "test/runtime/scratch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace boa {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class ModelConfigTest : public testing::Test {
protected:
  absl::StatusOr<ModelConfig> Read(const Json &changes) {
    Json config = base;
    config.update(changes);
    scratch.Write("config.json", config.dump());
    return ReadModelConfig(scratch.path());
  }
  std::string Error(const Json &changes) { return std::string(Read(changes).status().message()); }

  Scratch scratch{FastDirectory()};
  const Json llama = {{"architectures", Json::array({"LlamaForCausalLM"})},
                      {"model_type", "llama"},
                      {"vocab_size", 100},
                      {"hidden_size", 32},
                      {"intermediate_size", 64},
                      {"num_hidden_layers", 2},
                      {"num_attention_heads", 4},
                      {"num_key_value_heads", 2},
                      {"max_position_embeddings", 128}};
  const Json gpt2 = {{"model_type", "gpt2"}, {"n_embd", 32}, {"n_layer", 2}, {"n_head", 4}};
  const Json bert = {{"model_type", "bert"}, {"vocab_size", 100}};
  Json base = llama;
};

// As SmolLM2, OpenLLaMA, Vicuna, DialoGPT and the first files of BERT have them.
TEST_F(ModelConfigTest, KeysThatChangeNothing) {
  for (const Json &keys : std::vector<Json>{
           {{"is_llama_config", true},
            {"rope_interleaved", false},
            {"transformers.js_config", {{"kv_cache_dtype", {{"fp16", "float16"}}}}}},
           {{"max_sequence_length", 2048}},
           {{"partial_rotary_factor", 1.0}},
           {{"rotary_pct", 1}, {"rope_scaling", {{"type", "default"}, {"factor", 1.0}}}},
           {{"tokenizer_model_max_length", 4096}, {"tokenizer_padding_side", "right"}},
           {{"neftune_noise_alpha", 5.0}, {"pruned_heads", Json::object()}},
           {{"quantization_config", nullptr}, {"rope_scaling", nullptr}},
           {{"n_layer", 2}, {"num_heads", 4}, {"dim", 32}, {"kv_channels", 8}},
           {{"torch_dtype", "bfloat16"}, {"dtype", "bfloat16"}},
           {{"resid_pdrop", 0.0}, {"embd_pdrop", 0}, {"original_max_position_embeddings", 64}}})
    EXPECT_EQ(Error(keys), "") << keys;
  base = gpt2;
  for (const Json &keys : std::vector<Json>{
           {{"n_ctx", 1024},
            {"output_past", true},
            {"predict_special_tokens", true},
            {"n_special", 0}},
           {{"num_hidden_layers", 2}, {"hidden_size", 32}, {"intermediate_size", 128}}})
    EXPECT_EQ(Error(keys), "") << keys;
  base = bert;
  EXPECT_EQ(
      Error({{"language", "english"}, {"name", "Bert"}, {"output_past", true}, {"head_dim", 64}}),
      "");
}

// GPT-2's keys have other names, by which transformers knows them, too.
TEST_F(ModelConfigTest, OtherNamesOfKeys) {
  base = {{"model_type", "gpt2"}};
  const auto config = Read({{"hidden_size", 48},
                            {"num_hidden_layers", 3},
                            {"num_attention_heads", 6},
                            {"max_position_embeddings", 64}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->Number("width"), 48);
  EXPECT_EQ(config->Number("depth"), 3);
  EXPECT_EQ(config->Number("heads"), 6);
  EXPECT_EQ(config->Number("positions"), 64);
}

TEST_F(ModelConfigTest, AllRefusalsComeAtOnce) {
  const std::string error = Error({{"hidden_size", "x"},
                                   {"logits_scaling", 8.0},
                                   {"hidden_act", "relu"},
                                   {"rope_scaling", {{"rope_type", "linear"}, {"extra", 1}}},
                                   {"dtype", "int8"},
                                   {"auto_map", {{"AutoModel", "code.Model"}}},
                                   {"num_local_experts", 8},
                                   {"partial_rotary_factor", 0.5}});
  EXPECT_THAT(error, HasSubstr("config.json`: 9 faults\n  key `auto_map`: the model brings code"));
  for (const char *expected :
       {"\n  key `hidden_size`: expected a whole number",
        "\n  key `logits_scaling`: Boa does not know", "\n  key `hidden_act`: `relu`",
        "\n  key `rope_scaling.factor`: expected a number from 1",
        "\n  key `rope_scaling.extra`: Boa does not know", "\n  key `dtype`: `int8`: expected",
        "\n  key `num_local_experts`: the language has not: experts",
        "\n  key `partial_rotary_factor`: expected all of each head"})
    EXPECT_THAT(error, HasSubstr(expected));
  // A fault that follows from another one is not told.
  EXPECT_EQ(Error({{"num_attention_heads", nullptr}}).find("divisor"), std::string::npos);
  // One is as it was.
  EXPECT_THAT(Error({{"logits_scaling", 8.0}}),
              HasSubstr("config.json`: key `logits_scaling`: Boa does not know it"));
}

// A table that has the model has the last word: a spec by hand does not go out with what it
// refuses.
TEST_F(ModelConfigTest, OfOtherModelsNamesAreRead) {
  const auto any = [&](const Json &changes) {
    EXPECT_FALSE(Read(changes).ok());
    return ReadAnyConfig(scratch.path());
  };
  for (const Json &keys : std::vector<Json>{{{"x", 1}},
                                            {{"partial_rotary_factor", 0.75}},
                                            {{"norm_eps", 1e-3}},
                                            {{"architectures", Json::array({"LlamaModel"})}}}) {
    EXPECT_EQ(any(keys).status(), Read(keys).status());
    EXPECT_THAT(Error(keys), Not(HasSubstr("by hand"))) << keys;
  }
  const Json other = {{"model_type", "other"}, {"architectures", Json::array({"OtherModel"})}};
  const auto config = any(other);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->family, nullptr);
  EXPECT_EQ(config->architecture, "OtherModel");
  EXPECT_FALSE(config->values.contains("tied")); // nobody knows what an absent key means
  EXPECT_THAT(config->unknown, HasSubstr("`other` is no model that Boa imports"));
  EXPECT_THAT(Error(other), HasSubstr("\n  a spec by hand may serve: behind `as` it names"));
  // No spec has what the language lacks.
  base.update(other);
  EXPECT_THAT(any({{"num_local_experts", 8}}).status().message(),
              HasSubstr("the language has not: experts"));
}

// No key of a table is without a name, though JSON may have such a key.
TEST_F(ModelConfigTest, AKeyWithoutAName) {
  base = bert;
  EXPECT_THAT(Error({{"", 1}, {"hidden_size", -1}}),
              HasSubstr("2 faults\n  key `hidden_size`: expected a whole number"));
  EXPECT_THAT(Error({{"", 1}, {"hidden_size", 100}}),
              HasSubstr("key `num_attention_heads`: expected a divisor of hidden_size"));
}

// Readers differ in which of two keys counts.
TEST_F(ModelConfigTest, KeysThatDisagreeAreRefused) {
  const Json linear = {{"rope_type", "linear"}, {"factor", 2.0}};
  const Json same = {{"rope_theta", 10000.0}, {"rope_type", "linear"}, {"factor", 2.0}};
  for (const auto &[keys, expected] : std::vector<std::pair<Json, const char *>>{
           {{{"rope_scaling", {{"rope_type", "default"}}}, {"rope_parameters", linear}},
            "key `rope_parameters`: its rotary positions differ from those of `rope_scaling`"},
           {{{"rope_theta", 500000.0}, {"rope_parameters", same}},
            "key `rope_parameters.rope_theta`: it is 10000, but `rope_theta` is 500000"},
           {{{"rope_scaling", {{"type", "linear"}, {"rope_type", "default"}, {"factor", 1.0}}}},
            "key `rope_scaling.type`: it is linear, but `rope_type` is default"},
           {{{"n_layer", 6}},
            "key `n_layer`: it is 6, but `num_hidden_layers` is 2, and both name"},
           {{{"n_heads", 8}}, "key `n_heads`: it is 8, but `num_attention_heads` is 4"},
           {{{"kv_channels", 16}}, "key `kv_channels`: it is 16, but `head_dim` is 8"},
           {{{"head_dim", 16}, {"kv_channels", 8}}, "it is 8, but `head_dim` is 16"},
           {{{"torch_dtype", "float16"}, {"dtype", "bfloat16"}},
            "key `torch_dtype`: it is float16, but `dtype` is bfloat16"}})
    EXPECT_THAT(Error(keys), HasSubstr(expected)) << keys;
  EXPECT_EQ(Error({{"rope_scaling", linear}, {"rope_parameters", same}}), "");
  base["model_type"] = "qwen2";
  base["architectures"] = Json::array({"Qwen2ForCausalLM"});
  const Json layers = Json::array({"full_attention", "sliding_attention"});
  EXPECT_EQ(Error({{"sliding_window", 32}, {"use_sliding_window", true}, {"layer_types", layers}}),
            "");
  EXPECT_THAT(
      Error({{"sliding_window", 32}, {"use_sliding_window", false}, {"layer_types", layers}}),
      HasSubstr("key `layer_types`: some layers have a window, but `use_sliding_window` is not"));
  EXPECT_THAT(Error({{"sliding_window", 32}, {"layer_types", layers}}),
              HasSubstr("key `layer_types`: some layers have a window, but `use_sliding_window`"));
  // As transformers has it, an absent key is a window of 4096, and null is none.
  EXPECT_EQ(Read({{"use_sliding_window", true}})->window_of_some(), 4096);
  EXPECT_EQ(Read({{"use_sliding_window", true}, {"sliding_window", nullptr}})->window_of_some(), 0);
  EXPECT_EQ(Read({{"use_sliding_window", false}, {"sliding_window", 0}})->window_of_some(), 0);
  EXPECT_THAT(Error({{"use_sliding_window", true}, {"sliding_window", 0}}),
              HasSubstr("key `sliding_window`: layers use it: expected at least 1"));
  EXPECT_THAT(Error({{"layer_types", Json::array({"full_attention"})}}),
              HasSubstr("key `layer_types`: it has 1 layers, but `num_hidden_layers` is 2"));
  base["model_type"] = "llama";
  base["architectures"] = Json::array({"LlamaForCausalLM"});
  EXPECT_THAT(Error({{"layer_types", layers}}), HasSubstr("key `layer_types`: some layers have"));
  base = gpt2;
  EXPECT_THAT(Error({{"num_hidden_layers", 12}}), HasSubstr("it is 12, but `n_layer` is 2"));
  EXPECT_THAT(Error({{"intermediate_size", 100}}), HasSubstr("it is 100, but `n_inner` is 128"));
}

// In some families all layers have the window, and transformers reads no `layer_types`.
TEST_F(ModelConfigTest, LayersOfFamiliesWithOneWindow) {
  const std::string sliding = "sliding_attention", full = "full_attention";
  for (const auto &[type, architecture] : std::vector<std::pair<const char *, const char *>>{
           {"mistral", "MistralForCausalLM"},
           {"phi3", "Phi3ForCausalLM"},
           {"starcoder2", "Starcoder2ForCausalLM"}}) {
    base["model_type"] = type;
    base["architectures"] = Json::array({architecture});
    const auto with = [&](const Json &window, const Json &layers) {
      return Read({{"sliding_window", window}, {"layer_types", layers}});
    };
    const auto all = with(32, {sliding, sliding});
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_EQ(all->Number("window"), 32);
    EXPECT_EQ(all->window_of_some(), 0);
    const auto none = with(nullptr, {full, full});
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_EQ(none->Number("window"), 0);
    for (const Json &layers : {Json({full, sliding}), Json({full, full})})
      EXPECT_THAT(with(32, layers).status().message(),
                  HasSubstr("key `layer_types`: expected sliding_attention in all layers of"));
    EXPECT_THAT(with(nullptr, {full, sliding}).status().message(),
                HasSubstr("key `layer_types`: expected full_attention in all layers of"));
    // It would hide every token.
    EXPECT_THAT(Error({{"sliding_window", 0}}),
                HasSubstr("key `sliding_window`: expected a whole number from 1"));
  }
}

} // namespace
} // namespace boa
