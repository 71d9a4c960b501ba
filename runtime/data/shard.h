//===- shard.h - One file of tokens -----------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Little-endian tokens of one type. The forms that are recognised:
//
//   llm.c     256 x i32 {20240520, 1, tokens}, then uint16; {20240801, 7, tokens}, then uint32
//   Megatron  NAME.bin with NAME.idx beside it (documents.h)
//   NumPy     an array of one axis, of any whole numbers (.npy)
//   raw       tokens alone, as nanoGPT writes them; uint16 unless the type is given
//
// NAME.targets beside NAME.bin says which of its tokens are targets, and NAME.begins where
// documents begin (token_marks.h).
//
// Refuses a file whose size does not fit its header or its type, a type that contradicts the
// header, and files of other kinds. Raw numbers of 32 and 64 bits are recognised by their upper
// halves, and refused under another type. A token outside of the vocabulary is an error when it is
// read, with its place. The first and the last tokens are read when the file is opened.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_SHARD_H
#define BOA_RUNTIME_DATA_SHARD_H

#include "runtime/data/documents.h"
#include "runtime/data/token_marks.h"
#include "runtime/data/token_type.h"
#include "runtime/io/input_file.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace boa {

class Shard {
public:
  /// `type`: of kTokenTypes, or empty. `stays_open`: else each read opens the file.
  /// So it does where a half of the files that may be open is.
  static absl::StatusOr<Shard> Open(const std::string &path, const std::string &type, int64_t vocab,
                                    bool stays_open);

  const std::string &path() const { return kept.path(); }
  int64_t tokens() const { return count; }
  const std::optional<Documents> &documents() const { return index; }
  /// Nothing: all of its tokens are targets.
  const std::optional<TokenMarks> &targets() const { return targeted; }
  /// Nothing: an index tells where documents begin, or nothing does.
  const std::optional<TokenMarks> &begins() const { return begun; }

  absl::Status Read(int64_t first, int64_t tokens, int32_t *to) const;
  /// Of the file, of its index and of its targets, or without them of its begins.
  absl::StatusOr<uint64_t> Hash(int64_t blocks) const;

private:
  absl::Status Recognise(const InputFile &, const std::string &type, bool stays_open);
  absl::Status FindIndex(const InputFile &, bool stays_open);
  absl::Status FindMarks(Mark, bool stays_open, std::optional<TokenMarks> &) const;
  absl::Status CheckRaw(const InputFile &, const std::string &type) const;
  absl::Status ReadFrom(const InputFile &, int64_t first, int64_t tokens, int32_t *to) const;

  KeptFile kept;
  TokenType form;
  int64_t head = 0, count = 0; // bytes before the first token; tokens
  int64_t vocab = 0;
  std::optional<Documents> index;
  std::optional<TokenMarks> targeted, begun;
};

} // namespace boa

#endif // BOA_RUNTIME_DATA_SHARD_H
