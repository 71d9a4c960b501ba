//===- sequence_text.h - A sequence as text ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a model reads, for a person to look at. Learnt tokens are marked. Newlines are written as
// \n, and break the line. Other control characters, and bytes that are no text, are written as
// \xNN. A backslash stands before text that spells an added token but is none: \<|im_end|>.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_SEQUENCE_TEXT_H
#define BOA_RUNTIME_TRAINER_SEQUENCE_TEXT_H

#include "runtime/data/data.h"
#include "runtime/tokenizer/tokenizer.h"

#include <memory>
#include <string>

namespace boa {

enum class Marks {
  brackets, // [learnt], with \[ and \] for brackets of the text
  colours   // for a terminal
};

/// Added tokens are written as in a text. Of masked tokens, `[shown=learnt]` has both. Without a
/// tokenizer, tokens are bytes, or numbers if the source is not of bytes.
std::string TextOfSequence(const Data::Sequence &, bool masked,
                           const std::shared_ptr<const Tokenizer> &, Marks);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_SEQUENCE_TEXT_H
