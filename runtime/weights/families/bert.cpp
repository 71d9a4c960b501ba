//===- bert.cpp - BERT ----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

namespace boa {

Family Bert() {
  Family family;
  family.name = "bert";
  family.architecture = "BertForMaskedLM";
  family.title = "BERT";
  family.limits = "all tokens are of type 0";
  family.base = "bert.";
  family.first = "embeddings.word_embeddings.weight";
  family.tied_head = "cls.predictions.decoder";
  family.head_bias = "cls.predictions.bias";
  family.heads = {"lm_head", "cls."};
  family.unused = {"bert.pooler.", "pooler.", "cls.seq_relationship."};
  family.masked = true;
  family.keys = {
      Whole("vocab_size", "vocab"),
      Whole("hidden_size", "width").Or(768).Same({"embedding_size", "n_embd"}),
      Count("num_hidden_layers", "depth").Or(12).Same({"n_layer", "n_layers", "num_layers"}),
      Count("num_attention_heads", "heads").Or(12),
      Whole("intermediate_size", "hidden").Or(3072),
      Whole("max_position_embeddings", "positions").Or(512),
      Whole("type_vocab_size", "types", 1024).Or(2),
      Derived("head", "width / heads").Same({"head_dim"}),
      Derived("kv_heads", "heads"),
      Eps("layer_norm_eps", 1e-12),
      Must("tie_word_embeddings", true),
      Must("position_embedding_type", "absolute", "positions relative to one another"),
      Activation("hidden_act", "gelu"),
      Dropout("hidden_dropout_prob", 0.1),
      Dropout("attention_probs_dropout_prob", 0.1),
  };
  family.harmless = {"classifier_dropout",   "directionality",
                     "pooler_fc_size",       "pooler_num_attention_heads",
                     "pooler_num_fc_layers", "pooler_size_per_head",
                     "pooler_type"};
  // All tokens are of the first type.
  family.spec = R"spec(
{% set table = base ~ "embeddings." %}
{% set layer = base ~ "encoder.layer.*." %}
{% set top = "cls.predictions." %}
model {{ name }}(vocab = {{ vocab }}, context = {{ context }}, width = {{ width }}, heads = {{ heads }},
    hidden = {{ hidden }}, depth = {{ depth }}) {
  stage embed(tokens: [context] token) -> [context, width] {
    param wte: [vocab, width] = {{ normal }} as "{{ table }}word_embeddings.weight"
    param wpe: [context, width] = {{ normal }} as "{{ table }}position_embeddings.weight{{ first_rows }}"
    param type: [width] = {{ normal }} as "{{ table }}token_type_embeddings.weight[0]"
    {{ layer_norm("ln", table ~ "LayerNorm") }}
    return {{ normed("embedding(wte, tokens) + wpe + type", "ln") }}
  }

  layer block(x: [context, width]) -> [context, width] repeat depth {
    {{ matrix("q", "width", "width", layer ~ "attention.self.query", true) }}
    {{ matrix("k", "width", "width", layer ~ "attention.self.key", true) }}
    {{ matrix("v", "width", "width", layer ~ "attention.self.value", true) }}
    {{ matrix("o", "width", "width", layer ~ "attention.output.dense", true) }}
    {{ layer_norm("ln1", layer ~ "attention.output.LayerNorm") }}
    let a = attention({{ linear("x", "q", true) }}, {{ linear("x", "k", true) }}, {{ linear("x", "v", true) }}, heads)
    let h = {{ normed("x + " ~ linear("a", "o", true), "ln1") }}

    {{ matrix("up", "hidden", "width", layer ~ "intermediate.dense", true) }}
    {{ matrix("down", "width", "hidden", layer ~ "output.dense", true) }}
    {{ layer_norm("ln2", layer ~ "output.LayerNorm") }}
    let m = {{ activation(linear("h", "up", true)) }}
    return {{ normed("h + " ~ linear("m", "down", true), "ln2") }}
  }

  stage head(x: [context, width], targets: [context] token) -> loss {
    {{ matrix("dense", "width", "width", top ~ "transform.dense", true) }}
    {{ layer_norm("ln", top ~ "transform.LayerNorm") }}
    param bias: [vocab] = zeros as "{{ top }}bias"
    let t = {{ normed(activation(linear("x", "dense", true)), "ln") }}
    return cross_entropy(linear(t, transpose(embed.wte), bias), targets)
  }
}
)spec";
  return family;
}

} // namespace boa
