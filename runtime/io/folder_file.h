//===- folder_file.h - Files of a model's folder ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The user names a folder, and others named the files in it. So a file must stand in the folder
// itself. Only the links of the hub's cache are followed: from
// models--OWNER--NAME/snapshots/REVISION/FILE to ../../blobs/HASH.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_IO_FOLDER_FILE_H
#define BOA_RUNTIME_IO_FOLDER_FILE_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <string>

namespace boa {

/// Refuses a file of a folder that is no regular file there. A link is one only as the hub's
/// cache has it: to a blob of the same model. NotFound if there is none.
absl::Status CheckFolderFile(const std::string &folder, const std::string &name);

/// The whole of such a file, of at most kMostInputBytes.
absl::StatusOr<std::string> ReadFolderFile(const std::string &folder, const std::string &name);

/// The folder of a path: "." where it names none.
std::string FolderOf(const std::string &path);

} // namespace boa

#endif // BOA_RUNTIME_IO_FOLDER_FILE_H
