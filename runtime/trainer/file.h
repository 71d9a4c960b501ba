//===- file.h - Files outside the state -------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Texts, weights, metrics, traces and compiled trainers. Transfers are whole, or an error that
// names the file. Regular files are opened, replaced and synced by the functions that the state
// uses (runtime/io/file_system.h).
//
// No open blocks. An input may be a link, since reading changes nothing. An output
// that is a link is refused.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_FILE_H
#define BOA_RUNTIME_TRAINER_FILE_H

#include "runtime/io/file_system.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <memory>
#include <string>

namespace boa {

/// The name of the file that is written first where a whole file is replaced.
std::string TemporaryName(const std::string &path);

/// A regular file to read.
class InputFile {
public:
  static absl::StatusOr<InputFile> Open(const std::string &path);

  const std::string &path() const { return file->path(); }
  /// Bytes, when it was opened.
  int64_t size() const { return bytes; }
  absl::Status Read(int64_t offset, void *to, int64_t count) const {
    return file->Read(offset, to, count);
  }

private:
  std::unique_ptr<OpenFile> file;
  int64_t bytes = 0;
};

/// The whole of a regular file of at most 1 GiB.
absl::StatusOr<std::string> ReadInput(const std::string &path);

/// A file that appears under its name complete and durable, or not at all.
class NewFile {
public:
  /// Begins PATH.tmp. A file or link of that name is removed first, not followed. The directory
  /// is found once: it stays the same one if its name leads elsewhere later.
  static absl::StatusOr<NewFile> Create(const std::string &path);

  NewFile() = default;
  NewFile(NewFile &&) noexcept = default;
  NewFile &operator=(NewFile &&) noexcept = default;
  /// Removes PATH.tmp unless it was published.
  ~NewFile();

  absl::Status Append(const void *from, int64_t count);
  /// Everybody may run it.
  absl::Status MakeExecutable();
  /// Syncs, renames to the final name and syncs the directory: after a crash at any
  /// moment that name has the old file or this one. An error where the directory was moved.
  absl::Status Publish();

private:
  /// Fails where another process has replaced PATH.tmp.
  absl::Status CheckName() const;
  /// Fails where the path leads to another directory now.
  absl::Status CheckDirectory() const;

  std::string path, name; // the name is below the directory
  std::shared_ptr<Directory> directory;
  std::unique_ptr<OpenFile> file; // null once it is published
  int64_t end = 0;
};

/// A file, pipe or device that grows. It keeps its contents until Cut.
class OutputFile {
public:
  /// Creates what is not there. /dev/stdout, /dev/stderr and /dev/fd/N are the
  /// descriptors that this process has already.
  static absl::StatusOr<OutputFile> Open(const std::string &path);

  OutputFile() = default;
  OutputFile(OutputFile &&) noexcept;
  OutputFile &operator=(OutputFile &&) noexcept;
  ~OutputFile();

  absl::Status Append(const void *from, int64_t count);
  /// Keeps the first `size` bytes; Append continues there. A stream has nothing to
  /// cut.
  absl::Status Cut(int64_t size);
  /// Whether it is a pipe, a device or an open descriptor: none can be read back.
  bool is_stream() const { return stream; }
  /// Whether it is a pipe that nobody reads any more.
  bool reader_left() const { return broken_pipe; }

private:
  std::string name;
  int descriptor = -1;
  bool stream = false;
  bool broken_pipe = false;
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_FILE_H
