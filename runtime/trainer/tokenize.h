//===- tokenize.h - Texts as a shard of tokens ---------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes the format of llm.c. A header of 256 numbers of 32 bits begins with a magic number, a
// version and the count of tokens. Tokens of 16 bits follow, or of 32 for larger vocabularies.
//
// Texts are read in parts, so they may be larger than memory. The shard appears complete, or not
// at all.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_TOKENIZE_H
#define BOA_RUNTIME_TRAINER_TOKENIZE_H

#include "runtime/support/flags.h"

#include "absl/status/status.h"

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace boa {

struct TokenizeOptions {
  std::vector<std::string> texts;
  std::string tokenizer, output;
  bool special = false;         // the texts' special tokens count as such
  int64_t part_bytes = 4 << 20; // of a text, read at once
};

/// `--tokenizer`, which sampling has, too, and the flags of `boa tokenize`.
FlagTable TokenizeFlags(TokenizeOptions &options);

/// Ends with a line about the shard.
absl::Status Tokenize(const TokenizeOptions &options, std::ostream &out);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_TOKENIZE_H
