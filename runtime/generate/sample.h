//===- sample.h - Text from a trained model ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Continues a text byte by byte, or token by token of a tokenizer (generator.h). The same seed
// gives the same text.
//
// Refuses a program with masked training, which predicts no next byte, and weights of
// another model.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_GENERATE_SAMPLE_H
#define BOA_RUNTIME_GENERATE_SAMPLE_H

#include "runtime/abi/program.h"
#include "runtime/generate/continuation.h"

#include "absl/status/status.h"

#include <cstdint>
#include <ostream>
#include <string>

namespace boa {

struct SampleOptions : CodecOptions, DrawOptions {
  std::string prompt = "\n";
  int64_t length = 256; // tokens; without a tokenizer, each is a byte
  /// The prompt is a user's message, in the chat template. The text is the answer. Special tokens
  /// in a message are text.
  bool chat = false;
  bool echo = true;    // write the prompt too, unless it is a message
  std::string logits;  // a file for those that each token is drawn from, in f32; "": none
  bool timing = false; // write a line about time, memory and traffic to the notes
};

/// Writes the text to `out` (Continue). The notes say how much of a long prompt the model does not
/// see, and whether the tokenizer is not that of the state's data.
absl::Status Sample(const Program &, const Kernels &, const GenerationEntries &,
                    const GenerationSource &, const SampleOptions &, std::ostream &out,
                    std::ostream &notes);

} // namespace boa

#endif // BOA_RUNTIME_GENERATE_SAMPLE_H
