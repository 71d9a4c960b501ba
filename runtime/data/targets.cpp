//===- targets.cpp - Which tokens of a file are targets -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/targets.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace boa {
namespace {

constexpr char kTargetsMagic[8] = {'B', 'O', 'A', 'T', 'G', 'T', 'S', 0};
constexpr uint64_t kTargetsVersion = 1;
constexpr int64_t kTargetBytesAtOnce = 1 << 20; // bytes that are read or written at once

struct Head {
  char magic[8];
  uint64_t version, tokens, targets, hash;
};
static_assert(sizeof(Head) == 40);

template <typename... Args> absl::Status Damaged(const InputFile &file, const Args &...args) {
  return absl::DataLossError(absl::StrCat("`", file.path(), "`: ", args...));
}

int CountBits(uint8_t byte) { return __builtin_popcount(byte); }

} // namespace

std::string TargetsBeside(const std::string &tokens) {
  constexpr absl::string_view kEnding = ".bin";
  return absl::EndsWith(tokens, kEnding)
             ? absl::StrCat(tokens.substr(0, tokens.size() - kEnding.size()), ".targets")
             : "";
}

absl::StatusOr<Targets> Targets::Open(const std::string &path) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok())
    return file.status();
  Head head;
  if (file->size() < int64_t(sizeof head))
    return Damaged(*file, "it is too short for targets of tokens");
  if (absl::Status status = file->Read(0, &head, sizeof head); !status.ok())
    return status;
  if (std::memcmp(head.magic, kTargetsMagic, sizeof kTargetsMagic) != 0 ||
      head.version != kTargetsVersion)
    return Damaged(*file, "it has no targets of tokens of version ", kTargetsVersion);
  const uint64_t most = uint64_t(file->size() - int64_t(sizeof head)) * 8;
  if (head.tokens > most || (head.tokens + 7) / 8 * 8 != most)
    return Damaged(*file, "it says ", head.tokens, " tokens, but has ", file->size(),
                   " bytes; it is truncated, or damaged");
  Targets targets;
  targets.bits = *std::move(file);
  targets.count = int64_t(head.tokens);
  XXH3_state_t sum;
  XXH3_64bits_reset(&sum);
  uint8_t last = 0;
  absl::Status status = targets.Scan([&](int64_t, const std::vector<uint8_t> &bytes) {
    XXH3_64bits_update(&sum, bytes.data(), bytes.size());
    for (uint8_t byte : bytes)
      targets.marked += CountBits(byte);
    last = bytes.back();
  });
  if (!status.ok())
    return status;
  if (XXH3_64bits_digest(&sum) != head.hash || targets.marked != int64_t(head.targets) ||
      (head.tokens % 8 != 0 && last >> (head.tokens % 8) != 0))
    return Damaged(targets.bits, "its bits do not fit their checksum; it is damaged");
  return targets;
}

absl::Status
Targets::Scan(const std::function<void(int64_t, const std::vector<uint8_t> &)> &take) const {
  std::vector<uint8_t> block;
  const int64_t all = bits.size() - int64_t(sizeof(Head));
  for (int64_t at = 0; at < all; at += kTargetBytesAtOnce) {
    block.resize(size_t(std::min(kTargetBytesAtOnce, all - at)));
    if (absl::Status status =
            bits.Read(int64_t(sizeof(Head)) + at, block.data(), int64_t(block.size()));
        !status.ok())
      return status;
    take(at * 8, block);
  }
  return absl::OkStatus();
}

absl::Status Targets::Read(int64_t begin, std::vector<bool> &to) const {
  if (to.empty())
    return absl::OkStatus();
  const int64_t first = begin / 8, end = (begin + int64_t(to.size()) + 7) / 8;
  std::vector<uint8_t> bytes(size_t(end - first));
  if (absl::Status status =
          bits.Read(int64_t(sizeof(Head)) + first, bytes.data(), int64_t(bytes.size()));
      !status.ok())
    return status;
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t bit = size_t(begin - first * 8) + i;
    to[i] = (bytes[bit / 8] >> (bit % 8) & 1) != 0;
  }
  return absl::OkStatus();
}

struct TargetsWriter::Sum {
  XXH3_state_t state;
};

TargetsWriter::TargetsWriter() : sum(std::make_unique<Sum>()) { XXH3_64bits_reset(&sum->state); }
TargetsWriter::TargetsWriter(TargetsWriter &&) noexcept = default;
TargetsWriter &TargetsWriter::operator=(TargetsWriter &&) noexcept = default;
TargetsWriter::~TargetsWriter() = default;

absl::StatusOr<TargetsWriter> TargetsWriter::Create(const std::string &path) {
  TargetsWriter writer;
  absl::StatusOr<NewFile> file = NewFile::Create(path);
  if (!file.ok())
    return file.status();
  writer.file = *std::move(file);
  const Head head = {};
  if (absl::Status status = writer.file.Append(&head, sizeof head); !status.ok())
    return status;
  return writer;
}

absl::Status TargetsWriter::Append(const std::vector<bool> &targets) {
  for (bool is_target : targets) {
    if (count % 8 == 0) {
      if (int64_t(bytes.size()) == kTargetBytesAtOnce)
        if (absl::Status status = Flush(); !status.ok())
          return status;
      bytes.push_back(0);
    }
    bytes.back() |= uint8_t(uint8_t(is_target) << (count % 8));
    marked += is_target;
    ++count;
  }
  return absl::OkStatus();
}

absl::Status TargetsWriter::Flush() {
  XXH3_64bits_update(&sum->state, bytes.data(), bytes.size());
  absl::Status status = file.Append(bytes.data(), int64_t(bytes.size()));
  bytes.clear();
  return status;
}

absl::Status TargetsWriter::Finish() {
  if (absl::Status status = Flush(); !status.ok())
    return status;
  Head head = {
      {}, kTargetsVersion, uint64_t(count), uint64_t(marked), XXH3_64bits_digest(&sum->state)};
  std::memcpy(head.magic, kTargetsMagic, sizeof kTargetsMagic);
  absl::Status status = file.Rewrite(0, &head, sizeof head);
  return status.ok() ? file.Publish() : status;
}

} // namespace boa
