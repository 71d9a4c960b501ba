//===- Fixture.h - A small specification to break -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A correct specification of a few lines. A test replaces one piece of it and
// quotes the whole of what the frontend then says.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FRONTEND_FIXTURE_H
#define BOA_TEST_FRONTEND_FIXTURE_H

#include "frontend/Frontend.h"

#include <gtest/gtest.h>

namespace boa::frontend {

inline const char *const kSpec =
    R"(model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = 2) {
  stage embed(tokens: [context] token) -> [context, width] {
    param wte: [vocab, width] = normal(0.02)
    return embedding(wte, tokens)
  }
  layer block(x: [context, width]) -> [context, width] repeat depth {
    param w: [width, 3 * width] = normal(0.02)
    param b: [3 * width] = zeros
    param g: [width] = ones
    let q, k, v = split(linear(rms_norm(x, g), w, b), 3)
    return x + attention(q, k, v, heads, causal)
  }
  stage head(x: [context, width], targets: [context] token) -> loss {
    return cross_entropy(linear(x, transpose(embed.wte)), targets)
  }
}
train tiny {
  data = "corpus.txt"
  batch = 8 sequences
  micro_batch = 2
  steps = 10
  optimizer = adamw(lr = 1e-3)
}
machine laptop {
  device cpu { memory = 256 MiB }
  ssd "state" { read = 200 MB/s  write = 100 MB/s }
}
)";

/// The specification with its only `from` replaced by `to`.
inline std::string edited(const std::string &from, const std::string &to) {
  std::string text = kSpec;
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "not in the specification: " << from;
  EXPECT_EQ(text.find(from, at + 1), std::string::npos) << "more than once: " << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

inline FrontendResult compileText(const std::string &text,
                                  const std::vector<std::string> &overrides = {}) {
  return compileTexts({{"tiny.boa", text}}, overrides);
}

/// What is said when `from` is replaced by `to`.
inline std::string refusal(const std::string &from, const std::string &to) {
  return compileText(edited(from, to)).diagnostics;
}

/// What is said of overrides of the correct specification.
inline std::string overrideRefusal(const std::string &text) {
  return compileText(kSpec, {text}).diagnostics;
}

} // namespace boa::frontend

#endif // BOA_TEST_FRONTEND_FIXTURE_H
