//===- token_marks.h - A bit for each token of a file -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bit for each token of NAME.bin. In NAME.targets it is 1 if the token is to be predicted, in
// NAME.begins if a document begins with it. All numbers are little-endian.
//
//   "BOATGTS\0" or "BOABGNS\0", u64 version (1), u64 tokens, u64 marked ones, u64 XXH3 of the bits
//
//   u8 for each eight tokens, the first of them in the lowest bit; bits behind the last are 0
//
// The first token of a document is no target: nothing of its own document stands before it. Of a
// conversation only the answers are.
//
// The bits are checked as a whole when the file is opened, and stay in it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_TOKEN_MARKS_H
#define BOA_RUNTIME_DATA_TOKEN_MARKS_H

#include "runtime/io/input_file.h"
#include "runtime/io/new_file.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// The meaning of a bit of 1: its token is a target, or begins a document.
enum class Mark { target, begin };

/// The name of the file beside NAME.bin; "" if the name has another ending.
std::string MarksBeside(const std::string &tokens, Mark);

class TokenMarks {
public:
  /// NotFound if there is no such file. `stays_open`: else each read opens it.
  static absl::StatusOr<TokenMarks> Open(const std::string &path, Mark, bool stays_open = true);

  int64_t tokens() const { return count; }
  int64_t marked() const { return ones; }
  const KeptFile &file() const { return kept; }
  /// Whether each of the tokens [begin, begin + to.size()) is marked.
  absl::Status Read(int64_t begin, std::vector<bool> &to) const;
  /// Calls with blocks of bits from the first to the last: the token of the first bit, and the
  /// bytes.
  absl::Status Scan(const std::function<void(int64_t, const std::vector<uint8_t> &)> &) const;

private:
  KeptFile kept;
  int64_t count = 0, ones = 0;
};

/// Writes such a file; one thread.
class TokenMarksWriter {
public:
  static absl::StatusOr<TokenMarksWriter> Create(const std::string &path, Mark);
  TokenMarksWriter(TokenMarksWriter &&) noexcept;
  TokenMarksWriter &operator=(TokenMarksWriter &&) noexcept;
  ~TokenMarksWriter();

  absl::Status Append(const std::vector<bool> &marks);
  int64_t marked() const { return ones; }
  absl::Status Finish();

private:
  struct Sum;
  explicit TokenMarksWriter(Mark);
  absl::Status Flush();

  NewFile file;
  std::unique_ptr<Sum> sum;
  Mark kind;
  std::vector<uint8_t> bytes; // that are not in the file yet
  int64_t count = 0, ones = 0;
};

} // namespace boa

#endif // BOA_RUNTIME_DATA_TOKEN_MARKS_H
