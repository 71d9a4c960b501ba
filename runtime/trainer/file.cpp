//===- file.cpp - Files whose errors are values ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/file.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace boa {
namespace {

absl::Status ErrnoStatus(const char *what, const std::string &path) {
  const int error = errno;
  return absl::Status(absl::ErrnoToStatusCode(error),
                      absl::StrCat(what, " `", path, "`: ", std::strerror(error)));
}

} // namespace

absl::StatusOr<File> File::Open(const std::string &path) {
  File file;
  file.name = path;
  file.descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (file.descriptor < 0 || fstat(file.descriptor, &info) != 0)
    return ErrnoStatus("cannot open", path);
  if (!S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(
        absl::StrCat("cannot open `", path, "`: it is not a regular file"));
  file.bytes = info.st_size;
  return file;
}

absl::StatusOr<File> File::Create(const std::string &path) {
  File file;
  file.name = path;
  file.descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file.descriptor < 0)
    return ErrnoStatus("cannot create", path);
  return file;
}

absl::StatusOr<File> File::Extend(const std::string &path) {
  File file;
  file.name = path;
  file.descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  struct stat info;
  if (file.descriptor < 0 || fstat(file.descriptor, &info) != 0)
    return ErrnoStatus("cannot create", path);
  file.bytes = info.st_size;
  return file;
}

File::File(File &&other) noexcept
    : name(std::move(other.name)), descriptor(std::exchange(other.descriptor, -1)),
      bytes(other.bytes), broken_pipe(other.broken_pipe) {}

File &File::operator=(File &&other) noexcept {
  std::swap(name, other.name);
  std::swap(descriptor, other.descriptor);
  std::swap(bytes, other.bytes);
  std::swap(broken_pipe, other.broken_pipe);
  return *this;
}

File::~File() {
  if (descriptor >= 0)
    close(descriptor);
}

absl::Status File::Read(int64_t offset, void *to, int64_t count) const {
  auto *cursor = static_cast<char *>(to);
  while (count > 0) {
    const ssize_t got = pread(descriptor, cursor, count, offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return ErrnoStatus("cannot read", name);
    if (got == 0)
      return absl::DataLossError(
          absl::StrCat("cannot read `", name, "`: it ended at ", offset,
                       ", before its size when it was opened; did something truncate it?"));
    cursor += got;
    offset += got;
    count -= got;
  }
  return absl::OkStatus();
}

absl::Status File::Append(const void *from, int64_t count) {
  auto *cursor = static_cast<const char *>(from);
  while (count > 0) {
    const ssize_t written = write(descriptor, cursor, count);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0) {
      broken_pipe = errno == EPIPE;
      return ErrnoStatus("cannot write", name);
    }
    cursor += written;
    count -= written;
  }
  return absl::OkStatus();
}

absl::Status File::Cut(int64_t size) {
  struct stat info;
  if (fstat(descriptor, &info) != 0)
    return ErrnoStatus("cannot cut", name);
  if (!S_ISREG(info.st_mode))
    return absl::OkStatus();
  if (ftruncate(descriptor, size) != 0 || lseek(descriptor, size, SEEK_SET) < 0)
    return ErrnoStatus("cannot cut", name);
  return absl::OkStatus();
}

absl::Status File::Publish(const std::string &path) {
  if (fsync(descriptor) != 0)
    return ErrnoStatus("cannot sync", name);
  if (rename(name.c_str(), path.c_str()) != 0)
    return ErrnoStatus("cannot rename to", path);
  name = path;
  std::string parent = std::filesystem::path(path).parent_path().string();
  if (parent.empty())
    parent = ".";
  File directory;
  directory.descriptor = open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory.descriptor < 0 || fsync(directory.descriptor) != 0)
    return ErrnoStatus("cannot sync", parent);
  return absl::OkStatus();
}

} // namespace boa
