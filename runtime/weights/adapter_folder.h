//===- adapter_folder.h - Adapters for PEFT ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_ADAPTER_FOLDER_H
#define BOA_RUNTIME_WEIGHTS_ADAPTER_FOLDER_H

#include "runtime/abi/program.h"
#include "runtime/weights/model_config.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

struct AdapterFolder {
  std::string state;  // or a commit of it: DIR@STEP
  std::string folder; // empty or not there yet
  std::string base;   // base_model_name_or_path; empty: null
};

struct WrittenAdapters {
  int64_t modules = 0, saved = 0, rank = 0, bytes = 0; // saved: modules that are written whole
};

/// Writes the adapters of a state as PEFT's adapter_model.safetensors, then adapter_config.json.
/// Refuses targets without a name in the model.
absl::StatusOr<WrittenAdapters> ExportAdapterFolder(const Program &, const ModelConfig &,
                                                    const AdapterFolder &, bool bf16);

/// PEFT adapts the modules that are or end in one of target_modules: the shortest such ends that
/// name `targets` and none of `others`, sorted.
std::vector<std::string> FindTargetModules(const std::vector<std::string> &targets,
                                           const std::vector<std::string> &others);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_ADAPTER_FOLDER_H
