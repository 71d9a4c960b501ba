//===- file_system.cpp - What all file systems share ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/io/file_system.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <sys/random.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <thread>

namespace boa {

uint64_t FileSystem::Unique() {
  uint64_t bits = 0;
  // std::random_device would do, but its arc4random came with glibc 2.36: a trainer also runs on
  // the 2.35 of Ubuntu 22.04, which many machines with GPUs have.
  if (getentropy(&bits, sizeof bits) != 0)
    std::abort(); // no Linux that we run on lacks it
  return bits;
}

std::string FileSystem::Host() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

void FileSystem::Wait(std::chrono::nanoseconds time) { std::this_thread::sleep_for(time); }

std::string ParentOf(const std::string &path) {
  size_t slash = path.find_last_of('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

static absl::StatusOr<std::string> ReadWhole(absl::StatusOr<std::unique_ptr<OpenFile>> file) {
  if (!file.ok())
    return file.status();
  absl::StatusOr<int64_t> size = (*file)->Size();
  if (!size.ok())
    return size.status();
  if (*size > kMostSmallBytes)
    return absl::FailedPreconditionError(absl::StrFormat(
        "cannot read %s: it has %d bytes, more than Boa writes there", (*file)->path(), *size));
  std::string text(size_t(*size), '\0');
  absl::Status status = (*file)->Read(0, text.data(), *size);
  if (absl::IsNotFound(status)) // the file is there all the same
    return absl::UnknownError(status.message());
  if (!status.ok())
    return status;
  return text;
}

absl::StatusOr<std::string> ReadSmallFile(FileSystem &files, const std::string &path) {
  return ReadWhole(files.Open(path, {}));
}

absl::StatusOr<std::string> ReadSmallFile(Directory &directory, const std::string &name) {
  return ReadWhole(directory.Open(name, {}));
}

/// The permissions of the file; nothing if it is not there. A link or a pipe also has none that a
/// file could keep.
absl::StatusOr<std::optional<int>> PermissionsOf(Directory &directory, const std::string &name) {
  absl::StatusOr<std::unique_ptr<OpenFile>> old = directory.Open(name, {});
  if (old.ok()) {
    absl::StatusOr<int> permissions = (*old)->Permissions();
    return permissions.ok() ? absl::StatusOr<std::optional<int>>(*permissions)
                            : permissions.status();
  }
  if (absl::IsNotFound(old.status()) || absl::IsFailedPrecondition(old.status()) ||
      absl::IsPermissionDenied(old.status()))
    return std::nullopt;
  return old.status();
}

static absl::Status WriteNewFile(Directory &directory, const std::string &name,
                                 absl::string_view contents, std::optional<int> kept, int fresh) {
  absl::StatusOr<std::unique_ptr<OpenFile>> file =
      directory.Open(name, {/*write=*/true, /*create=*/true, /*exclusive=*/true, /*direct=*/false,
                            kept.value_or(fresh), /*exact=*/kept.has_value()});
  if (!file.ok())
    return file.status();
  absl::Status status = (*file)->Write(0, contents.data(), int64_t(contents.size()));
  return status.ok() ? (*file)->Sync() : status;
}

absl::Status PutFile(Directory &directory, const std::string &name, absl::string_view contents,
                     std::optional<int> exact, int permissions) {
  if (int64_t(contents.size()) > kMostSmallBytes)
    return absl::FailedPreconditionError(
        absl::StrFormat("cannot write %s/%s: it would have %d bytes, and at most %d are read again",
                        directory.path(), name, contents.size(), kMostSmallBytes));
  const std::string next = name + ".tmp";
  // Left by a crash, or planted: a link of that name is removed, not followed.
  if (absl::Status status = directory.Unlink(next); !status.ok() && !absl::IsNotFound(status))
    return status;
  absl::Status status = WriteNewFile(directory, next, contents, exact, permissions);
  if (status.ok())
    status = directory.Rename(next, name);
  if (!status.ok())
    directory.Unlink(next).IgnoreError(); // the first error is the one to tell
  return status;
}

absl::Status ReplaceFile(Directory &directory, const std::string &name, absl::string_view contents,
                         int permissions) {
  absl::StatusOr<std::optional<int>> kept = PermissionsOf(directory, name);
  if (!kept.ok())
    return kept.status();
  absl::Status status = PutFile(directory, name, contents, *kept, permissions);
  return status.ok() ? directory.Sync() : status;
}

absl::Status ReplaceFile(FileSystem &files, const std::string &directory, const std::string &name,
                         absl::string_view contents) {
  absl::StatusOr<std::shared_ptr<Directory>> opened = files.OpenDirectory(directory);
  return opened.ok() ? ReplaceFile(**opened, name, contents) : opened.status();
}

} // namespace boa
