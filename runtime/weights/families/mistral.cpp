//===- mistral.cpp - Mistral ----------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

namespace boa {

Family Mistral() {
  Family family = LlamaLike();
  family.name = "mistral";
  family.architecture = "MistralForCausalLM";
  family.title = "Mistral";
  family.limits = "with its window";
  family.keys.push_back(WindowOf(ConfigKey::Window::always).Or(4096));
  return family;
}

} // namespace boa
