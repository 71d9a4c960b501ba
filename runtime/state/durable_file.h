//===- durable_file.h - Files that survive a crash --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Descriptors, whole files and directories whose changes are on disk when a call
// returns.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DURABLE_FILE_H
#define BOA_RUNTIME_DURABLE_FILE_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace boa {

/// A descriptor that is closed with its owner.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(Descriptor &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
  int get() const { return fd; }

private:
  int fd = -1;
};

/// The status of errno: "cannot WHAT PATH: ...".
absl::Status ErrnoError(absl::string_view what, const std::string &path);

/// A descriptor, or -1 with errno.
int OpenRetrying(const std::string &path, int flags);
/// With O_DIRECT where the file system has it.
int OpenDirect(const std::string &path, int flags);

bool PathExists(const std::string &path);
absl::StatusOr<std::string> ReadSmallFile(const std::string &path);
absl::Status WriteAll(int fd, absl::string_view text, const std::string &path);
absl::Status SyncDirectory(const std::string &directory);

/// Replaces a file so that after a crash either the old or the new one is
/// there.
absl::Status ReplaceFile(const std::string &directory, const std::string &path,
                         absl::string_view text);

/// What was made so far; removed again unless it is committed.
class Undo {
public:
  ~Undo() {
    for (auto path = files.rbegin(); path != files.rend(); ++path)
      unlink(path->c_str());
    for (auto path = directories.rbegin(); path != directories.rend(); ++path)
      rmdir(path->c_str());
  }
  void AddFile(std::string path) { files.push_back(std::move(path)); }
  void AddDirectory(std::string path) { directories.push_back(std::move(path)); }
  void Commit() {
    files.clear();
    directories.clear();
  }

private:
  std::vector<std::string> files, directories;
};

/// With all their parents; those that are new are added to `undo`.
absl::Status MakeDirectories(const std::string &path, Undo &undo);

} // namespace boa

#endif // BOA_RUNTIME_DURABLE_FILE_H
