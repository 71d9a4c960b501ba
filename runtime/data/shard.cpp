//===- shard.cpp - One file of tokens -------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/shard.h"

#include "runtime/data/source.h"
#include "runtime/support/random.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace boa {
namespace {

constexpr int64_t kLlmcHeadBytes = 256 * 4; // of llm.c
constexpr int64_t kChecked = 4096;          // tokens at each end
constexpr int64_t kHashBlock = 16 << 10;

/// Headers of llm.c.
struct Form {
  int32_t magic, version;
  int64_t width;
};
constexpr Form kForms[] = {{20240520, 1, 2}, {20240801, 7, 4}};

/// How other files begin.
struct OtherKind {
  const char *begin, *what;
};
constexpr OtherKind kOtherKinds[] = {
    {"\x93NUMPY", "a NumPy file; write its array with tofile"},
    {"PAR1", "a Parquet file; write its tokens one behind the other"},
    {"\x28\xb5\x2f\xfd", "compressed; unpack it"},
};

const char *TypeOf(int64_t width) { return kTokenTypes[width == 1 ? 0 : width == 2 ? 1 : 2]; }
int64_t WidthOf(const std::string &type) { return type == "uint8" ? 1 : type == "uint32" ? 4 : 2; }

template <typename... Args> absl::Status RefuseShard(const std::string &path, const Args &...args) {
  return absl::InvalidArgumentError(absl::StrCat("`", path, "`: ", args...));
}
template <typename... Args> absl::Status Damaged(const std::string &path, const Args &...args) {
  return absl::DataLossError(absl::StrCat("`", path, "`: ", args...));
}

/// Widens tokens in place, from the last to the first. Returns the first that is outside of the
/// vocabulary, or `count`.
template <typename Token>
int64_t Widen(const std::vector<char> &bytes, int64_t count, int64_t vocab, int32_t *to) {
  int64_t wrong = count;
  for (int64_t i = count; i-- > 0;) {
    Token token;
    std::memcpy(&token, bytes.data() + i * int64_t(sizeof(Token)), sizeof(Token));
    if (int64_t(token) >= vocab)
      wrong = i;
    to[i] = int32_t(token);
  }
  return wrong;
}

} // namespace

absl::StatusOr<Shard> Shard::Open(const std::string &path, const std::string &type, int64_t vocab,
                                  bool stays_open) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok())
    return file.status();
  stays_open &= !file->IsOneOfMany();
  Shard shard;
  shard.name = path;
  shard.bytes = file->size();
  shard.vocab = vocab;
  if (absl::Status status = shard.Recognise(*file, type, stays_open); !status.ok())
    return status;
  for (auto [kind, marks] :
       {std::pair(Mark::target, &shard.targeted), std::pair(Mark::begin, &shard.begun)})
    if (absl::Status status = shard.FindMarks(kind, stays_open, *marks); !status.ok())
      return status;
  if (!type.empty() && shard.width != WidthOf(type))
    return RefuseShard(path, "its ", shard.index ? "index" : "header", " says that tokens are ",
                       TypeOf(shard.width), ", but the spec says ", type);
  const int64_t ends = std::min(shard.count, kChecked);
  std::vector<int32_t> tokens(static_cast<size_t>(ends));
  for (int64_t first : {int64_t{0}, shard.count - ends})
    if (absl::Status status = shard.ReadFrom(*file, first, ends, tokens.data()); !status.ok())
      return status;
  if (stays_open)
    shard.open = *std::move(file);
  return shard;
}

absl::Status Shard::Recognise(const InputFile &file, const std::string &type, bool stays_open) {
  if (bytes == 0)
    return RefuseShard(name, "it is empty");
  int32_t words[3] = {};
  const int64_t begin = std::min<int64_t>(bytes, sizeof words);
  if (absl::Status status = file.Read(0, words, begin); !status.ok())
    return status;
  const absl::string_view first(reinterpret_cast<const char *>(words), size_t(begin));
  for (const OtherKind &kind : kOtherKinds)
    if (absl::StartsWith(first, kind.begin))
      return RefuseShard(name, "expected tokens, but it is ", kind.what);
  if (absl::Status status = FindIndex(file, stays_open); !status.ok() || index)
    return status;
  for (const Form &form : kForms) {
    if (words[0] != form.magic || begin < int64_t(sizeof words))
      continue;
    if (words[1] != form.version)
      return RefuseShard(name, "its header is of version ", words[1], ", but expected version ",
                         form.version);
    width = form.width;
    head = kLlmcHeadBytes;
    count = words[2];
    if (count < 1 || bytes != head + count * width)
      return Damaged(name, "its header says ", count, " tokens, which take ", head + count * width,
                     " bytes, but it has ", bytes, "; it is truncated, or damaged");
    return absl::OkStatus();
  }
  width = WidthOf(type);
  count = bytes / width;
  return CheckRaw(file, !type.empty());
}

absl::Status Shard::FindIndex(const InputFile &file, bool stays_open) {
  constexpr absl::string_view kEnding = ".bin";
  if (!absl::EndsWith(name, kEnding))
    return absl::OkStatus();
  const std::string path = name.substr(0, name.size() - kEnding.size()) + ".idx";
  absl::StatusOr<Documents> found = Documents::Open(path, stays_open);
  if (absl::IsNotFound(found.status()))
    return absl::OkStatus();
  if (!found.ok())
    return found.status();
  width = found->token_bytes();
  count = found->tokens();
  if (count < 1 || file.size() != count * width)
    return Damaged(name, "its index says ", count, " tokens, which take ", count * width,
                   " bytes, but it has ", bytes, "; it is truncated, or of another index");
  index = *std::move(found);
  return absl::OkStatus();
}

absl::Status Shard::FindMarks(Mark kind, bool stays_open, std::optional<TokenMarks> &marks) const {
  const std::string path = MarksBeside(name, kind);
  absl::StatusOr<TokenMarks> found = absl::NotFoundError("");
  if (!path.empty())
    found = TokenMarks::Open(path, kind, stays_open);
  if (absl::IsNotFound(found.status()))
    return absl::OkStatus();
  if (!found.ok())
    return found.status();
  if (found->tokens() != count)
    return Damaged(name, "it has ", count, " tokens, but `", path, "` tells of ", found->tokens(),
                   "; one of them is of another file");
  marks = *std::move(found);
  return absl::OkStatus();
}

absl::Status Shard::CheckRaw(const InputFile &file, bool is_type_given) {
  if (bytes % width != 0)
    return Damaged(name, "its ", bytes, " bytes are no whole number of ", TypeOf(width),
                   " tokens; it is truncated, or of another type");
  if (is_type_given || bytes % 4 != 0)
    return absl::OkStatus();
  // The upper halves of 32 bits are zero or nearly so. Of tokens of 16 bits every other one is not.
  constexpr int64_t kFewest = 64;
  std::vector<uint16_t> tokens(size_t(std::min(count, kChecked)));
  if (int64_t(tokens.size()) < kFewest)
    return absl::OkStatus();
  if (absl::Status status = file.Read(0, tokens.data(), int64_t(tokens.size()) * 2); !status.ok())
    return status;
  int64_t lower = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i % 2 == 1 && tokens[i] > 1)
      return absl::OkStatus();
    lower += i % 2 == 0 && tokens[i] > 1;
  }
  if (lower == 0)
    return absl::OkStatus();
  return RefuseShard(name,
                     "its tokens look like uint32; write tokens(\"...\", uint32), or uint16 if "
                     "every other one is 0");
}

absl::StatusOr<InputFile> Shard::Reopen() const {
  absl::StatusOr<InputFile> file = InputFile::Open(name);
  if (file.ok() && file->size() != bytes)
    return Damaged(name, "it had ", bytes, " bytes when the run began, and has ", file->size());
  return file;
}

absl::Status Shard::Read(int64_t first, int64_t tokens, int32_t *to) const {
  if (open)
    return ReadFrom(*open, first, tokens, to);
  absl::StatusOr<InputFile> file = Reopen();
  return file.ok() ? ReadFrom(*file, first, tokens, to) : file.status();
}

absl::Status Shard::ReadFrom(const InputFile &file, int64_t first, int64_t tokens,
                             int32_t *to) const {
  std::vector<char> block(size_t(tokens * width));
  if (absl::Status status = file.Read(head + first * width, block.data(), int64_t(block.size()));
      !status.ok())
    return status;
  const int64_t wrong = width == 1   ? Widen<uint8_t>(block, tokens, vocab, to)
                        : width == 2 ? Widen<uint16_t>(block, tokens, vocab, to)
                                     : Widen<uint32_t>(block, tokens, vocab, to);
  if (wrong == tokens)
    return absl::OkStatus();
  return RefuseShard(name, "token ", uint32_t(to[wrong]), " at byte ",
                     head + (first + wrong) * width, " is outside the vocabulary of ", vocab);
}

absl::StatusOr<uint64_t> Shard::Hash(int64_t blocks) const {
  absl::StatusOr<InputFile> again;
  if (!open)
    again = Reopen();
  if (!open && !again.ok())
    return again.status();
  absl::StatusOr<uint64_t> hash = HashOfFile(open ? *open : *again, kHashBlock, blocks);
  const auto add = [&](const InputFile &beside) {
    absl::StatusOr<uint64_t> other = HashOfFile(beside, kHashBlock, blocks);
    hash = hash.ok() && other.ok() ? absl::StatusOr<uint64_t>(Mix(*hash ^ *other))
                                   : (hash.ok() ? other : hash);
  };
  // Of tokens that were made here, targets tell where documents begin, too.
  const auto &marks = targeted ? targeted : begun;
  std::optional<InputFile> room;
  for (const bool of_index : {true, false}) {
    if (of_index ? !index : !marks)
      continue;
    absl::StatusOr<const InputFile *> beside = of_index ? index->File(room) : marks->File(room);
    if (!beside.ok())
      return beside.status();
    add(**beside);
  }
  return hash;
}

} // namespace boa
