//===- families.h - The tables of all families ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_FAMILIES_FAMILIES_H
#define BOA_RUNTIME_WEIGHTS_FAMILIES_FAMILIES_H

#include "runtime/weights/family.h"

#include <string>

namespace boa {

/// What families of Llama's kind share: rms_norm, rotary positions, grouped queries, a gated MLP.
/// Their tables begin with it. Flags say in what their layers differ:
///
///   qkv_bias, out_bias, hidden_bias    biases of the matrices
///   head_norms                         queries and keys are normed by head
Family LlamaLike();
/// What stands in their specs before the layer, and behind it.
std::string LlamaBegin();
std::string LlamaEnd();

Family Bert();
Family Distilbert();
Family Falcon();
Family Gpt2();
Family Granite();
Family Llama();
Family Mistral();
Family Olmo2();
Family Phi3();
Family Qwen2();
Family Qwen3();
Family SeedOss();
Family Starcoder2();

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_FAMILIES_FAMILIES_H
