//===- qwen2.cpp - Qwen 2 and 2.5 -----------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

namespace boa {

Family Qwen2() {
  Family family = LlamaLike();
  family.name = "qwen2";
  family.architecture = "Qwen2ForCausalLM";
  family.title = "Qwen 2 and 2.5";
  family.limits = "contexts up to a window that only some layers have";
  family.gguf.architecture = "qwen2";
  family.keys.push_back(Fixed("qkv_bias", true));
  family.keys.push_back(WindowOf(ConfigKey::Window::if_used).Or(4096));
  return family;
}

} // namespace boa
