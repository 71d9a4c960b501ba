//===- gguf_tokenizer.h - The tokenizer in a GGUF file ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_GGUF_TOKENIZER_H
#define BOA_RUNTIME_WEIGHTS_GGUF_TOKENIZER_H

#include "absl/status/statusor.h"

#include <map>
#include <string>

namespace boa {

/// The files by which transformers has the tokenizer of a GGUF file: names and texts. Empty if
/// this function cannot write it: of SentencePiece, or with split patterns that are not common.
/// Such a file can still be read itself (runtime/tokenizer).
absl::StatusOr<std::map<std::string, std::string>> TokenizerOfGguf(const std::string &path);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_GGUF_TOKENIZER_H
