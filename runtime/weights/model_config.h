//===- model_config.h - The configuration of a model ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_MODEL_CONFIG_H
#define BOA_RUNTIME_WEIGHTS_MODEL_CONFIG_H

#include "runtime/weights/family.h"

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

/// The keys of config.json, for a computation that Boa has.
struct ModelConfig {
  /// Null: no table knows the model. Of `values` there is "tied" alone, if the file has it.
  const Family *family = nullptr;
  std::string architecture; // "LlamaForCausalLM"
  std::string unknown;      // why no table knows it
  /// By the names of the family's table: "width": 576, "tied": true. Beside them are "deviation" of
  /// initial values, "act" and "exact" of the activation, "turns" as arguments of rotary,
  /// and "window_of_all": all layers have the window.
  nlohmann::json values = nlohmann::json::object();
  bool bf16 = false; // as the weights are stored
  /// A line for each kind of dropout, which Boa leaves out. It would change training alone.
  std::vector<std::string> notes;

  /// A whole number; 0: there is none.
  int64_t Number(const char *value) const { return values.value(value, int64_t{0}); }
  bool Is(const char *value) const { return values.value(value, false); }
  /// The window of attention if only some layers have it, which a spec cannot say; 0: none.
  int64_t window_of_some() const { return Is("window_of_all") ? 0 : Number("window"); }
};

/// Reads FOLDER/config.json, of transformers 4 or 5, or the keys of a GGUF file, by the table of
/// its family. Refuses, by name, a model that has no table, and each key that the table does not
/// know: it might change the computation. All refusals come at once.
absl::StatusOr<ModelConfig> ReadModelConfig(const std::string &folder);

/// The same of any model: without a family if no table has it. Refuses then what the language
/// lacks, and quantized weights, which no export writes.
absl::StatusOr<ModelConfig> ReadAnyConfig(const std::string &folder);

/// The text of FOLDER/config.json, or that of a GGUF file (ConfigOfGguf).
absl::StatusOr<std::string> ModelConfigText(const std::string &folder);
/// The same for an export with weights of that type.
absl::StatusOr<std::string> ModelConfigWithType(const std::string &folder, bool bf16);

/// A number as specs have it: as short as it can be, and as exact.
std::string ShortNumber(double value);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_MODEL_CONFIG_H
