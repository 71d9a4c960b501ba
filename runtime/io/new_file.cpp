//===- new_file.cpp - Files that appear complete or not at all ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/io/new_file.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace boa {

std::string TemporaryName(const std::string &path) { return path + ".tmp"; }

absl::StatusOr<NewFile> NewFile::Create(const std::string &path) {
  const std::filesystem::path named(path);
  const std::string parent = named.parent_path().string();
  absl::StatusOr<std::shared_ptr<Directory>> directory =
      SystemFiles().OpenDirectory(parent.empty() ? "." : parent);
  if (!directory.ok())
    return directory.status();
  NewFile made;
  made.path = path;
  made.name = named.filename().string();
  made.directory = *std::move(directory);
  const std::string next = TemporaryName(made.name);
  if (absl::Status status = made.directory->Unlink(next); !status.ok() && !absl::IsNotFound(status))
    return status;
  absl::StatusOr<std::unique_ptr<OpenFile>> opened =
      made.directory->Open(next, {/*write=*/true, /*create=*/true, /*exclusive=*/true});
  if (!opened.ok())
    return opened.status();
  made.file = *std::move(opened);
  return made;
}

NewFile::~NewFile() {
  if (file && CheckName().ok())
    directory->Unlink(TemporaryName(name)).IgnoreError(); // the error before it is the one to tell
}

absl::Status NewFile::Append(const void *from, int64_t count) {
  absl::Status status = file->Write(end, from, count);
  end += count;
  return status.ok() ? BeginWriteback() : status;
}

/// Without it, pages pile up to a part of all memory, and Publish waits for all of them, which no
/// signal ends. At most two windows are not on the disk. The kernel tells an error of the disk
/// once: here, and not again by the fsync of Publish.
absl::Status NewFile::BeginWriteback() {
  constexpr int64_t kWindow = int64_t{256} << 20;
  if (end - begun < kWindow)
    return absl::OkStatus();
  auto write_back = [&](int64_t from, int64_t to, unsigned flags) -> absl::Status {
    // A length of 0 would mean all that follows.
    if (from == to || sync_file_range(file->descriptor(), from, to - from, flags) == 0)
      return absl::OkStatus();
    const int error = errno;
    if (error == ESPIPE || error == ENOSYS || error == EINVAL) // there is no such call
      return absl::OkStatus();
    return absl::Status(absl::ErrnoToStatusCode(error),
                        absl::StrCat("cannot write `", path, "`: ", std::strerror(error)));
  };
  absl::Status status = write_back(begun, end, SYNC_FILE_RANGE_WRITE);
  if (status.ok())
    status = write_back(landed, begun,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                            SYNC_FILE_RANGE_WAIT_AFTER);
  landed = std::exchange(begun, end);
  return status;
}

absl::Status NewFile::MakeExecutable() {
  if (fchmod(file->descriptor(), 0755) == 0)
    return absl::OkStatus();
  const int error = errno;
  return absl::Status(absl::ErrnoToStatusCode(error),
                      absl::StrCat("cannot make executable `", path, "`: ", std::strerror(error)));
}

absl::Status NewFile::CheckName() const {
  absl::StatusOr<bool> same = directory->Names(TemporaryName(name), *file);
  if (!same.ok() || *same)
    return same.status();
  return absl::AbortedError(absl::StrCat("cannot write `", path,
                                         "`: another process replaced or removed `", file->path(),
                                         "`; give each run a file of its own"));
}

absl::Status NewFile::CheckDirectory() const {
  absl::StatusOr<bool> same = directory->IsCurrent();
  if (!same.ok() || *same)
    return same.status();
  return absl::AbortedError(
      absl::StrCat("cannot write `", path, "`: its directory was moved or replaced meanwhile"));
}

absl::Status NewFile::Publish() {
  absl::Status status = file->Sync();
  if (status.ok())
    status = CheckName();
  if (status.ok())
    status = CheckDirectory();
  if (status.ok())
    status = directory->Rename(TemporaryName(name), name);
  if (!status.ok())
    return status;
  file.reset();
  status = directory->Sync();
  return status.ok() ? CheckDirectory() : status;
}

absl::Status CheckNewFile(const FileUse &file, bool directory) {
  absl::StatusOr<PathKind> kind = SystemFiles().Kind(file.path);
  if (!kind.ok())
    return kind.status();
  if (*kind != PathKind::nothing && *kind != PathKind::file)
    return absl::FailedPreconditionError(
        absl::StrCat(file.use, ": `", file.path, "` is a ",
                     *kind == PathKind::directory ? "directory" : "link, a pipe or a device",
                     ": name a regular file, or one that is not there yet"));
  const std::string parent = ParentOf(file.path);
  if (directory && access(parent.c_str(), W_OK) != 0)
    return absl::FailedPreconditionError(absl::StrCat(file.use, ": cannot write `", file.path,
                                                      "`: `", parent, "`: ", std::strerror(errno)));
  return absl::OkStatus();
}

} // namespace boa
