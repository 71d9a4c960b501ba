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
#include "runtime/generate/generator.h"

#include "absl/status/status.h"

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace boa {

struct SampleOptions {
  std::string prompt = "\n";
  int64_t length = 256;     // tokens; without a tokenizer, each is a byte
  double temperature = 0.8; // 0: always the likeliest token
  int64_t top_k = 0;        // among the k likeliest; 0: all
  double top_p = 1;         // among the fewest likeliest that have this share together
  int64_t seed = 1;
  std::vector<std::string> stop; // the text ends before the first of them
  std::string tokenizer;         // its file; "": bytes are tokens
  /// The prompt is a user's message, in the chat template of the tokenizer. The text is the answer.
  /// Special tokens in a message are text.
  bool chat = false;
  bool echo = true;    // write the prompt too, unless it is a message
  std::string logits;  // a file for those that each token is drawn from, in f32; "": none
  bool timing = false; // write a line about time, memory and traffic to the notes
};

/// Writes each byte to `out` at once; with a tokenizer, each whole character. A text that may be
/// the beginning of a stop string waits. A token that ends a text ends this one, and so does the
/// mark behind an answer. The notes say how much of a long prompt the model does not see.
absl::Status Sample(const Program &, const Kernels &, const GenerationEntries &,
                    const GenerationSource &, const SampleOptions &, std::ostream &out,
                    std::ostream &notes);

/// The token drawn from `count` logits, as temperature, top_k and top_p say; `unit` is uniform in
/// [0, 1).
int64_t PickToken(const float *logits, int64_t count, const SampleOptions &, double unit);

} // namespace boa

#endif // BOA_RUNTIME_GENERATE_SAMPLE_H
