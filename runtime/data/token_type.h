//===- token_type.h - How tokens are stored ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whole numbers, little-endian, of any width. A file names its type in its header or its index, or
// the user does.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_TOKEN_TYPE_H
#define BOA_RUNTIME_DATA_TOKEN_TYPE_H

#include "runtime/io/input_file.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace boa {

struct TokenType {
  int64_t width = 2; // bytes
  bool is_signed = false;

  /// "uint16".
  std::string name() const;
  /// Of kTokenTypes; of "", uint16.
  static TokenType Named(const std::string &name);
  /// By the number in an index of Megatron, or of fairseq. Nothing for numbers with a fraction, and
  /// for those that mean nothing.
  static std::optional<TokenType> OfIndex(uint8_t code);
};

/// A number that is no token of the vocabulary.
struct WrongToken {
  int64_t at = 0; // which one
  std::string number;
};

/// Tokens from their bytes. The result is the first one that is outside of the vocabulary.
std::optional<WrongToken> Widen(const std::vector<char> &bytes, TokenType, int64_t vocab,
                                int32_t *to);

/// The head of a file of NumPy (.npy) with one axis of whole numbers.
struct NumpyHead {
  TokenType type;
  int64_t bytes = 0, count = 0; // of the head; numbers behind it
};

/// Nothing if the file does not begin so. Refuses other numbers and shapes.
absl::StatusOr<std::optional<NumpyHead>> ReadNumpyHead(const InputFile &);

} // namespace boa

#endif // BOA_RUNTIME_DATA_TOKEN_TYPE_H
