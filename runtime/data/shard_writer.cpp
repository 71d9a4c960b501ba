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
                                                bool with_marks) {
  ShardWriter writer;
  absl::StatusOr<NewFile> file = NewFile::Create(path);
  if (!file.ok())
    return file.status();
  writer.path = path;
  writer.file = *std::move(file);
  writer.wide = vocabulary > 65536;
  if (with_marks)
    for (auto [kind, to] :
         {std::pair(Mark::target, &writer.targeted), std::pair(Mark::begin, &writer.begun)}) {
      if (MarksBeside(path, kind).empty())
        return absl::InvalidArgumentError(
            absl::StrCat("`", path, "`: the name of tokens with marks ends in .bin"));
      absl::StatusOr<TokenMarksWriter> marks =
          TokenMarksWriter::Create(MarksBeside(path, kind), kind);
      if (!marks.ok())
        return marks.status();
      *to = *std::move(marks);
    }
  const std::vector<int32_t> header(kHeaderBytes / 4);
  if (absl::Status status = writer.file.Append(header.data(), kHeaderBytes); !status.ok())
    return status;
  return writer;
}

absl::Status ShardWriter::Append(const std::vector<int32_t> &tokens,
                                 const std::vector<bool> &targets,
                                 const std::vector<bool> &begins) {
  count += static_cast<int64_t>(tokens.size());
  if (count > kMostShardTokens)
    return absl::InvalidArgumentError(absl::StrCat("`", path, "`: a shard has at most ",
                                                   kMostShardTokens,
                                                   " tokens; give the texts to several shards"));
  for (auto [marks, of] : {std::pair(&targeted, &targets), std::pair(&begun, &begins)})
    if (*marks)
      if (absl::Status status = (*marks)->Append(*of); !status.ok())
        return status;
  if (wide)
    return file.Append(tokens.data(), static_cast<int64_t>(tokens.size()) * 4);
  const std::vector<uint16_t> narrow(tokens.begin(), tokens.end());
  return file.Append(narrow.data(), static_cast<int64_t>(narrow.size()) * 2);
}

/// A file of tokens and targets of others must never stand side by side. So the old tokens go
/// first, then the targets change, and then the new tokens come.
/// Marks of earlier tokens never stand beside other ones.
absl::Status ShardWriter::ReplaceMarks() {
  for (auto [kind, marks] : {std::pair(Mark::target, &targeted), std::pair(Mark::begin, &begun)}) {
    const std::string beside = MarksBeside(path, kind);
    absl::StatusOr<PathKind> there = PathKind::nothing;
    if (!beside.empty())
      there = SystemFiles().Kind(beside);
    if (!there.ok())
      return there.status();
    if (!*marks && *there == PathKind::nothing)
      continue;
    if (absl::Status status = SystemFiles().Unlink(path); !status.ok() && !absl::IsNotFound(status))
      return status;
    if (absl::Status status = *marks ? (*marks)->Finish() : SystemFiles().Unlink(beside);
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status ShardWriter::Finish() {
  const int32_t header[] = {wide ? 20240801 : 20240520, wide ? 7 : 1, static_cast<int32_t>(count)};
  absl::Status status = file.Rewrite(0, header, sizeof(header));
  if (status.ok())
    status = ReplaceMarks();
  return status.ok() ? file.Publish() : status;
}

} // namespace boa
