//===- scored.h - Vocabularies whose tokens have scores ------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SentencePiece BPE, in its own files and in GGUF: of two neighbours the pair is merged whose
// text is the token of the highest score.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TOKENIZER_SCORED_H
#define BOA_RUNTIME_TOKENIZER_SCORED_H

#include "runtime/tokenizer/definition.h"

#include "absl/status/statusor.h"

#include <string>
#include <vector>

namespace boa {

/// As both formats number them.
enum class TokenType { normal = 1, unknown, control, user_defined, unused, byte };

struct ScoredTokens {
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<TokenType> types;
  bool prefix_space = true; // before the text
  bool remove_extra_spaces = false;
  int32_t bos = 1, eos = 2;
  bool add_bos = false, add_eos = false;
};

absl::StatusOr<Definition> ToDefinition(ScoredTokens tokens, const std::string &source);

} // namespace boa

#endif // BOA_RUNTIME_TOKENIZER_SCORED_H
