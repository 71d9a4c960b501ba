//===- new_file.h - Files that appear complete or not at all ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Regular files outside of the state. No open blocks, and no link is followed.
//
// Ownership: a NewFile owns its descriptors. Threads: one at a time.
// Errors: each names the file.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_IO_NEW_FILE_H
#define BOA_RUNTIME_IO_NEW_FILE_H

#include "runtime/io/file_system.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <memory>
#include <string>

namespace boa {

/// The name of the file that replaces this one once it is complete.
std::string TemporaryName(const std::string &path);

/// A file that appears under its name complete and durable, or not at all.
class NewFile {
public:
  /// Begins PATH.tmp. Removes a file or link of that name, and does not follow it. The directory
  /// is looked up once, so it stays the same if its name leads elsewhere later.
  static absl::StatusOr<NewFile> Create(const std::string &path);

  NewFile() = default;
  NewFile(NewFile &&) noexcept = default;
  NewFile &operator=(NewFile &&) noexcept = default;
  /// Removes PATH.tmp unless it was published.
  ~NewFile();

  absl::Status Append(const void *from, int64_t count);
  /// Replaces bytes that were appended.
  absl::Status Rewrite(int64_t offset, const void *from, int64_t count) {
    return file->Write(offset, from, count);
  }
  /// Lets everybody run the file.
  absl::Status MakeExecutable();
  /// Syncs, renames to the final name and syncs the directory. After a crash, that name has the old
  /// file or this one. Fails if the directory was moved.
  absl::Status Publish();

private:
  absl::Status BeginWriteback();
  /// Fails if another process has replaced PATH.tmp.
  absl::Status CheckName() const;
  /// Fails if the path leads to another directory now.
  absl::Status CheckDirectory() const;

  std::string path, name; // the name is below the directory
  std::shared_ptr<Directory> directory;
  std::unique_ptr<OpenFile> file; // null once it is published
  int64_t end = 0;
  int64_t begun = 0, landed = 0; // bytes whose way to the disk has begun, or is over
};

/// A file and its use: "--trace", "the training data". An empty path names none.
struct FileUse {
  std::string use, path;
};

/// Refuses the name of a directory, a link, a pipe or a device. With `directory`: also a name in a
/// directory that cannot be written.
absl::Status CheckNewFile(const FileUse &, bool directory);

} // namespace boa

#endif // BOA_RUNTIME_IO_NEW_FILE_H
