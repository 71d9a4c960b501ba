//===- qwen3.cpp - Qwen 3 -------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

namespace boa {

Family Qwen3() {
  Family family = LlamaLike();
  family.name = "qwen3";
  family.architecture = "Qwen3ForCausalLM";
  family.title = "Qwen 3";
  family.limits = "contexts up to a window that only some layers have";
  family.gguf.architecture = "qwen3";
  family.Key("head_dim").From("").Or(128);
  for (const ConfigKey &key :
       {Flag("attention_bias", "qkv_bias"), Flag("attention_bias", "out_bias"),
        Fixed("head_norms", true), WindowOf(ConfigKey::Window::if_used).Or(4096)})
    family.keys.push_back(key);
  return family;
}

} // namespace boa
