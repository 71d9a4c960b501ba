//===- steps.h - Normalisers and pre-tokenizers --------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TOKENIZER_STEPS_H
#define BOA_RUNTIME_TOKENIZER_STEPS_H

#include "runtime/tokenizer/definition.h"

#include "absl/strings/string_view.h"

#include <deque>
#include <string>
#include <vector>

namespace boa {

std::string ApplyNormalizer(const NormalizerStep &step, absl::string_view text);

/// The pieces of a text, and the storage of pieces that are no part of it.
struct Pieces {
  std::vector<absl::string_view> list;
  std::deque<std::string> owned;
};
/// Splits each piece further. `is_first`: the first piece begins the whole text.
void ApplySplit(const SplitStep &step, bool is_first, Pieces &pieces);

} // namespace boa

#endif // BOA_RUNTIME_TOKENIZER_STEPS_H
