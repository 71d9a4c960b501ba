//===- folder_files.h - The small files of a model's folder -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_FOLDER_FILES_H
#define BOA_RUNTIME_WEIGHTS_FOLDER_FILES_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <string>

namespace boa {

/// Where an import keeps them: models/llama.hf of models/llama.boa.
std::string FolderBeside(const std::string &spec);

/// Copies those of a folder that belong to a tokenizer, to generation or to its licence. A file
/// that is there already with other contents is refused. Makes the folder if need be. Of a GGUF
/// file, those are made that it stands for (TokenizerOfGguf). `jinja` is the chat template instead
/// of the folder's; "": that one. Returns "", or a note that there is no tokenizer.
absl::StatusOr<std::string> CopySmallFiles(const std::string &from, const std::string &to,
                                           const std::string &jinja = "");

/// Whether an import or export gives this name to a file of its folder.
bool IsNameOfFolder(const std::string &name);

/// Writes a file, complete or not at all. Refuses to replace one with other contents.
absl::Status WriteSmallFile(const std::string &path, const std::string &text);

/// The number of the token [MASK], by tokenizer.json or vocab.txt.
absl::StatusOr<int64_t> FindMaskToken(const std::string &folder);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_FOLDER_FILES_H
