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

/// The files by which transformers has the tokenizer of a GGUF file: names and texts. They give
/// the tokens that the file itself gives (runtime/tokenizer), and name those that end a text. Of
/// SentencePiece, text behind a special token begins with a space, as in the published files.
/// FailedPrecondition, with the reason, if the file has no tokenizer that Boa can read and write.
absl::StatusOr<std::map<std::string, std::string>> TokenizerOfGguf(const std::string &path);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_GGUF_TOKENIZER_H
