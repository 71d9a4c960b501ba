//===- sample.h - Text from a trained model ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Continues a text byte by byte, or token by token of a tokenizer. The program is one compiled for
// it: one sequence, every storage in memory, an entry point that leaves the logits, [context,
// vocab] f32, in the storage with role "logits". The same seed gives the same text.
//
// Refuses a program with masked training, which predicts no next byte, and weights of
// another model.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_SAMPLE_H
#define BOA_RUNTIME_TRAINER_SAMPLE_H

#include "runtime/abi/abi.h"
#include "runtime/abi/program.h"

#include "absl/status/status.h"

#include <cstdint>
#include <ostream>
#include <string>

namespace boa {

struct SampleOptions {
  std::string prompt = "\n";
  int64_t length = 256;     // tokens; without a tokenizer, each is a byte
  double temperature = 0.8; // 0: always the likeliest token
  int64_t top_k = 0;        // among the k likeliest; 0: all
  int64_t seed = 1;
  std::string tokenizer; // its file; "": bytes are tokens
  /// The prompt is a user's message, in the chat template of the tokenizer. The text is the answer.
  bool chat = false;
  bool echo = true;           // write the prompt too, unless it is a message
  bool changed_model = false; // also weights of another computation
};

/// Writes each byte to `out` at once; with a tokenizer, each whole character. A token that ends a
/// text ends this one.
absl::Status Sample(const Program &, const Kernels &, boa_entry_point predict,
                    const std::string &weights, const SampleOptions &, std::ostream &out);

/// The token drawn from `count` logits; `unit` is uniform in [0, 1).
int64_t PickToken(const float *logits, int64_t count, double temperature, int64_t top_k,
                  double unit);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_SAMPLE_H
