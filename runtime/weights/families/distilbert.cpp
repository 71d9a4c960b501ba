//===- distilbert.cpp - DistilBERT ----------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

namespace boa {

static constexpr char kDistilbertModel[] = R"spec(
{% set table = base ~ "embeddings." %}
{% set layer = base ~ "transformer.layer.*." %}
{% set attn = layer ~ "attention." %}
model {{ name }}(vocab = {{ vocab }}, context = {{ context }}, width = {{ width }}, heads = {{ heads }},
    hidden = {{ hidden }}, depth = {{ depth }}) {
  stage embed(tokens: [context] token) -> [context, width] {
    param wte: [vocab, width] = {{ normal }} as "{{ table }}word_embeddings.weight"
    param wpe: [context, width] = {{ normal }} as "{{ table }}position_embeddings.weight{{ first_rows }}"
    {{ layer_norm("ln", table ~ "LayerNorm") }}
    return {{ normed("embedding(wte, tokens) + wpe", "ln") }}
  }

  layer block(x: [context, width]) -> [context, width] repeat depth {
    {{ matrix("q", "width", "width", attn ~ "q_lin", true) }}
    {{ matrix("k", "width", "width", attn ~ "k_lin", true) }}
    {{ matrix("v", "width", "width", attn ~ "v_lin", true) }}
    {{ matrix("o", "width", "width", attn ~ "out_lin", true) }}
    {{ layer_norm("ln1", layer ~ "sa_layer_norm") }}
    let a = attention({{ linear("x", "q", true) }}, {{ linear("x", "k", true) }}, {{ linear("x", "v", true) }}, heads)
    let h = {{ normed("x + " ~ linear("a", "o", true), "ln1") }}

    {{ matrix("up", "hidden", "width", layer ~ "ffn.lin1", true) }}
    {{ matrix("down", "width", "hidden", layer ~ "ffn.lin2", true) }}
    {{ layer_norm("ln2", layer ~ "output_layer_norm") }}
    let m = {{ activation(linear("h", "up", true)) }}
    return {{ normed("h + " ~ linear("m", "down", true), "ln2") }}
  }

  stage head(x: [context, width], targets: [context] token) -> loss {
    {{ matrix("dense", "width", "width", "vocab_transform", true) }}
    {{ layer_norm("ln", "vocab_layer_norm") }}
    param bias: [vocab] = zeros as "vocab_projector.bias"
    let t = {{ normed(activation(linear("x", "dense", true)), "ln") }}
    return cross_entropy(linear(t, transpose(embed.wte), bias), targets)
  }
}
)spec";

Family Distilbert() {
  Family family;
  family.name = "distilbert";
  family.architecture = "DistilBertForMaskedLM";
  family.title = "DistilBERT";
  family.base = "distilbert.";
  family.first = "embeddings.word_embeddings.weight";
  family.tied_head = "vocab_projector";
  family.head_bias = "vocab_projector.bias";
  family.heads = {"vocab_transform", "vocab_layer_norm", "vocab_projector"};
  family.masked = true;
  family.keys = {
      Whole("vocab_size", "vocab").Or(30522),
      Whole("dim", "width").Or(768).Alias("hidden_size"),
      Count("n_layers", "depth").Or(6).Alias("num_hidden_layers"),
      Count("n_heads", "heads").Or(12).Alias("num_attention_heads"),
      Whole("hidden_dim", "hidden").Or(3072),
      Whole("max_position_embeddings", "positions").Or(512),
      Derived("head", "width / heads").Same({"head_dim"}),
      Derived("kv_heads", "heads"),
      Fixed("eps", 1e-12),
      Must("tie_word_embeddings", true),
      Must("tie_weights_", true),
      Must("sinusoidal_pos_embds", false),
      Activation("activation", "gelu"),
      Dropout("dropout", 0.1),
      Dropout("attention_dropout", 0.1),
  };
  family.harmless = {"qa_dropout", "seq_classif_dropout"};
  family.spec = kDistilbertModel;
  return family;
}

} // namespace boa
