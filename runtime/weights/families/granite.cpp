//===- granite.cpp - Granite ----------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

namespace boa {

Family Granite() {
  Family family = LlamaLike();
  family.name = "granite";
  family.architecture = "GraniteForCausalLM";
  family.title = "Granite 3";
  family.limits = "without experts";
  family.gguf.architecture = "granite";
  family.gguf.paired = true;
  for (const GgufForm::Name &key :
       std::vector<GgufForm::Name>{{"attention.scale", "attention_multiplier"},
                                   {"embedding_scale", "embedding_multiplier"},
                                   {"residual_scale", "residual_multiplier"},
                                   {"logit_scale", "logits_scaling"}})
    family.gguf.keys.push_back(key);
  for (const ConfigKey &key :
       {Flag("attention_bias", "qkv_bias"), Flag("attention_bias", "out_bias"),
        Flag("mlp_bias", "hidden_bias"),
        Real("embedding_multiplier", "embedding_multiplier", -1e6, 1e6).Or(1),
        Real("residual_multiplier", "residual_multiplier", -1e6, 1e6).Or(1),
        Real("attention_multiplier", "attention_multiplier", -1e6, 1e6).Or(1),
        Real("logits_scaling", "logits_scaling", 1e-6, 1e6).Or(1)})
    family.keys.push_back(key);
  // Attention divides by the root of a head's width, logits are products of the scaled input.
  family.spec = R"spec(
{% set table_scale = embedding_multiplier ~ " * " %}
{% set part_scale = residual_multiplier ~ " * " %}
{% set query_scale = (attention_multiplier | float * head ** 0.5) ~ " * " %}
{% set logits_scale = (1 / (logits_scaling | float)) ~ " * " %}
)spec" + family.spec;
  return family;
}

} // namespace boa
