//===- output_file.cpp - Files and pipes that grow ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/io/output_file.h"

#include "runtime/io/hint.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace boa {
namespace {

absl::Status ErrnoStatus(const char *what, const std::string &path) {
  const int error = errno;
  const char *why = error == ELOOP   ? "it is a symbolic link; name the file itself"
                    : error == ENXIO ? "it is a pipe that nobody reads; start its reader first"
                                     : std::strerror(error);
  return absl::Status(absl::ErrnoToStatusCode(error),
                      absl::StrCat(what, " `", path, "`: ", why, HintOf(error)));
}

/// The open descriptor that a name stands for; -1: it is the name of a file. Its own
/// descriptor is used, since these names are links.
int DescriptorOf(absl::string_view path) {
  if (path == "/dev/stdout")
    return STDOUT_FILENO;
  if (path == "/dev/stderr")
    return STDERR_FILENO;
  int descriptor = -1;
  if (!absl::ConsumePrefix(&path, "/dev/fd/") && !absl::ConsumePrefix(&path, "/proc/self/fd/"))
    return -1;
  return absl::SimpleAtoi(path, &descriptor) ? descriptor : -1;
}

/// A descriptor of our own for one that this process has; -1 and errno.
int Duplicate(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0)
    return -1;
  if ((flags & O_ACCMODE) == O_RDONLY) {
    errno = EBADF;
    return -1;
  }
  return fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
}

} // namespace

absl::StatusOr<OutputFile> OutputFile::Open(const std::string &path) {
  OutputFile file;
  file.name = path;
  const int named = DescriptorOf(path);
  // Without O_NONBLOCK the open of a pipe would wait for its reader.
  file.descriptor =
      named >= 0 ? Duplicate(named)
                 : open(path.c_str(),
                        O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0666);
  struct stat info;
  if (file.descriptor < 0 || fstat(file.descriptor, &info) != 0)
    return ErrnoStatus("cannot create", path);
  file.stream = named >= 0 || !S_ISREG(info.st_mode);
  if (named < 0) {
    const int flags = fcntl(file.descriptor, F_GETFL);
    if (flags < 0 || fcntl(file.descriptor, F_SETFL, flags & ~O_NONBLOCK) != 0)
      return ErrnoStatus("cannot create", path);
  }
  return file;
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : name(std::move(other.name)), descriptor(std::exchange(other.descriptor, -1)),
      stream(other.stream), broken_pipe(other.broken_pipe) {}

OutputFile &OutputFile::operator=(OutputFile &&other) noexcept {
  std::swap(name, other.name);
  std::swap(descriptor, other.descriptor);
  std::swap(stream, other.stream);
  std::swap(broken_pipe, other.broken_pipe);
  return *this;
}

OutputFile::~OutputFile() {
  if (descriptor >= 0)
    close(descriptor);
}

absl::Status OutputFile::Append(const void *from, int64_t count) {
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

absl::Status OutputFile::Cut(int64_t size) {
  if (stream)
    return absl::OkStatus();
  if (ftruncate(descriptor, size) != 0 || lseek(descriptor, size, SEEK_SET) < 0)
    return ErrnoStatus("cannot cut", name);
  return absl::OkStatus();
}

absl::Status OutputFile::AddToEnd() {
  const int flags = stream ? 0 : fcntl(descriptor, F_GETFL);
  if (flags < 0 || (!stream && fcntl(descriptor, F_SETFL, flags | O_APPEND) != 0))
    return ErrnoStatus("cannot add to", name);
  return absl::OkStatus();
}

} // namespace boa
