//===- phi3.cpp - Phi-3 and Phi-4 -----------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

namespace boa {

/// Queries, keys and values are one matrix, and so are the two halves of the MLP.
static constexpr char kPhi3Layer[] = R"spec(
  layer block(x: [context, width]) -> [context, width] repeat depth {
    param norm1: [width] = ones as "{{ layer }}input_layernorm.weight"
    {{ matrix("qkv", "(heads + 2 * kv_heads) * head", "width", attn ~ "qkv_proj") }}
    {{ matrix("o", "width", "heads * head", attn ~ "o_proj") }}
    let qkv = {{ linear(rms("x", "norm1"), "qkv") }}
    let q, k, v = split(qkv, (heads * head, kv_heads * head, kv_heads * head))
    let a = attention({{ rotary("q", "heads") }}, {{ rotary("k", "kv_heads") }}, v, heads, kv_heads = kv_heads, causal{{ window_of_all }})
    let h = x + {{ linear("a", "o") }}

    param norm2: [width] = ones as "{{ layer }}post_attention_layernorm.weight"
    {{ matrix("up", "2 * hidden", "width", mlp ~ "gate_up_proj") }}
    {{ matrix("down", "width", "hidden", mlp ~ "down_proj") }}
    let g, u = split({{ linear(rms("h", "norm2"), "up") }}, 2)
    let m = {{ activation("g") }} * u
    return h + {{ linear("m", "down") }}
  }
)spec";

Family Phi3() {
  Family family = LlamaLike();
  family.name = "phi3";
  family.architecture = "Phi3ForCausalLM";
  family.title = "Phi-3 and Phi-4";
  family.limits = "not Phi-4-mini, which rotates a part of each head; no longrope";
  family.gguf.architecture = "phi3";
  family.gguf.tensors = {{"token_embd", "model.embed_tokens"},
                         {"output_norm", "model.norm"},
                         {"output", "lm_head"},
                         {"attn_norm", "input_layernorm"},
                         {"attn_qkv", "self_attn.qkv_proj"},
                         {"attn_output", "self_attn.o_proj"},
                         {"ffn_norm", "post_attention_layernorm"},
                         {"ffn_up", "mlp.gate_up_proj"},
                         {"ffn_down", "mlp.down_proj"}};
  family.Key("rms_norm_eps").Or(1e-5);
  family.keys.push_back(WindowOf(ConfigKey::Window::always));
  // Published folders bring the code that transformers has, too.
  family.harmless.push_back("auto_map");
  family.spec = LlamaBegin() + kPhi3Layer + LlamaEnd();
  return family;
}

} // namespace boa
