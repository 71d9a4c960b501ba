//===- olmo2.cpp - OLMo 2 -------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

namespace boa {

/// Norms stand behind attention and MLP, before the sum. Queries and keys are normed over all
/// heads.
static constexpr char kOlmo2Layer[] = R"spec(
  layer block(x: [context, width]) -> [context, width] repeat depth {
    {{ matrix("q", "heads * head", "width", attn ~ "q_proj", qkv_bias) }}
    {{ matrix("k", "kv_heads * head", "width", attn ~ "k_proj", qkv_bias) }}
    {{ matrix("v", "kv_heads * head", "width", attn ~ "v_proj", qkv_bias) }}
    param q_norm: [heads * head] = ones as "{{ attn }}q_norm.weight"
    param k_norm: [kv_heads * head] = ones as "{{ attn }}k_norm.weight"
    {{ matrix("o", "width", "heads * head", attn ~ "o_proj", out_bias) }}
    param norm1: [width] = ones as "{{ layer }}post_attention_layernorm.weight"
    let q = {{ rotary(rms(linear("x", "q", qkv_bias), "q_norm"), "heads") }}
    let k = {{ rotary(rms(linear("x", "k", qkv_bias), "k_norm"), "kv_heads") }}
    let a = attention(q, k, {{ linear("x", "v", qkv_bias) }}, heads, kv_heads = kv_heads, causal)
    let h = x + {{ rms(linear("a", "o", out_bias), "norm1") }}

    {{ matrix("gate", "hidden", "width", mlp ~ "gate_proj") }}
    {{ matrix("up", "hidden", "width", mlp ~ "up_proj") }}
    {{ matrix("down", "width", "hidden", mlp ~ "down_proj") }}
    param norm2: [width] = ones as "{{ layer }}post_feedforward_layernorm.weight"
    let g = {{ activation(linear("h", "gate")) }} * {{ linear("h", "up") }}
    return h + {{ rms(linear("g", "down"), "norm2") }}
  }
)spec";

Family Olmo2() {
  Family family = LlamaLike();
  family.name = "olmo2";
  family.architecture = "Olmo2ForCausalLM";
  family.title = "OLMo 2";
  family.gguf.architecture = "olmo2";
  family.gguf.tensors.push_back({"post_attention_norm", "post_attention_layernorm"});
  family.gguf.tensors.push_back({"post_ffw_norm", "post_feedforward_layernorm"});
  family.Key("rms_norm_eps").Or(1e-5);
  family.keys.push_back(Flag("attention_bias", "qkv_bias"));
  family.keys.push_back(Flag("attention_bias", "out_bias"));
  family.spec = LlamaBegin() + kOlmo2Layer + LlamaEnd();
  return family;
}

} // namespace boa
