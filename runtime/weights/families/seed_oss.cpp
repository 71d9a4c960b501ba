//===- seed_oss.cpp - Seed-OSS --------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

namespace boa {

Family SeedOss() {
  Family family = LlamaLike();
  family.name = "seed_oss";
  family.architecture = "SeedOssForCausalLM";
  family.title = "Seed-OSS";
  family.gguf.architecture = "seed_oss";
  family.gguf.tensors.push_back({"post_attention_norm", "post_attention_layernorm"});
  family.Key("num_key_value_heads").From("").Or(8);
  family.Key("head_dim").From("").Or(128);
  family.Key("attention_dropout").Or(0.1);
  for (const ConfigKey &key :
       {Flag("attention_bias", "qkv_bias", true), Flag("attention_out_bias", "out_bias"),
        Flag("mlp_bias", "hidden_bias"), Dropout("residual_dropout", 0.1)})
    family.keys.push_back(key);
  return family;
}

} // namespace boa
