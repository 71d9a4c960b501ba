//===- starcoder2.cpp - StarCoder2 ----------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

namespace boa {

static constexpr char kStarcoder2Model[] = R"spec(
{% set layer = base ~ "layers.*." %}
{% set attn = layer ~ "self_attn." %}
model {{ name }}(vocab = {{ vocab }}, context = {{ context }}, width = {{ width }}, heads = {{ heads }},
    kv_heads = {{ kv_heads }}, head = {{ head }}, hidden = {{ hidden }}, depth = {{ depth }}) {
  stage embed(tokens: [context] token) -> [context, width] {
    param table: [vocab, width] = {{ normal }} as "{{ base }}embed_tokens.weight"
    return embedding(table, tokens)
  }

  layer block(x: [context, width]) -> [context, width] repeat depth {
    {{ layer_norm("ln1", layer ~ "input_layernorm") }}
    {{ matrix("q", "heads * head", "width", attn ~ "q_proj", bias) }}
    {{ matrix("k", "kv_heads * head", "width", attn ~ "k_proj", bias) }}
    {{ matrix("v", "kv_heads * head", "width", attn ~ "v_proj", bias) }}
    {{ matrix("o", "width", "heads * head", attn ~ "o_proj", bias) }}
    let n = {{ normed("x", "ln1") }}
    let q = {{ rotary(linear("n", "q", bias), "heads") }}
    let k = {{ rotary(linear("n", "k", bias), "kv_heads") }}
    let a = attention(q, k, {{ linear("n", "v", bias) }}, heads, kv_heads = kv_heads, causal{{ window_of_all }})
    let h = x + {{ linear("a", "o", bias) }}

    {{ layer_norm("ln2", layer ~ "post_attention_layernorm") }}
    {{ matrix("up", "hidden", "width", layer ~ "mlp.c_fc", bias) }}
    {{ matrix("down", "width", "hidden", layer ~ "mlp.c_proj", bias) }}
    let m = {{ activation(linear(normed("h", "ln2"), "up", bias)) }}
    return h + {{ linear("m", "down", bias) }}
  }

  stage head(x: [context, width], targets: [context] token) -> loss {
    {{ layer_norm("ln", base ~ "norm") }}
    {% if not tied %}
    param w: [vocab, width] = {{ normal }} as "lm_head.weight"
    {% endif %}
    return cross_entropy(linear({{ normed("x", "ln") }}, transpose({{ "embed.table" if tied else "w" }})), targets)
  }
}
)spec";

Family Starcoder2() {
  Family family = LlamaLike();
  family.name = "starcoder2";
  family.architecture = "Starcoder2ForCausalLM";
  family.title = "StarCoder2";
  family.limits = "with its window";
  family.Key("rms_norm_eps") = Eps("norm_epsilon", 1e-5);
  family.Key("hidden_act").Or("gelu_pytorch_tanh");
  family.Key("num_key_value_heads").From("").Or(2);
  family.Key("tie_word_embeddings").Or(true);
  for (const ConfigKey &key : {Flag("use_bias", "bias", true), Must("norm_type", "layer_norm"),
                               Must("mlp_type", "default"), Dropout("residual_dropout"),
                               Dropout("embedding_dropout"), WindowOf(ConfigKey::Window::always)})
    family.keys.push_back(key);
  family.spec = kStarcoder2Model;
  return family;
}

} // namespace boa
