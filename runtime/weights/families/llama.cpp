//===- llama.cpp - Llama --------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

namespace boa {

Family Llama() {
  Family family = LlamaLike();
  family.name = "llama";
  family.architecture = "LlamaForCausalLM";
  family.title = "Llama 2 and 3, SmolLM2";
  family.limits = "rotary positions default, linear and llama3";
  family.gguf.architecture = "llama";
  family.gguf.paired = true;
  for (const ConfigKey &key :
       {Flag("attention_bias", "qkv_bias"), Flag("attention_bias", "out_bias"),
        Flag("mlp_bias", "hidden_bias"), WindowOf(ConfigKey::Window::none)})
    family.keys.push_back(key);
  return family;
}

} // namespace boa
