//===- folder_file.cpp - Files of a model's folder ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/io/folder_file.h"

#include "runtime/io/input_file.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sys/stat.h>

namespace boa {
namespace {

namespace fs = std::filesystem;

/// A link of the hub's cache. The folder may be one inside of a snapshot, and may be reached by
/// links of its own.
bool IsCacheLink(const std::string &path) {
  std::error_code error;
  const fs::path folder = fs::canonical(FolderOf(path), error);
  const fs::path target = error ? fs::path() : fs::read_symlink(path, error);
  if (error || target.empty())
    return false;
  // Only ways up, then blobs/HASH: what the text says is what the system does.
  const fs::path blob = (folder / target).lexically_normal(), blobs = blob.parent_path(),
                 model = blobs.parent_path();
  auto part = target.begin();
  while (part != target.end() && *part == "..")
    ++part;
  const std::string hash = blob.filename().string();
  struct stat info;
  if (std::distance(part, target.end()) != 2 || blobs.filename() != "blobs" ||
      !absl::StartsWith(model.filename().string(), "models--") || hash.empty() ||
      !std::all_of(hash.begin(), hash.end(), [](unsigned char c) { return isxdigit(c); }) ||
      lstat(blob.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
    return false;
  const fs::path inside = folder.lexically_relative(model / "snapshots");
  return !inside.empty() && inside != "." && *inside.begin() != "..";
}

/// A name that stays in its folder.
bool IsPlain(const std::string &name) {
  return !name.empty() && name.find_first_of("/\\") == std::string::npos && name[0] != '.' &&
         name.find('\0') == std::string::npos;
}

} // namespace

absl::Status CheckFolderFile(const std::string &folder, const std::string &name) {
  const std::string path = absl::StrCat(folder, "/", name);
  if (!IsPlain(name))
    return absl::InvalidArgumentError(absl::StrCat("`", folder, "`: the file name `", name,
                                                   "` leaves the folder or is hidden: expected "
                                                   "a plain name"));
  struct stat info;
  if (lstat(path.c_str(), &info) != 0)
    return errno == ENOENT || errno == ENOTDIR // `folder` is a file
               ? absl::NotFoundError(absl::StrCat("`", folder, "` has no file `", name, "`"))
               : absl::ErrnoToStatus(errno, absl::StrCat("cannot open `", path, "`"));
  if (S_ISLNK(info.st_mode) && !IsCacheLink(path))
    return absl::InvalidArgumentError(absl::StrCat(
        "`", path, "` is a link out of its folder: copy the file that it names to this place"));
  if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("`", path, "` is no regular file"));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFolderFile(const std::string &folder, const std::string &name) {
  if (absl::Status status = CheckFolderFile(folder, name); !status.ok())
    return status;
  return ReadInput(absl::StrCat(folder, "/", name));
}

std::string FolderOf(const std::string &path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

} // namespace boa
