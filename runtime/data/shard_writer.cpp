//===- shard_writer.cpp - Writes a file of tokens -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/shard_writer.h"

#include "absl/strings/str_cat.h"

#include <utility>

namespace boa {

static constexpr int64_t kHeaderBytes = 256 * 4;

absl::StatusOr<ShardWriter> ShardWriter::Create(const std::string &path, int64_t vocabulary,
                                                bool with_targets) {
  ShardWriter writer;
  absl::StatusOr<NewFile> file = NewFile::Create(path);
  if (!file.ok())
    return file.status();
  writer.path = path;
  writer.file = *std::move(file);
  writer.wide = vocabulary > 65536;
  if (with_targets) {
    if (TargetsBeside(path).empty())
      return absl::InvalidArgumentError(
          absl::StrCat("`", path, "`: the name of tokens with targets ends in .bin"));
    absl::StatusOr<TargetsWriter> marks = TargetsWriter::Create(TargetsBeside(path));
    if (!marks.ok())
      return marks.status();
    writer.marks = *std::move(marks);
  }
  const std::vector<int32_t> header(kHeaderBytes / 4);
  if (absl::Status status = writer.file.Append(header.data(), kHeaderBytes); !status.ok())
    return status;
  return writer;
}

absl::Status ShardWriter::Append(const std::vector<int32_t> &tokens,
                                 const std::vector<bool> &targets) {
  count += static_cast<int64_t>(tokens.size());
  if (count > kMostShardTokens)
    return absl::InvalidArgumentError(absl::StrCat("`", path, "`: a shard has at most ",
                                                   kMostShardTokens,
                                                   " tokens; give the texts to several shards"));
  if (marks)
    if (absl::Status status = marks->Append(targets); !status.ok())
      return status;
  if (wide)
    return file.Append(tokens.data(), static_cast<int64_t>(tokens.size()) * 4);
  const std::vector<uint16_t> narrow(tokens.begin(), tokens.end());
  return file.Append(narrow.data(), static_cast<int64_t>(narrow.size()) * 2);
}

/// A file of tokens and targets of others must never stand side by side. So the old tokens go
/// first, then the targets change, and then the new tokens come.
absl::Status ShardWriter::ReplaceTargets() {
  const std::string beside = TargetsBeside(path);
  absl::StatusOr<PathKind> kind = PathKind::nothing;
  if (!beside.empty())
    kind = SystemFiles().Kind(beside);
  if (!kind.ok())
    return kind.status();
  if (!marks && *kind == PathKind::nothing)
    return absl::OkStatus();
  if (absl::Status status = SystemFiles().Unlink(path); !status.ok() && !absl::IsNotFound(status))
    return status;
  if (marks)
    return marks->Finish();
  return SystemFiles().Unlink(beside);
}

absl::Status ShardWriter::Finish() {
  const int32_t header[] = {wide ? 20240801 : 20240520, wide ? 7 : 1, static_cast<int32_t>(count)};
  absl::Status status = file.Rewrite(0, header, sizeof(header));
  if (status.ok())
    status = ReplaceTargets();
  return status.ok() ? file.Publish() : status;
}

} // namespace boa
