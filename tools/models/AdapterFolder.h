//===- AdapterFolder.h - Adapters for PEFT ----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_MODELS_ADAPTERFOLDER_H
#define BOA_TOOLS_MODELS_ADAPTERFOLDER_H

#include "runtime/abi/program.h"
#include "tools/models/Config.h"

#include "absl/status/status.h"

#include <string>
#include <vector>

namespace boa {

struct AdapterFolder {
  std::string state;  // or DIR@STEP
  std::string folder; // empty or not there yet
  std::string base;   // base_model_name_or_path; empty: null
};

/// Writes the adapters of a state as PEFT's adapter_model.safetensors, then adapter_config.json.
/// Refuses targets without a name in the model.
absl::Status exportAdapters(const Program &, const ModelConfig &, const AdapterFolder &, bool bf16);

/// PEFT adapts the modules that are or end in one of target_modules: the shortest such ends that
/// name `targets` and none of `others`, sorted.
std::vector<std::string> findTargetModules(const std::vector<std::string> &targets,
                                           const std::vector<std::string> &others);

} // namespace boa

#endif // BOA_TOOLS_MODELS_ADAPTERFOLDER_H
