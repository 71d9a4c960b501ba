//===- continuation.h - Token by token, until a text ends -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_GENERATE_CONTINUATION_H
#define BOA_RUNTIME_GENERATE_CONTINUATION_H

#include "runtime/abi/program.h"
#include "runtime/generate/codec.h"
#include "runtime/generate/generator.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace boa {

/// How a token is drawn. The same seed gives the same text.
struct DrawOptions {
  double temperature = 0.8; // 0: always the likeliest token
  int64_t top_k = 0;        // among the k likeliest; 0: all
  double top_p = 1;         // among the fewest likeliest that have this share together
  int64_t seed = 1;
};

/// Refuses a program with masked training, which predicts no next token.
absl::Status CheckContinues(const Program &);
/// Refuses values outside their ranges.
absl::Status Check(const DrawOptions &);

/// The token drawn from `count` logits; `unit` is uniform in [0, 1).
int64_t PickToken(const float *logits, int64_t count, const DrawOptions &, double unit);

struct ContinuedText {
  enum class End { itself, length, signal };
  End end = End::length;
  int64_t tokens = 0;
  std::string text;
  double first_seconds = 0, seconds = 0; // until the first token, and from there
};

/// Called with the logits that each token is drawn from. An error ends the text.
using LogitsReader = std::function<absl::Status(const float *)>;

/// Appends at most `length` tokens to a text that the codec encoded last. Writes each byte to `out`
/// at once; with a tokenizer, each whole character. A text that may be the beginning of a stop
/// string waits. It ends by itself at a token that ends a text, at a stop string, and at the mark
/// behind an answer. Between two tokens it looks for a signal (Interrupted).
absl::StatusOr<ContinuedText> Continue(Generator &, Codec &, const DrawOptions &, int64_t length,
                                       std::vector<int32_t> &text, std::ostream &out,
                                       const LogitsReader &reader = {});

} // namespace boa

#endif // BOA_RUNTIME_GENERATE_CONTINUATION_H
