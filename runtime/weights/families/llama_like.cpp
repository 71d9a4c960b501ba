//===- llama_like.cpp - Families of the kind of Llama ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

namespace boa {
namespace {

constexpr char kLlamaLayer[] = R"spec(
  layer block(x: [context, width]) -> [context, width] repeat depth {
    param norm1: [width] = ones as "{{ layer }}input_layernorm.weight"
    {{ matrix("q", "heads * head", "width", attn ~ "q_proj", qkv_bias) }}
    {{ matrix("k", "kv_heads * head", "width", attn ~ "k_proj", qkv_bias) }}
    {{ matrix("v", "kv_heads * head", "width", attn ~ "v_proj", qkv_bias) }}
    {% if head_norms %}
    param q_norm: [head] = ones as "{{ attn }}q_norm.weight"
    param k_norm: [head] = ones as "{{ attn }}k_norm.weight"
    {% endif %}
    {{ matrix("o", "width", "heads * head", attn ~ "o_proj", out_bias) }}
    let n = {{ rms("x", "norm1") }}
    let q = {{ rotary(query_scale ~ head_norm(linear("n", "q", qkv_bias), "q_norm", "heads"), "heads") }}
    let k = {{ rotary(head_norm(linear("n", "k", qkv_bias), "k_norm", "kv_heads"), "kv_heads") }}
    let a = attention(q, k, {{ linear("n", "v", qkv_bias) }}, heads, kv_heads = kv_heads, causal{{ window_of_all }})
    let h = x + {{ part_scale }}{{ linear("a", "o", out_bias) }}

    param norm2: [width] = ones as "{{ layer }}post_attention_layernorm.weight"
    {{ matrix("gate", "hidden", "width", mlp ~ "gate_proj", hidden_bias) }}
    {{ matrix("up", "hidden", "width", mlp ~ "up_proj", hidden_bias) }}
    {{ matrix("down", "width", "hidden", mlp ~ "down_proj", hidden_bias) }}
    let m = {{ rms("h", "norm2") }}
    let g = {{ activation(linear("m", "gate", hidden_bias)) }} * {{ linear("m", "up", hidden_bias) }}
    return h + {{ part_scale }}{{ linear("g", "down", hidden_bias) }}
  }
)spec";

} // namespace

std::string LlamaBegin() {
  return R"spec(
{% set layer = base ~ "layers.*." %}
{% set attn = layer ~ "self_attn." %}
{% set mlp = layer ~ "mlp." %}
{% macro rms(x, w) %}rms_norm({{ x }}, {{ w }}, eps = {{ eps }}){% endmacro %}
{% macro head_norm(x, w, heads) %}
{{ "rms_norm(" ~ x ~ ", " ~ w ~ ", eps = " ~ eps ~ ", heads = " ~ heads ~ ")" if head_norms else x }}
{%- endmacro %}
model {{ name }}(vocab = {{ vocab }}, context = {{ context }}, width = {{ width }}, heads = {{ heads }},
    kv_heads = {{ kv_heads }}, head = {{ head }}, hidden = {{ hidden }}, depth = {{ depth }}) {
  stage embed(tokens: [context] token) -> [context, width] {
    param table: [vocab, width] = {{ normal }} as "{{ base }}embed_tokens.weight"
    return {{ table_scale }}embedding(table, tokens)
  }
)spec";
}

std::string LlamaEnd() {
  return R"spec(
  stage head(x: [context, width], targets: [context] token) -> loss {
    param norm: [width] = ones as "{{ base }}norm.weight"
    {% if not tied %}
    param w: [vocab, width] = {{ normal }} as "lm_head.weight"
    {% endif %}
    return cross_entropy(linear({{ logits_scale }}{{ rms("x", "norm") }}, transpose({{ "embed.table" if tied else "w" }})), targets)
  }
}
)spec";
}

Family LlamaLike() {
  Family family;
  family.base = "model.";
  family.first = "embed_tokens.weight";
  family.tied_head = "lm_head";
  family.heads = {"lm_head"};
  family.keys = {
      Whole("vocab_size", "vocab"),
      Whole("hidden_size", "width").Same({"n_embd", "d_model", "dim"}),
      Whole("intermediate_size", "hidden").Same({"n_inner", "ffn_hidden_size", "ffn_dim"}),
      Count("num_hidden_layers", "depth").Same({"n_layer", "n_layers", "num_layers"}),
      Count("num_attention_heads", "heads").Same({"n_head", "n_heads", "num_heads"}),
      Count("num_key_value_heads", "kv_heads")
          .From("heads")
          .DivisorOf("heads")
          .Same({"n_kv_heads", "n_head_kv", "num_kv_heads"}),
      Count("head_dim", "head")
          .From("width / heads")
          .Even()
          .Same({"kv_channels", "head_size", "attention_head_dim"}),
      Whole("max_position_embeddings", "positions").Same({"n_positions"}),
      Eps("rms_norm_eps", 1e-6).Same({"norm_eps", "layer_norm_eps", "layer_norm_epsilon"}),
      Flag("tie_word_embeddings", "tied"),
      Activation("hidden_act", "silu"),
      Rotary(10000),
      Dropout("attention_dropout"),
      Dropout("attention_probs_dropout_prob"),
      Dropout("embd_pdrop"),
      Dropout("hidden_dropout"),
      Dropout("hidden_dropout_prob"),
      Dropout("resid_pdrop"),
  };
  family.harmless = {"is_decoder", "max_window_layers", "original_max_position_embeddings",
                     "pretraining_tp"};
  family.gguf.layers = "model.layers.";
  family.gguf.keys = {{"embedding_length", "hidden_size"},
                      {"feed_forward_length", "intermediate_size"},
                      {"block_count", "num_hidden_layers"},
                      {"attention.head_count", "num_attention_heads"},
                      {"attention.head_count_kv", "num_key_value_heads"},
                      {"context_length", "max_position_embeddings"},
                      {"attention.layer_norm_rms_epsilon", "rms_norm_eps"}};
  family.gguf.flags = {{"blk.0.attn_q.bias", "attention_bias"},
                       {"blk.0.attn_output.bias", "attention_out_bias"},
                       {"blk.0.ffn_up.bias", "mlp_bias"}};
  family.gguf.tensors = {{"token_embd", "model.embed_tokens"},
                         {"output_norm", "model.norm"},
                         {"output", "lm_head"},
                         {"attn_norm", "input_layernorm"},
                         {"attn_q", "self_attn.q_proj"},
                         {"attn_k", "self_attn.k_proj"},
                         {"attn_v", "self_attn.v_proj"},
                         {"attn_output", "self_attn.o_proj"},
                         {"attn_q_norm", "self_attn.q_norm"},
                         {"attn_k_norm", "self_attn.k_norm"},
                         {"ffn_norm", "post_attention_layernorm"},
                         {"ffn_gate", "mlp.gate_proj"},
                         {"ffn_up", "mlp.up_proj"},
                         {"ffn_down", "mlp.down_proj"}};
  family.spec = LlamaBegin() + kLlamaLayer + LlamaEnd();
  return family;
}

} // namespace boa
