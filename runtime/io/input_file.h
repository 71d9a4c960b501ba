//===- input_file.h - Files to read -----------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Regular files of the user: texts, tokens, weights. A read is complete, or it fails with an
// error that names the file. No open blocks. A file may be a link, because reading changes
// nothing.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_IO_INPUT_FILE_H
#define BOA_RUNTIME_IO_INPUT_FILE_H

#include "runtime/io/file_system.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace boa {

/// Of UTF-8, at the beginning of a text, and no part of it.
inline constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

/// A regular file to read.
class InputFile {
public:
  static absl::StatusOr<InputFile> Open(const std::string &path);

  const std::string &path() const { return file->path(); }
  /// Bytes at the time of Open.
  int64_t size() const { return bytes; }
  /// Whether so many files are open that others may find no room.
  bool IsOneOfMany() const;
  absl::Status Read(int64_t offset, void *to, int64_t count) const {
    return file->Read(offset, to, count);
  }

private:
  std::unique_ptr<OpenFile> file;
  int64_t bytes = 0;
};

/// A file that stays open, or that each use opens anew: of many files not all can be open.
class KeptFile {
public:
  KeptFile() = default;
  KeptFile(std::string path, InputFile file, bool stays_open)
      : name(std::move(path)), bytes(file.size()) {
    if (stays_open)
      open = std::move(file);
  }

  const std::string &path() const { return name; }
  /// Bytes when it was opened first.
  int64_t size() const { return bytes; }
  /// The file, which `room` holds if it does not stay open. DataLoss if it has another size now.
  absl::StatusOr<const InputFile *> Get(std::optional<InputFile> &room) const;

private:
  std::string name;
  int64_t bytes = 0;
  std::optional<InputFile> open;
};

/// Where a text begins: behind a byte order mark of UTF-8, which is no part of it.
absl::StatusOr<int64_t> BeginOfText(const InputFile &);

/// More than any configuration, tokenizer or index has.
constexpr int64_t kMostInputBytes = int64_t{256} << 20;

/// The whole of a regular file of at most so many bytes.
absl::StatusOr<std::string> ReadInput(const std::string &path);

} // namespace boa

#endif // BOA_RUNTIME_IO_INPUT_FILE_H
