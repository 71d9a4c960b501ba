//===- gpt2.cpp - GPT-2 ---------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

namespace boa {

Family Gpt2() {
  Family family;
  family.name = "gpt2";
  family.architecture = "GPT2LMHeadModel";
  family.title = "GPT-2";
  family.base = "transformer.";
  family.first = "wte.weight";
  family.tied_head = "lm_head";
  family.heads = {"lm_head"};
  // transformers knows four of the keys by other names, too.
  family.keys = {
      Whole("vocab_size", "vocab").Or(50257),
      Whole("n_embd", "width").Or(768).Alias("hidden_size"),
      Count("n_layer", "depth").Or(12).Alias("num_hidden_layers"),
      Count("n_head", "heads").Or(12).Alias("num_attention_heads"),
      Whole("n_positions", "positions").Or(1024).Alias("max_position_embeddings"),
      Whole("n_inner", "hidden").From("4 * width").Same({"intermediate_size"}),
      Derived("head", "width / heads").Same({"head_dim"}),
      Derived("kv_heads", "heads"),
      Eps("layer_norm_epsilon", 1e-5),
      Flag("tie_word_embeddings", "tied", true),
      Must("scale_attn_weights", true),
      Must("scale_attn_by_inverse_layer_idx", false, "a scale of attention by layer"),
      Activation("activation_function", "gelu_new"),
      Dropout("resid_pdrop", 0.1),
      Dropout("embd_pdrop", 0.1),
      Dropout("attn_pdrop", 0.1),
  };
  // The fifth only computes in another order; those of a summary are of heads for classes.
  family.harmless = {"is_decoder",
                     "n_ctx",
                     "n_special",
                     "predict_special_tokens",
                     "reorder_and_upcast_attn",
                     "summary_activation",
                     "summary_first_dropout",
                     "summary_proj_to_labels",
                     "summary_type",
                     "summary_use_proj"};
  family.gguf.architecture = "gpt2";
  family.gguf.layers = "transformer.h.";
  family.gguf.transposed = true;
  family.gguf.keys = {
      {"embedding_length", "n_embd"},    {"feed_forward_length", "n_inner"},
      {"block_count", "n_layer"},        {"attention.head_count", "n_head"},
      {"context_length", "n_positions"}, {"attention.layer_norm_epsilon", "layer_norm_epsilon"}};
  family.gguf.tensors = {{"token_embd", "transformer.wte"},
                         {"position_embd", "transformer.wpe"},
                         {"output_norm", "transformer.ln_f"},
                         {"output", "lm_head"},
                         {"attn_norm", "ln_1"},
                         {"attn_qkv", "attn.c_attn"},
                         {"attn_output", "attn.c_proj"},
                         {"ffn_norm", "ln_2"},
                         {"ffn_up", "mlp.c_fc"},
                         {"ffn_down", "mlp.c_proj"}};
  // Its Conv1D has weights [in, out].
  family.spec = R"spec(
{% set layer = base ~ "h.*." %}
{% macro conv(name, in, out, tensor) %}
param {{ name }}_w: [{{ in }}, {{ out }}] = {{ normal }} as "{{ tensor }}.weight"
    param {{ name }}_b: [{{ out }}] = zeros as "{{ tensor }}.bias"
{%- endmacro %}
model {{ name }}(vocab = {{ vocab }}, context = {{ context }}, width = {{ width }}, heads = {{ heads }},
    hidden = {{ hidden }}, depth = {{ depth }}) {
  stage embed(tokens: [context] token) -> [context, width] {
    param wte: [vocab, width] = {{ normal }} as "{{ base }}wte.weight"
    param wpe: [context, width] = {{ normal }} as "{{ base }}wpe.weight{{ first_rows }}"
    return embedding(wte, tokens) + wpe
  }

  layer block(x: [context, width]) -> [context, width] repeat depth {
    {{ layer_norm("ln1", layer ~ "ln_1") }}
    {{ conv("qkv", "width", "3 * width", layer ~ "attn.c_attn") }}
    {{ conv("out", "width", "width", layer ~ "attn.c_proj") }}
    let q, k, v = split(linear({{ normed("x", "ln1") }}, qkv_w, qkv_b), 3)
    let h = x + linear(attention(q, k, v, heads, causal), out_w, out_b)

    {{ layer_norm("ln2", layer ~ "ln_2") }}
    {{ conv("up", "width", "hidden", layer ~ "mlp.c_fc") }}
    {{ conv("down", "hidden", "width", layer ~ "mlp.c_proj") }}
    let m = {{ activation("linear(" ~ normed("h", "ln2") ~ ", up_w, up_b)") }}
    return h + linear(m, down_w, down_b)
  }

  stage head(x: [context, width], targets: [context] token) -> loss {
    {{ layer_norm("lnf", base ~ "ln_f") }}
    {% if not tied %}
    param w: [vocab, width] = {{ normal }} as "lm_head.weight"
    {% endif %}
    let logits = linear({{ normed("x", "lnf") }}, transpose({{ "embed.wte" if tied else "w" }}))
    return cross_entropy(logits, targets)
  }
}
)spec";
  return family;
}

} // namespace boa
