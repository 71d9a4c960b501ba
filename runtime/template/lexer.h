//===- lexer.h - The tokens of a template --------------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TEMPLATE_LEXER_H
#define BOA_RUNTIME_TEMPLATE_LEXER_H

#include "runtime/template/source.h"
#include "runtime/template/value.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace boa::jinja {

struct Token {
  enum class Kind { data, block_begin, block_end, print_begin, print_end, name, literal, op, end };
  Kind kind;
  int32_t at;       // byte of the source
  std::string text; // of data, names and operators
  Value value;      // of literals
};

/// White space is controlled as by jinja2 with trim_blocks and lstrip_blocks. The last token is
/// `end`. The source's lines end in \n.
absl::StatusOr<std::vector<Token>> Tokenize(const Source &source);

} // namespace boa::jinja

#endif // BOA_RUNTIME_TEMPLATE_LEXER_H
