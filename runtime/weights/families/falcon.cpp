//===- falcon.cpp - Falcon ------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

namespace boa {

/// Attention and MLP stand beside one another. All heads share one key and one value.
static constexpr char kFalconModel[] = R"spec(
{% set layer = base ~ "h.*." %}
{% set attn = layer ~ "self_attention." %}
model {{ name }}(vocab = {{ vocab }}, context = {{ context }}, width = {{ width }}, heads = {{ heads }},
    head = {{ head }}, hidden = {{ hidden }}, depth = {{ depth }}) {
  stage embed(tokens: [context] token) -> [context, width] {
    param table: [vocab, width] = {{ normal }} as "{{ base }}word_embeddings.weight"
    return embedding(table, tokens)
  }

  layer block(x: [context, width]) -> [context, width] repeat depth {
    {{ layer_norm("ln", layer ~ "input_layernorm") }}
    {{ matrix("qkv", "(heads + 2) * head", "width", attn ~ "query_key_value", bias) }}
    {{ matrix("o", "width", "width", attn ~ "dense", bias) }}
    {{ matrix("up", "hidden", "width", layer ~ "mlp.dense_h_to_4h", bias) }}
    {{ matrix("down", "width", "hidden", layer ~ "mlp.dense_4h_to_h", bias) }}
    let n = {{ normed("x", "ln") }}
    let q, k, v = split({{ linear("n", "qkv", bias) }}, (heads * head, head, head))
    let a = attention({{ rotary("q", "heads") }}, {{ rotary("k", "1") }}, v, heads, kv_heads = 1, causal)
    let m = {{ activation(linear("n", "up", bias)) }}
    return x + {{ linear("a", "o", bias) }} + {{ linear("m", "down", bias) }}
  }

  stage head(x: [context, width], targets: [context] token) -> loss {
    {{ layer_norm("ln", base ~ "ln_f") }}
    {% if not tied %}
    param w: [vocab, width] = {{ normal }} as "lm_head.weight"
    {% endif %}
    return cross_entropy(linear({{ normed("x", "ln") }}, transpose({{ "embed.table" if tied else "w" }})), targets)
  }
}
)spec";

Family Falcon() {
  Family family;
  family.name = "falcon";
  family.architecture = "FalconForCausalLM";
  family.title = "Falcon-7B";
  family.limits = "not Falcon-40B, which fuses queries, keys and values by head";
  family.base = "transformer.";
  family.first = "word_embeddings.weight";
  family.tied_head = "lm_head";
  family.heads = {"lm_head"};
  family.keys = {
      Whole("vocab_size", "vocab").Or(65024),
      Whole("hidden_size", "width").Or(4544),
      Count("num_hidden_layers", "depth").Or(32),
      Count("num_attention_heads", "heads").Or(71),
      Derived("head", "width / heads").Even(),
      Fixed("kv_heads", 1),
      Whole("ffn_hidden_size", "hidden").From("4 * width"),
      Whole("max_position_embeddings", "positions").Or(2048),
      Eps("layer_norm_epsilon", 1e-5),
      Flag("tie_word_embeddings", "tied", true),
      Flag("bias", "bias"),
      Must("alibi", false, "positions as a bias of attention"),
      Must("multi_query", true),
      Must("parallel_attn", true),
      Must("new_decoder_architecture", false),
      Activation("activation", "gelu"),
      Rotary(10000),
      Dropout("attention_dropout"),
      Dropout("hidden_dropout"),
  };
  // With one key for all heads, num_kv_heads is not read. Published folders bring the code that
  // transformers has, too.
  family.harmless = {"num_kv_heads", "auto_map"};
  family.spec = kFalconModel;
  return family;
}

} // namespace boa
