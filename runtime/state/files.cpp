//===- files.cpp - Data and scratch files ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Their names, the space that they reserve, and what makes one unfit for use.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/impl.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cerrno>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <sys/statvfs.h>

namespace boa {

absl::Status Unwritable(const absl::Status &status) {
  return absl::Status(status.code(),
                      absl::StrCat(status.message(),
                                   "; name another directory with --state or in the machine's "
                                   "ssd, or permit writing to this one"));
}

void StateStore::Impl::NameFiles() {
  for (size_t path = 0; path < directories.size(); ++path)
    for (const char *kind : {"data", "scratch"}) {
      IoFile file;
      file.path = absl::StrCat(directories[path], "/", kind, ".", path);
      file.link = int32_t(path);
      files.push_back(file);
    }
}

absl::Status StateStore::Impl::CheckUnused() const {
  if (PathExists(ManifestPath(directories[0])))
    return absl::AlreadyExistsError(
        absl::StrFormat("%s holds a training state already: resume it, or "
                        "choose another directory",
                        directories[0]));
  for (size_t file = 0; file < files.size(); ++file)
    if (PathExists(files[file].path) && !locks[file / 2].was_ours)
      return absl::AlreadyExistsError(
          absl::StrFormat("%s exists and is not of a trainer: move it away, or choose another "
                          "directory",
                          files[file].path));
  return absl::OkStatus();
}

/// Checks each file system for all the paths that lie on it.
absl::Status StateStore::Impl::CheckSpace() const {
  struct Need {
    int64_t needed = 0, free = 0;
    std::string directory;
  };
  std::map<dev_t, Need> needs;
  for (size_t path = 0; path < directories.size(); ++path) {
    struct stat info;
    struct statvfs space;
    if (stat(directories[path].c_str(), &info) != 0 ||
        statvfs(directories[path].c_str(), &space) != 0)
      return ErrnoError("query the free space of", directories[path]);
    Need &need = needs[info.st_dev];
    if (need.directory.empty())
      need.directory = directories[path];
    need.needed += file_bytes[DataFile(path)] + file_bytes[ScratchFile(path)];
    need.free = int64_t(space.f_bavail) * int64_t(space.f_frsize);
  }
  for (const auto &[device, need] : needs)
    if (need.needed > need.free)
      return absl::ResourceExhaustedError(
          absl::StrFormat("the disk of %s is too full: the state needs %d MiB "
                          "and %d MiB are free; "
                          "free %d MiB or name another directory",
                          need.directory, need.needed >> 20, need.free >> 20,
                          ((need.needed - need.free) >> 20) + 1));
  return absl::OkStatus();
}

/// Makes a file of its full size, with its space reserved, and opens it.
absl::Status StateStore::Impl::MakeFile(size_t index) {
  IoFile &file = files[index];
  int64_t bytes = file_bytes[index];
  Descriptor made(OpenDirect(file.path, O_RDWR | O_CREAT));
  if (made.get() < 0)
    return Unwritable(ErrnoError("create", file.path));
  file.fd = made.get();
  descriptors.push_back(std::move(made));
  int result = 0;
  do
    result = bytes > 0 ? fallocate(file.fd, 0, 0, bytes) : 0;
  while (result != 0 && errno == EINTR);
  if (result != 0 && errno == ENOSPC)
    return absl::ResourceExhaustedError(
        absl::StrFormat("the disk of %s is too full to reserve %d MiB: free some "
                        "space or name another directory",
                        file.path, (bytes >> 20) + 1));
  if (result != 0 && errno != EOPNOTSUPP)
    return ErrnoError("reserve the space of", file.path);
  if (ftruncate(file.fd, bytes) != 0)
    return ErrnoError("resize", file.path);
  return absl::OkStatus();
}

absl::Status StateStore::Impl::OpenFile(size_t index) {
  IoFile &file = files[index];
  Descriptor opened(OpenDirect(file.path, O_RDWR));
  if (opened.get() < 0 && errno == ENOENT)
    return absl::NotFoundError(absl::StrFormat("%s is missing: the state is incomplete without it; "
                                               "restore it, or give "
                                               "the paths in the order in which the state was made",
                                               file.path));
  if (opened.get() < 0)
    return ErrnoError("open", file.path);
  struct stat info;
  if (fstat(opened.get(), &info) != 0)
    return ErrnoError("query", file.path);
  if (info.st_size < file_bytes[index])
    return absl::DataLossError(
        absl::StrFormat("%s is truncated: it has %d bytes of %d; restore it from a copy", file.path,
                        int64_t(info.st_size), file_bytes[index]));
  file.fd = opened.get();
  descriptors.push_back(std::move(opened));
  return absl::OkStatus();
}

} // namespace boa
