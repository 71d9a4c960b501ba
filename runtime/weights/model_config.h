//===- model_config.h - The configuration of a model ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_MODEL_CONFIG_H
#define BOA_RUNTIME_WEIGHTS_MODEL_CONFIG_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

enum class Family { gpt2, llama, mistral, qwen2, qwen3, bert };

/// How frequencies of rotary positions are stretched to longer texts.
struct RopeScaling {
  enum class Kind { none, linear, llama3 } kind = Kind::none;
  double factor = 1, low = 1, high = 1;
  int64_t context = 0; // that the model was trained with before

  bool operator==(const RopeScaling &other) const {
    return kind == other.kind && factor == other.factor && low == other.low && high == other.high &&
           context == other.context;
  }
};

/// The keys of config.json, for a computation that Boa has.
struct ModelConfig {
  Family family = Family::llama;
  std::string architecture; // "LlamaForCausalLM"
  int64_t vocab = 0, width = 0, depth = 0, hidden = 0;
  int64_t heads = 0, kv_heads = 0, head = 0; // head: the width of each
  int64_t positions = 0;                     // the longest text
  int64_t window = 0;                        // of attention; 0: all of the text
  bool window_of_all = false;                // it is that of all layers
  int64_t types = 0;                         // of BERT's tokens
  double eps = 0, deviation = 0;             // of norms; of initial values
  double rope_base = 0;
  RopeScaling scaling;
  bool exact_gelu = false;
  bool qkv_bias = false, out_bias = false, hidden_bias = false;
  bool tied = false; // the head is the embedding
  bool bf16 = false; // as the weights are stored
  /// A line for each kind of dropout, which Boa leaves out. It would change training alone.
  std::vector<std::string> notes;
};

/// The name of the model in a spec: "llama".
const char *FamilyName(Family);

/// Reads FOLDER/config.json, of transformers 4 or 5, or the keys of a GGUF file. Refuses,
/// by name, an architecture that Boa does not have, and each key that it does not know: it might
/// change the computation.
absl::StatusOr<ModelConfig> ReadModelConfig(const std::string &folder);

/// The text of FOLDER/config.json, or that of a GGUF file (ConfigOfGguf).
absl::StatusOr<std::string> ModelConfigText(const std::string &folder);
/// The same for weights of another type.
absl::StatusOr<std::string> ModelConfigWithType(const std::string &folder, bool bf16);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_MODEL_CONFIG_H
