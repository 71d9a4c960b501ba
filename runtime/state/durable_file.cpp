//===- durable_file.cpp - Files that survive a crash ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/durable_file.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>

namespace boa {

absl::Status ErrnoError(absl::string_view what, const std::string &path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", path));
}

int OpenRetrying(const std::string &path, int flags) {
  int fd;
  do
    fd = open(path.c_str(), flags | O_CLOEXEC, 0644);
  while (fd < 0 && errno == EINTR);
  return fd;
}

int OpenDirect(const std::string &path, int flags) {
  int fd = OpenRetrying(path, flags | O_DIRECT);
  return fd < 0 && errno == EINVAL ? OpenRetrying(path, flags) : fd;
}

bool PathExists(const std::string &path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

absl::StatusOr<std::string> ReadSmallFile(const std::string &path) {
  Descriptor file(OpenRetrying(path, O_RDONLY));
  if (file.get() < 0)
    return ErrnoError("open", path);
  std::string text;
  char buffer[65536];
  while (true) {
    ssize_t count = read(file.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return ErrnoError("read", path);
    if (count == 0)
      return text;
    text.append(buffer, size_t(count));
  }
}

absl::Status WriteAll(int fd, absl::string_view text, const std::string &path) {
  while (!text.empty()) {
    ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return ErrnoError("write", path);
    text.remove_prefix(size_t(count));
  }
  return absl::OkStatus();
}

absl::Status SyncDirectory(const std::string &directory) {
  Descriptor file(OpenRetrying(directory, O_RDONLY | O_DIRECTORY));
  if (file.get() < 0)
    return ErrnoError("open", directory);
  if (fsync(file.get()) != 0)
    return ErrnoError("sync", directory);
  return absl::OkStatus();
}

absl::Status ReplaceFile(const std::string &directory, const std::string &path,
                         absl::string_view text) {
  std::string next = path + ".tmp";
  Descriptor file(OpenRetrying(next, O_WRONLY | O_CREAT | O_TRUNC));
  if (file.get() < 0)
    return ErrnoError("create", next);
  if (absl::Status status = WriteAll(file.get(), text, next); !status.ok())
    return status;
  if (fsync(file.get()) != 0)
    return ErrnoError("sync", next);
  if (rename(next.c_str(), path.c_str()) != 0)
    return ErrnoError("rename to", path);
  return SyncDirectory(directory);
}

static std::string ParentOf(const std::string &path) {
  size_t slash = path.find_last_of('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status MakeDirectories(const std::string &path, Undo &undo) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0755) == 0) {
      undo.AddDirectory(part);
      if (absl::Status status = SyncDirectory(ParentOf(part)); !status.ok())
        return status;
    } else if (errno != EEXIST) {
      return ErrnoError("make directory", part);
    }
    if (end == std::string::npos)
      return absl::OkStatus();
  }
}

} // namespace boa
