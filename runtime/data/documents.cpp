//===- documents.cpp - The index of a Megatron file -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/documents.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace boa {
namespace {

constexpr char kIndexMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr int64_t kIndexHeadBytes = sizeof kIndexMagic + 8 + 1 + 8 + 8;
constexpr int64_t kNumbersAtOnce = 1 << 16; // numbers that are read at once

template <typename Number>
absl::Status ReadNumbers(const InputFile &file, int64_t at, int64_t first, int64_t count,
                         std::vector<Number> &numbers) {
  numbers.resize(size_t(count));
  return file.Read(at + first * int64_t(sizeof(Number)), numbers.data(),
                   count * int64_t(sizeof(Number)));
}

} // namespace

absl::Status Documents::Damaged(const std::string &why) const {
  return absl::DataLossError(absl::StrCat("`", kept.path(), "`: ", why));
}

absl::StatusOr<Documents> Documents::Open(const std::string &path, bool stays_open) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok())
    return file.status();
  Documents documents;
  documents.kept = KeptFile(path, *std::move(file), stays_open);
  std::optional<InputFile> room;
  absl::StatusOr<const InputFile *> index = documents.kept.Get(room);
  absl::Status status = index.ok() ? documents.Check(**index) : index.status();
  if (!status.ok())
    return status;
  return documents;
}

absl::Status Documents::Check(const InputFile &index) {
  char head[kIndexHeadBytes];
  if (index.size() < kIndexHeadBytes)
    return Damaged("it is too short for the head of a Megatron index");
  if (absl::Status status = index.Read(0, head, sizeof head); !status.ok())
    return status;
  uint64_t version, counts[2];
  std::memcpy(&version, head + sizeof kIndexMagic, 8);
  std::memcpy(counts, head + sizeof kIndexMagic + 9, 16);
  const auto type = static_cast<uint8_t>(head[sizeof kIndexMagic + 8]);
  if (std::memcmp(head, kIndexMagic, sizeof kIndexMagic) != 0 || version != 1)
    return Damaged("it is not a Megatron index of version 1");
  const std::optional<TokenType> known = TokenType::OfIndex(type);
  if (!known)
    return Damaged(absl::StrCat("its tokens are of type ", type,
                                type == 6 || type == 7 ? ", which has fractions" : "",
                                ": expected whole numbers, which are 1 to 5 and 8 to 10"));
  form = *known;
  const uint64_t most = uint64_t(index.size()) / 8;
  if (counts[0] > most || counts[1] > most || counts[1] < 1)
    return Damaged(absl::StrCat("it is truncated: it names ", counts[0], " sequences and ",
                                counts[1], " documents, but has ", index.size(), " bytes"));
  sequences = int64_t(counts[0]);
  documents = int64_t(counts[1]) - 1;
  lengths_at = kIndexHeadBytes;
  offsets_at = lengths_at + 4 * sequences;
  documents_at = offsets_at + 8 * sequences;
  const int64_t end = documents_at + 8 * (documents + 1);
  if (index.size() != end && index.size() != end + sequences)
    return Damaged(absl::StrCat("it has ", index.size(), " bytes, but ", sequences,
                                " sequences and ", documents, " documents take ", end));
  std::vector<int32_t> lengths;
  std::vector<int64_t> numbers;
  for (int64_t first = 0; first < sequences; first += kNumbersAtOnce) {
    const int64_t count = std::min(kNumbersAtOnce, sequences - first);
    if (absl::Status status = ReadNumbers(index, lengths_at, first, count, lengths); !status.ok())
      return status;
    if (absl::Status status = ReadNumbers(index, offsets_at, first, count, numbers); !status.ok())
      return status;
    for (size_t i = 0; i < size_t(count); ++i) {
      if (lengths[i] < 0 || numbers[i] != all * form.width)
        return Damaged(absl::StrCat("sequence ", first + int64_t(i),
                                    " does not begin where the one before it ends"));
      all += lengths[i];
    }
  }
  int64_t before = 0;
  for (int64_t first = 0; first <= documents; first += kNumbersAtOnce) {
    const int64_t count = std::min(kNumbersAtOnce, documents + 1 - first);
    if (absl::Status status = ReadNumbers(index, documents_at, first, count, numbers); !status.ok())
      return status;
    for (size_t i = 0; i < size_t(count); ++i) {
      if (numbers[i] < before || numbers[i] > sequences)
        return Damaged(absl::StrCat("document ", first + int64_t(i),
                                    " does not begin behind the one before it"));
      before = numbers[i];
    }
  }
  return absl::OkStatus();
}

/// Of `documents` itself, where the last one ends.
absl::StatusOr<int64_t> Documents::BeginOf(const InputFile &index, int64_t document) const {
  int64_t sequence = 0, offset = 0;
  if (absl::Status status = index.Read(documents_at + 8 * document, &sequence, 8); !status.ok())
    return status;
  if (sequence < 0 || sequence > sequences)
    return Damaged("it has changed since it was opened");
  if (sequence == sequences)
    return all;
  if (absl::Status status = index.Read(offsets_at + 8 * sequence, &offset, 8); !status.ok())
    return status;
  return offset / form.width;
}

absl::Status Documents::FindBegins(int64_t begin, int64_t end, std::vector<int64_t> &begins) const {
  std::optional<InputFile> room;
  absl::StatusOr<const InputFile *> index = kept.Get(room);
  if (!index.ok())
    return index.status();
  int64_t low = 0, high = documents; // the first one at or behind `begin` is in [low, high]
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    absl::StatusOr<int64_t> at = BeginOf(**index, middle);
    if (!at.ok())
      return at.status();
    if (*at < begin)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < documents; ++low) {
    absl::StatusOr<int64_t> at = BeginOf(**index, low);
    if (!at.ok() || *at >= end)
      return at.status();
    if (begins.empty() || begins.back() != *at) // some documents are empty
      begins.push_back(*at);
  }
  return absl::OkStatus();
}

} // namespace boa
