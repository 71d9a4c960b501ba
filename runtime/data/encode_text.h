//===- encode_text.h - Tokens of a text that may be larger than memory -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A text is read in parts, cut where no token goes across (Tokenizer::FindCut). A byte order mark
// at the beginning of its file is left out.
//
// Threads: one. Errors: each names the file, and the byte and line where it can.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_ENCODE_TEXT_H
#define BOA_RUNTIME_DATA_ENCODE_TEXT_H

#include "runtime/io/input_file.h"
#include "runtime/tokenizer/tokenizer.h"

#include "absl/status/status.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace boa {

struct TextOptions {
  bool special = false;                                // the text's special tokens count as such
  int64_t part_bytes = 4 << 20;                        // read at once
  int64_t vocab = std::numeric_limits<int32_t>::max(); // a token beyond it is an error
};

/// Gives the tokens to `take`, part by part, and calls `show` with the bytes that were read. An
/// error of either ends the work.
absl::Status EncodeText(const InputFile &, const TextOptions &,
                        const std::shared_ptr<const Tokenizer> &, Encoder &,
                        const std::function<absl::Status(const std::vector<int32_t> &)> &take,
                        const std::function<absl::Status(int64_t)> &show);

/// The first token that a vocabulary lacks; -1 if it has all.
int32_t FindBeyond(const std::vector<int32_t> &tokens, int64_t vocab);

} // namespace boa

#endif // BOA_RUNTIME_DATA_ENCODE_TEXT_H
