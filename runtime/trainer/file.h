//===- file.h - Files whose errors are values -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file descriptor with an owner, and transfers that are whole or an error that
// names the file. For small and sequential files; the model's own blocks go
// through runtime/io/io.h.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_FILE_H
#define BOA_RUNTIME_TRAINER_FILE_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <string>

namespace boa {

class File {
public:
  /// For reading. Refuses what is not a regular file.
  static absl::StatusOr<File> Open(const std::string &path);
  /// For writing, empty.
  static absl::StatusOr<File> Create(const std::string &path);
  /// For writing, as it is; empty where there was none.
  static absl::StatusOr<File> Extend(const std::string &path);

  File() = default;
  File(File &&) noexcept;
  File &operator=(File &&) noexcept;
  ~File();

  /// Bytes, when it was opened.
  int64_t size() const { return bytes; }
  const std::string &path() const { return name; }
  bool is_open() const { return descriptor >= 0; }

  absl::Status Read(int64_t offset, void *to, int64_t count) const;
  absl::Status Append(const void *from, int64_t count);
  /// What follows the first `size` bytes goes, and Append goes on there. A pipe or
  /// a device has nothing to cut.
  absl::Status Cut(int64_t size);
  /// Whether it is a pipe that nobody reads any more.
  bool reader_left() const { return broken_pipe; }
  /// Syncs, renames to `path` and syncs its directory: after a crash at any
  /// moment `path` names the old file or this one.
  absl::Status Publish(const std::string &path);

private:
  std::string name;
  int descriptor = -1;
  int64_t bytes = 0;
  bool broken_pipe = false;
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_FILE_H
