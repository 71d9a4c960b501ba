//===- folder_export.h - Weights as a folder of Hugging Face ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_FOLDER_EXPORT_H
#define BOA_RUNTIME_WEIGHTS_FOLDER_EXPORT_H

#include "runtime/abi/program.h"
#include "runtime/io/file_system.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <string>

namespace boa {

struct FolderExport {
  std::string rest;                    // what no parameter holds: kRestFile, or a whole model
  bool rows_of_rest = false;           // of `rest` only rows beside parameters, no tensors
  bool bf16 = false;                   // or f32
  bool adapters = false;               // alone: they alone are counted
  int64_t shard_bytes = 5'000'000'000; // of tensors in a file; a larger tensor has its own
};

/// Refuses a folder for an export that is there and not empty, or whose disk is too full.
absl::Status CheckExportFolder(const Program &, const std::string &folder, const FolderExport &);

/// Writes the master weights of a commit, `from` as of --from, into the folder, which is made if
/// need be. Adapters are added to their weights (MergedWeights). Tensors have the names that the
/// spec gives parameters, in the order of the program. FailedPrecondition if a parameter has none,
/// or two have the same. One file is model.safetensors; several have an index, which is written
/// after them. Each file appears complete or not at all. Memory: one chunk of each role. Returns
/// the bytes of the tensors.
absl::StatusOr<int64_t> ExportFolder(FileSystem &, const Program &, const std::string &from,
                                     const std::string &folder, const FolderExport &);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_FOLDER_EXPORT_H
