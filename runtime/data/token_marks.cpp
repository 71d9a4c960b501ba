//===- token_marks.cpp - A bit for each token of a file --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/token_marks.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace boa {
namespace {

/// The form of the files of one kind of marks.
struct Kind {
  char magic[8];
  const char *ending, *name;
};
constexpr Kind kKinds[] = {
    {{'B', 'O', 'A', 'T', 'G', 'T', 'S', 0}, ".targets", "targets of tokens"},
    {{'B', 'O', 'A', 'B', 'G', 'N', 'S', 0}, ".begins", "beginnings of documents"}};
const Kind &KindOf(Mark kind) { return kKinds[int(kind)]; }

constexpr uint64_t kMarksVersion = 1;
constexpr int64_t kMarkBytesAtOnce = 1 << 20; // bytes that are read or written at once

struct Head {
  char magic[8];
  uint64_t version, tokens, marked, hash;
};
static_assert(sizeof(Head) == 40);

template <typename... Args>
absl::Status DamagedMarks(const std::string &path, const Args &...args) {
  return absl::DataLossError(absl::StrCat("`", path, "`: ", args...));
}

int CountBits(uint8_t byte) { return __builtin_popcount(byte); }

} // namespace

std::string MarksBeside(const std::string &tokens, Mark kind) {
  constexpr absl::string_view kEnding = ".bin";
  return absl::EndsWith(tokens, kEnding)
             ? absl::StrCat(tokens.substr(0, tokens.size() - kEnding.size()), KindOf(kind).ending)
             : "";
}

absl::StatusOr<TokenMarks> TokenMarks::Open(const std::string &path, Mark kind, bool stays_open) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok())
    return file.status();
  Head head;
  if (file->size() < int64_t(sizeof head))
    return DamagedMarks(path, "it is too short for ", KindOf(kind).name);
  if (absl::Status status = file->Read(0, &head, sizeof head); !status.ok())
    return status;
  if (std::memcmp(head.magic, KindOf(kind).magic, sizeof head.magic) != 0 ||
      head.version != kMarksVersion)
    return DamagedMarks(path, "it has no ", KindOf(kind).name, " of version ", kMarksVersion);
  const uint64_t most = uint64_t(file->size() - int64_t(sizeof head)) * 8;
  if (head.tokens > most || (head.tokens + 7) / 8 * 8 != most)
    return DamagedMarks(path, "it says ", head.tokens, " tokens, but has ", file->size(),
                        " bytes; it is truncated, or damaged");
  TokenMarks marks;
  marks.kept = KeptFile(path, *std::move(file), stays_open);
  marks.count = int64_t(head.tokens);
  XXH3_state_t sum;
  XXH3_64bits_reset(&sum);
  uint8_t last = 0;
  absl::Status status = marks.Scan([&](int64_t, const std::vector<uint8_t> &bytes) {
    XXH3_64bits_update(&sum, bytes.data(), bytes.size());
    for (uint8_t byte : bytes)
      marks.ones += CountBits(byte);
    last = bytes.back();
  });
  if (!status.ok())
    return status;
  if (XXH3_64bits_digest(&sum) != head.hash || marks.ones != int64_t(head.marked) ||
      (head.tokens % 8 != 0 && last >> (head.tokens % 8) != 0))
    return DamagedMarks(path, "its bits do not fit their checksum; it is damaged");
  return marks;
}

absl::Status
TokenMarks::Scan(const std::function<void(int64_t, const std::vector<uint8_t> &)> &take) const {
  std::optional<InputFile> room;
  absl::StatusOr<const InputFile *> file = kept.Get(room);
  if (!file.ok())
    return file.status();
  std::vector<uint8_t> block;
  const int64_t all = kept.size() - int64_t(sizeof(Head));
  for (int64_t at = 0; at < all; at += kMarkBytesAtOnce) {
    block.resize(size_t(std::min(kMarkBytesAtOnce, all - at)));
    if (absl::Status status =
            (*file)->Read(int64_t(sizeof(Head)) + at, block.data(), int64_t(block.size()));
        !status.ok())
      return status;
    take(at * 8, block);
  }
  return absl::OkStatus();
}

absl::Status TokenMarks::Read(int64_t begin, std::vector<bool> &to) const {
  if (to.empty())
    return absl::OkStatus();
  std::optional<InputFile> room;
  absl::StatusOr<const InputFile *> file = kept.Get(room);
  if (!file.ok())
    return file.status();
  const int64_t first = begin / 8, end = (begin + int64_t(to.size()) + 7) / 8;
  std::vector<uint8_t> block(size_t(end - first));
  if (absl::Status status =
          (*file)->Read(int64_t(sizeof(Head)) + first, block.data(), int64_t(block.size()));
      !status.ok())
    return status;
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t bit = size_t(begin - first * 8) + i;
    to[i] = (block[bit / 8] >> (bit % 8) & 1) != 0;
  }
  return absl::OkStatus();
}

struct TokenMarksWriter::Sum {
  XXH3_state_t state;
};

TokenMarksWriter::TokenMarksWriter(Mark kind) : sum(std::make_unique<Sum>()), kind(kind) {
  XXH3_64bits_reset(&sum->state);
}
TokenMarksWriter::TokenMarksWriter(TokenMarksWriter &&) noexcept = default;
TokenMarksWriter &TokenMarksWriter::operator=(TokenMarksWriter &&) noexcept = default;
TokenMarksWriter::~TokenMarksWriter() = default;

absl::StatusOr<TokenMarksWriter> TokenMarksWriter::Create(const std::string &path, Mark kind) {
  TokenMarksWriter writer(kind);
  absl::StatusOr<NewFile> file = NewFile::Create(path);
  if (!file.ok())
    return file.status();
  writer.file = *std::move(file);
  const Head head = {};
  if (absl::Status status = writer.file.Append(&head, sizeof head); !status.ok())
    return status;
  return writer;
}

absl::Status TokenMarksWriter::Append(const std::vector<bool> &marks) {
  for (bool is_marked : marks) {
    if (count % 8 == 0) {
      if (int64_t(bytes.size()) == kMarkBytesAtOnce)
        if (absl::Status status = Flush(); !status.ok())
          return status;
      bytes.push_back(0);
    }
    bytes.back() |= uint8_t(uint8_t(is_marked) << (count % 8));
    ones += is_marked;
    ++count;
  }
  return absl::OkStatus();
}

absl::Status TokenMarksWriter::Flush() {
  XXH3_64bits_update(&sum->state, bytes.data(), bytes.size());
  absl::Status status = file.Append(bytes.data(), int64_t(bytes.size()));
  bytes.clear();
  return status;
}

absl::Status TokenMarksWriter::Finish() {
  if (absl::Status status = Flush(); !status.ok())
    return status;
  Head head = {{}, kMarksVersion, uint64_t(count), uint64_t(ones), XXH3_64bits_digest(&sum->state)};
  std::memcpy(head.magic, KindOf(kind).magic, sizeof head.magic);
  absl::Status status = file.Rewrite(0, &head, sizeof head);
  return status.ok() ? file.Publish() : status;
}

} // namespace boa
