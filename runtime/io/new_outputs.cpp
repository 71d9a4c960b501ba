//===- new_outputs.cpp - What a failed command would leave ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/io/new_outputs.h"

#include <filesystem>
#include <system_error>

namespace boa {

namespace fs = std::filesystem;

static std::set<std::string> FilesIn(const std::string &folder, std::error_code &error) {
  std::set<std::string> files;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    files.insert(it->path().filename().string());
  return files;
}

/// An output that cannot be looked at is not noted, so it stays.
void NewOutputs::AddFolder(const std::string &path, IsOwn is_own) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::none)
    return;
  Output output = {path, is_own, fs::exists(status), {}};
  error.clear();
  if (fs::is_directory(status))
    output.files = FilesIn(path, error);
  if (!error)
    outputs.push_back(std::move(output));
}

NewOutputs::~NewOutputs() {
  std::error_code error;
  for (auto output = outputs.rbegin(); output != outputs.rend(); ++output) {
    if (output->is_own && fs::is_directory(fs::symlink_status(output->path, error)))
      for (const std::string &name : FilesIn(output->path, error)) {
        const fs::path file = fs::path(output->path) / name;
        if (output->is_own(name) && output->files.count(name) == 0 &&
            fs::is_regular_file(fs::symlink_status(file, error)))
          fs::remove(file, error);
      }
    if (!output->was_there)
      fs::remove(output->path, error); // of a folder: if it is empty
  }
}

} // namespace boa
