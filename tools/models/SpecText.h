//===- SpecText.h - A spec for an imported model ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_MODELS_SPECTEXT_H
#define BOA_TOOLS_MODELS_SPECTEXT_H

#include "runtime/weights/model_config.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

struct SpecOptions {
  std::string source;     // the folder, for a comment
  int64_t context = 0;    // tokens of a sequence
  int64_t maskToken = 0;  // of BERT
  std::string data;       // its sources; empty: a place to fill in
  bool hasEpochs = false; // that data
  bool headAlone = false; // the base model's tensors have no prefix
  bool gammaBeta = false; // BERT's norms have the names of old files
  bool lora = false;      // adapters are trained instead of the model
};

/// The context that an import has unless the user says another.
int64_t defaultContext(const ModelConfig &);

/// Refuses a context that the model cannot have.
absl::Status checkContext(const ModelConfig &, int64_t context);

/// The model, its training and its plan, laid out as `boa fmt` does. Parameters carry the names of
/// their tensors. An error is a fault of the family's template.
absl::StatusOr<std::string> writeSpec(const ModelConfig &, const SpecOptions &);

/// Finds `headAlone` and `gammaBeta` by the names of a folder's tensors.
void readNames(const ModelConfig &, const std::vector<std::string> &tensors, SpecOptions &);

/// Whether the folder of such a model may have a tensor that its architecture does not use: of
/// another head that it was trained with.
bool isUnused(const ModelConfig &, const std::string &tensor);

} // namespace boa

#endif // BOA_TOOLS_MODELS_SPECTEXT_H
