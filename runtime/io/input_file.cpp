//===- input_file.cpp - Files to read -------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/io/input_file.h"

#include "runtime/support/limits.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

namespace boa {

/// A name that leads nowhere is returned unchanged, so that the open fails and names it.
static std::string WithoutLinks(const std::string &path) {
  return SystemFiles().RealPath(path).value_or(path);
}

absl::StatusOr<InputFile> InputFile::Open(const std::string &path) {
  absl::StatusOr<std::unique_ptr<OpenFile>> opened = SystemFiles().Open(WithoutLinks(path), {});
  if (!opened.ok())
    return opened.status();
  absl::StatusOr<int64_t> size = (*opened)->Size();
  if (!size.ok())
    return size.status();
  InputFile input;
  input.file = *std::move(opened);
  input.bytes = *size;
  return input;
}

/// The system gives each file the least number that is free.
bool InputFile::IsOneOfMany() const { return file->descriptor() >= MostOpenFiles() / 2; }

absl::StatusOr<const InputFile *> KeptFile::Get(std::optional<InputFile> &room) const {
  if (open)
    return &*open;
  absl::StatusOr<InputFile> again = InputFile::Open(name);
  if (!again.ok())
    return again.status();
  if (again->size() != bytes)
    return absl::DataLossError(absl::StrCat("`", name, "`: it had ", bytes,
                                            " bytes when the run began, and has ", again->size()));
  room = *std::move(again);
  return &*room;
}

absl::StatusOr<int64_t> BeginOfText(const InputFile &file) {
  char first[kByteOrderMark.size()] = {};
  if (file.size() < int64_t(sizeof first))
    return 0;
  if (absl::Status status = file.Read(0, first, sizeof first); !status.ok())
    return status;
  return absl::string_view(first, sizeof first) == kByteOrderMark ? int64_t(sizeof first) : 0;
}

absl::StatusOr<std::string> ReadInput(const std::string &path) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok())
    return file.status();
  if (file->size() > kMostInputBytes)
    return absl::FailedPreconditionError(absl::StrCat("cannot read ", path, ": it has ",
                                                      file->size(), " bytes, where at most ",
                                                      kMostInputBytes, " are expected"));
  std::string text(size_t(file->size()), '\0');
  absl::Status status = file->Read(0, text.data(), file->size());
  if (!status.ok())
    return status;
  return text;
}

} // namespace boa
