//===- Import.h - Models of Hugging Face, in and out ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_MODELS_IMPORT_H
#define BOA_TOOLS_MODELS_IMPORT_H

#include "runtime/weights/folder_export.h"
#include "tools/Compiler.h"

#include "absl/status/status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace boa {

struct ImportOptions {
  std::string folder, spec;
  std::string state; // empty: the spec alone
  std::optional<int64_t> context;
  std::string data;  // to train on; empty: the spec has a place to fill in
  bool lora = false; // the spec has adapters, and so has the state
};

/// Reads a folder. Writes a spec, and beside it the folder's small files (FolderBeside). With a
/// state, creates that at step 0 with the weights of the folder.
///
/// Everything is checked before anything is written. A spec that is there with another text is
/// kept, and refused. After a kill the same call begins again.
absl::Status importFolder(const ImportOptions &);

/// The models that are imported, one a line: family, class, and what its table has or has not.
std::string listFamilies();

struct ExportOptions {
  CompileRequest compile; // the spec
  std::string state;      // or a commit of it: DIR@STEP, DIR@best
  std::string folder;     // empty or not there yet
  std::string config;     // a folder with config.json and the tokenizer; empty: that of the import
  std::string base;       // adapters: the model that they belong to, for adapter_config.json
  FolderExport weights;
};

/// Writes a folder that transformers opens, config.json last. Parameters have the names that the
/// spec gives them. Where a table says what the model of config.json computes, a spec of another
/// function is refused. Else that folder must have the model's weights: a spec with other tensors,
/// or other shapes, is refused. Adapters are added to the weights; with `weights.adapters` they
/// alone are written, as PEFT has them, adapter_config.json last.
absl::Status exportFolder(const ExportOptions &);

} // namespace boa

#endif // BOA_TOOLS_MODELS_IMPORT_H
