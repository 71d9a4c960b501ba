//===- linear.h - A model small enough to write by hand ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bigram model as the compiler would hand it to the runtime: the logits of the
// next byte are the row of a [64, 64] table that the present byte names. One
// group, one entry of two chunks, everything on SSD or everything in memory. With
// delay 0.5 the update of the second chunk happens in the next step.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_TRAINER_LINEAR_H
#define BOA_TEST_RUNTIME_TRAINER_LINEAR_H

#include "runtime/trainer/trainer.h"

#include <functional>
#include <string>
#include <vector>

namespace boa::linear {

struct Options {
  std::string data = "text";
  std::string tier = "ssd"; // of weights and optimizer state
  std::string weight_type = "f32";
  int64_t chunk_elements =
      2048; // or more: then the table ends in the first chunk, or in the second
  bool delayed = false;
  int64_t steps = 20;
  int64_t seed = 1;
  int64_t commit_every = 0, evaluate_every = 0;
  int64_t device_memory = 0; // the machine's limit
  double clip = 0;
  double commit_seconds = 0;
  int64_t commit_keep = 1;
  std::string nonfinite = "stop";
  std::vector<std::string> paths; // of the machine's ssd; --state stands for the first
};

/// The JSON of the program.
std::string Descriptor(const Options &);
/// Of the program that `sample` runs: one sequence, all in memory.
std::string PredictDescriptor();

extern const Kernels kKernels;
/// For tables of either type and either time of update.
EntryPoints Entries(const Options &);
void Predict(boa_context *, int64_t step, int64_t pending);

/// A text over 64 bytes in which the next byte follows from the present one but
/// for a little noise.
std::string Text(size_t bytes);

/// The kernel of an evaluation calls it first; null: it calls nothing.
extern std::function<void()> on_forward;

/// The training kernel writes NaN from this call on; negative: never.
extern int64_t poison_after;

} // namespace boa::linear

#endif // BOA_TEST_RUNTIME_TRAINER_LINEAR_H
