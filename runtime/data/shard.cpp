//===- shard.cpp - One file of tokens -------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/shard.h"

#include "runtime/data/file_kinds.h"
#include "runtime/data/source.h"
#include "runtime/support/random.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

namespace boa {
namespace {

constexpr int64_t kLlmcHeadBytes = 256 * 4; // of llm.c
constexpr int64_t kChecked = 4096;          // tokens at each end
constexpr int64_t kHashBlock = 16 << 10;

/// Headers of llm.c.
struct LlmcForm {
  int32_t magic, version;
  TokenType type;
};
constexpr LlmcForm kLlmcForms[] = {{20240520, 1, {2, false}}, {20240801, 7, {4, false}}};

template <typename... Args> absl::Status RefuseShard(const std::string &path, const Args &...args) {
  return absl::InvalidArgumentError(absl::StrCat("`", path, "`: ", args...));
}
template <typename... Args> absl::Status Damaged(const std::string &path, const Args &...args) {
  return absl::DataLossError(absl::StrCat("`", path, "`: ", args...));
}

} // namespace

absl::StatusOr<Shard> Shard::Open(const std::string &path, const std::string &type, int64_t vocab,
                                  bool stays_open) {
  absl::StatusOr<InputFile> opened = InputFile::Open(path);
  if (!opened.ok())
    return opened.status();
  stays_open &= !opened->IsOneOfMany();
  Shard shard;
  shard.kept = KeptFile(path, *std::move(opened), stays_open);
  shard.vocab = vocab;
  std::optional<InputFile> room;
  absl::StatusOr<const InputFile *> file = shard.kept.Get(room);
  if (!file.ok())
    return file.status();
  if (absl::Status status = shard.Recognise(**file, type, stays_open); !status.ok())
    return status;
  for (auto [kind, marks] :
       {std::pair(Mark::target, &shard.targeted), std::pair(Mark::begin, &shard.begun)})
    if (absl::Status status = shard.FindMarks(kind, stays_open, *marks); !status.ok())
      return status;
  if (!type.empty() && shard.form.width != TokenType::Named(type).width)
    return RefuseShard(path, "its ", shard.index ? "index" : "header", " says that tokens are ",
                       shard.form.name(), ", but the spec says ", type);
  const int64_t ends = std::min(shard.count, kChecked);
  std::vector<int32_t> tokens(static_cast<size_t>(ends));
  for (int64_t first : {int64_t{0}, shard.count - ends})
    if (absl::Status status = shard.ReadFrom(**file, first, ends, tokens.data()); !status.ok())
      return status;
  return shard;
}

absl::Status Shard::Recognise(const InputFile &file, const std::string &type, bool stays_open) {
  if (kept.size() == 0)
    return RefuseShard(path(), "it is empty");
  int32_t words[3] = {};
  const int64_t begin = std::min<int64_t>(kept.size(), sizeof words);
  if (absl::Status status = file.Read(0, words, begin); !status.ok())
    return status;
  if (absl::Status status = CheckKind(file, Wanted::tokens); !status.ok())
    return status;
  absl::StatusOr<std::optional<NumpyHead>> numpy = ReadNumpyHead(file);
  if (!numpy.ok())
    return numpy.status();
  if (*numpy) {
    form = (*numpy)->type;
    head = (*numpy)->bytes;
    count = (*numpy)->count;
    return count > 0 ? absl::OkStatus() : RefuseShard(path(), "it is empty");
  }
  if (absl::Status status = FindIndex(file, stays_open); !status.ok() || index)
    return status;
  for (const LlmcForm &known : kLlmcForms) {
    if (words[0] != known.magic || begin < int64_t(sizeof words))
      continue;
    if (words[1] != known.version)
      return RefuseShard(path(), "its header is of version ", words[1], ", but expected version ",
                         known.version);
    form = known.type;
    head = kLlmcHeadBytes;
    count = words[2];
    if (count < 1 || kept.size() != head + count * form.width)
      return Damaged(path(), "its header says ", count, " tokens, which take ",
                     head + count * form.width, " bytes, but it has ", kept.size(),
                     "; it is truncated, or damaged");
    return absl::OkStatus();
  }
  form = TokenType::Named(type);
  count = kept.size() / form.width;
  return CheckRaw(file, type);
}

absl::Status Shard::FindIndex(const InputFile &file, bool stays_open) {
  constexpr absl::string_view kEnding = ".bin";
  if (!absl::EndsWith(path(), kEnding))
    return absl::OkStatus();
  const std::string beside = path().substr(0, path().size() - kEnding.size()) + ".idx";
  absl::StatusOr<Documents> found = Documents::Open(beside, stays_open);
  if (absl::IsNotFound(found.status()))
    return absl::OkStatus();
  if (!found.ok())
    return found.status();
  form = found->type();
  count = found->tokens();
  if (count < 1 || file.size() != count * form.width)
    return Damaged(path(), "its index says ", count, " tokens, which take ", count * form.width,
                   " bytes, but it has ", kept.size(), "; it is truncated, or of another index");
  index = *std::move(found);
  return absl::OkStatus();
}

absl::Status Shard::FindMarks(Mark kind, bool stays_open, std::optional<TokenMarks> &marks) const {
  const std::string beside = MarksBeside(path(), kind);
  absl::StatusOr<TokenMarks> found = absl::NotFoundError("");
  if (!beside.empty())
    found = TokenMarks::Open(beside, kind, stays_open);
  if (absl::IsNotFound(found.status()))
    return absl::OkStatus();
  if (!found.ok())
    return found.status();
  if (found->tokens() != count)
    return Damaged(path(), "it has ", count, " tokens, but `", beside, "` tells of ",
                   found->tokens(), "; one of them is of another file");
  marks = *std::move(found);
  return absl::OkStatus();
}

/// Tokens are small numbers. So of those in 32 bits each upper half is nearly 0, and of those in 64
/// bits three quarters are. Of tokens in 16 bits every other one is not.
absl::Status Shard::CheckRaw(const InputFile &file, const std::string &type) const {
  if (kept.size() % form.width != 0)
    return Damaged(path(), "its ", kept.size(), " bytes are no whole number of ", form.name(),
                   " tokens; it is truncated, or of another type");
  constexpr size_t kFewest = 64;
  constexpr uint16_t kUpper = 15; // of a vocabulary of a million
  std::vector<uint16_t> halves(size_t(std::min(kept.size() / 2, kChecked)) / 4 * 4);
  if (kept.size() % 4 != 0 || halves.size() < kFewest)
    return absl::OkStatus();
  if (absl::Status status = file.Read(0, halves.data(), int64_t(halves.size()) * 2); !status.ok())
    return status;
  bool has_lower = false, is_wide = true, is_double = kept.size() % 8 == 0;
  for (size_t i = 0; i < halves.size(); ++i) {
    has_lower |= i % 2 == 0 && halves[i] > kUpper;
    is_wide &= i % 2 == 0 || halves[i] <= kUpper;
    is_double &= i % 4 < 2 || halves[i] == 0;
  }
  if (!has_lower || !is_wide)
    return absl::OkStatus();
  // Who says uint16 may have such tokens; nobody has data of which every other token is 0.
  if (is_double && form.width < 8 && type != "uint16" && type != "uint8")
    return RefuseShard(path(), "its tokens look like int64; write tokens(\"...\", int64)");
  if (!type.empty())
    return absl::OkStatus();
  return RefuseShard(path(),
                     "its tokens look like uint32; write tokens(\"...\", uint32), or uint16 if "
                     "every other one is 0");
}

absl::Status Shard::Read(int64_t first, int64_t tokens, int32_t *to) const {
  std::optional<InputFile> room;
  absl::StatusOr<const InputFile *> file = kept.Get(room);
  return file.ok() ? ReadFrom(**file, first, tokens, to) : file.status();
}

absl::Status Shard::ReadFrom(const InputFile &file, int64_t first, int64_t tokens,
                             int32_t *to) const {
  std::vector<char> block(size_t(tokens * form.width));
  if (absl::Status status =
          file.Read(head + first * form.width, block.data(), int64_t(block.size()));
      !status.ok())
    return status;
  const std::optional<WrongToken> wrong = Widen(block, form, vocab, to);
  if (!wrong)
    return absl::OkStatus();
  return RefuseShard(path(), "token ", wrong->number, " at byte ",
                     head + (first + wrong->at) * form.width, " is outside the vocabulary of ",
                     vocab);
}

absl::StatusOr<uint64_t> Shard::Hash(int64_t blocks) const {
  std::optional<InputFile> room;
  absl::StatusOr<const InputFile *> file = kept.Get(room);
  if (!file.ok())
    return file.status();
  absl::StatusOr<uint64_t> hash = HashOfFile(**file, kHashBlock, blocks);
  const auto add = [&](const InputFile &beside) {
    absl::StatusOr<uint64_t> other = HashOfFile(beside, kHashBlock, blocks);
    hash = hash.ok() && other.ok() ? absl::StatusOr<uint64_t>(Mix(*hash ^ *other))
                                   : (hash.ok() ? other : hash);
  };
  // Of tokens that were made here, targets tell where documents begin, too.
  const auto &marks = targeted ? targeted : begun;
  for (const bool of_index : {true, false}) {
    if (of_index ? !index : !marks)
      continue;
    absl::StatusOr<const InputFile *> beside = (of_index ? index->file() : marks->file()).Get(room);
    if (!beside.ok())
      return beside.status();
    add(**beside);
  }
  return hash;
}

} // namespace boa
