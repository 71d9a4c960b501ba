//===- output_checks.cpp - Files that a run may write ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/output_checks.h"

#include "runtime/data/data.h"
#include "runtime/io/file_system.h"
#include "runtime/io/input_file.h"
#include "runtime/io/new_file.h"
#include "runtime/state/manifest.h"
#include "runtime/state/manifest_files.h"
#include "runtime/state/saved_commit.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sys/stat.h>
#include <system_error>
#include <utility>

namespace boa {
namespace {

/// Absolute, and without the links of those directories that are there.
std::filesystem::path Canonical(const std::string &path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  const std::filesystem::path real = std::filesystem::weakly_canonical(absolute, error);
  return error ? absolute.lexically_normal() : real;
}

/// The identity of a file.
struct Identity {
  explicit Identity(const std::string &path)
      : name(Canonical(ParentOf(path)) / std::filesystem::path(path).filename()) {
    struct stat info;
    if (stat(path.c_str(), &info) != 0)
      return;
    regular = S_ISREG(info.st_mode);
    file = {info.st_dev, info.st_ino};
  }

  bool operator==(const Identity &other) const {
    if (!regular || !other.regular)
      return false;
    return name == other.name || (file && other.file && *file == *other.file);
  }

  std::filesystem::path name;
  std::optional<std::pair<dev_t, ino_t>> file; // if it is there
  bool regular = true;                         // or not there yet
};

constexpr const char *kStateNames[] = {"data", "lock", kManifest, kManifestCopy};

/// Whether it begins like the data file of a state, of this training or another.
bool HoldsState(const std::string &path) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok() || file->size() < kStateBlock)
    return false;
  std::string block(size_t(kStateBlock), '\0');
  return file->Read(0, block.data(), kStateBlock).ok() && ParseHead(block, path).ok();
}

/// Whether it is a file of a state, of this training or another.
bool BelongsToState(const std::string &path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const bool is_of_one =
      IsSealedName(name) ||
      std::find(std::begin(kStateNames), std::end(kStateNames), name) != std::end(kStateNames);
  return HoldsState(path) || (is_of_one && HoldsState(absl::StrCat(ParentOf(path), "/data")));
}

} // namespace

std::vector<FileUse> FilesOfData(const TrainSettings &train) {
  std::vector<FileUse> files;
  for (const std::string &data : {train.data, train.validate})
    for (const std::string &file : DataFiles(data))
      files.push_back({"the training data", file});
  return files;
}

std::vector<FileUse> StateFiles(const std::vector<std::string> &directories) {
  std::vector<FileUse> files;
  for (const std::string &directory : directories)
    for (const char *name : kStateNames)
      for (const std::string &path :
           {absl::StrCat(directory, "/", name), TemporaryName(absl::StrCat(directory, "/", name))})
        files.push_back({"a file of the state", path});
  return files;
}

absl::Status CheckOutputs(const std::vector<FileUse> &outputs, const std::vector<FileUse> &kept) {
  std::vector<std::pair<Identity, const FileUse *>> taken;
  for (const FileUse &file : kept)
    if (!file.path.empty())
      taken.push_back({Identity(file.path), &file});
  for (const FileUse &output : outputs) {
    if (output.path.empty())
      continue;
    const Identity identity(output.path);
    for (const auto &[other, file] : taken)
      if (identity == other)
        return absl::InvalidArgumentError(absl::StrCat(output.use, " would overwrite `",
                                                       output.path, "`, which is ", file->use,
                                                       ": give it a file of its own"));
    if (BelongsToState(output.path))
      return absl::InvalidArgumentError(absl::StrCat(output.use, " would overwrite `", output.path,
                                                     "`, which is of the state of a training: "
                                                     "give it a file of its own"));
    taken.push_back({identity, &output});
  }
  return absl::OkStatus();
}

std::vector<std::string> DescribeForeignPaths(const std::vector<std::string> &directories) {
  const std::filesystem::path home = Canonical(directories[0]);
  std::vector<std::string> notes;
  for (const std::string &directory : directories) {
    const std::filesystem::path path = Canonical(directory);
    if (std::mismatch(home.begin(), home.end(), path.begin(), path.end()).first != home.end())
      notes.push_back(absl::StrCat("note: the machine of the spec has this run write to ",
                                   path.string(), ", outside of ", home.string()));
  }
  return notes;
}

} // namespace boa
