//===- documents.h - The index of a Megatron file ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NAME.idx beside NAME.bin: the type of the tokens, and where documents begin. All numbers are
// little-endian.
//
//   "MMIDIDX\0\0", u64 version (1), u8 type, u64 sequences, u64 documents + 1
//   i32 length of each sequence, in tokens
//   i64 offset of each sequence in NAME.bin, in bytes
//   i64 first sequence of each document, and the number of sequences
//   and in some files u8 for each sequence, which is of no use here
//
// The index is checked as a whole when it is opened, and stays in its file.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_DOCUMENTS_H
#define BOA_RUNTIME_DATA_DOCUMENTS_H

#include "runtime/data/token_type.h"
#include "runtime/io/input_file.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace boa {

class Documents {
public:
  /// `stays_open`: else each search opens the file.
  static absl::StatusOr<Documents> Open(const std::string &path, bool stays_open = true);

  TokenType type() const { return form; }
  /// In NAME.bin.
  int64_t tokens() const { return all; }
  const KeptFile &file() const { return kept; }
  /// Appends where documents begin, from token `begin` to before `end`.
  absl::Status FindBegins(int64_t begin, int64_t end, std::vector<int64_t> &begins) const;

private:
  absl::Status Check(const InputFile &index);
  absl::StatusOr<int64_t> BeginOf(const InputFile &index, int64_t document) const;
  absl::Status Damaged(const std::string &why) const;

  KeptFile kept;
  TokenType form;
  int64_t sequences = 0, documents = 0, all = 0;
  int64_t lengths_at = 0, offsets_at = 0, documents_at = 0; // bytes
};

} // namespace boa

#endif // BOA_RUNTIME_DATA_DOCUMENTS_H
