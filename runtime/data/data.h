//===- data.h - Batches from a text -----------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A text as bytes, one token each. The last tenth is for validation. The text stays in
// its file, so it may be larger than memory.
//
// Sampling keeps no state. The sequences of a step are hashes of (seed, step, sequence of
// the step), so a resumed run reads the same ones as an unbroken run. Micro-batches only
// cut a step into parts. Every masked sequence predicts round(mask_probability * context)
// positions, and at least one.
//
// Refuses a text that does not exist, or that has a byte outside of the vocabulary, or
// whose training part is shorter than a sequence. If the run evaluates, the validation
// part must hold a sequence, too.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_DATA_H
#define BOA_RUNTIME_DATA_DATA_H

#include "runtime/abi/program.h"
#include "runtime/io/input_file.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <string>

namespace boa {

/// Where sequences come from, and their shape. Members as in the table of settings.
struct DataOptions {
  std::string data;
  Objective objective = Objective::next_token;
  double mask_probability = 0.15;
  int64_t mask_token = 0;
  int64_t vocab = 256, context = 0;
  int64_t micro_batch = 0, micro_batches = 0; // sequences; of a step
  int64_t seed = 1;
  int64_t evaluate_every = 0, evaluate_batches = 0;

  DataOptions() = default;
  explicit DataOptions(const Program &);
};

/// A note if the vocabulary has tokens that no text holds; otherwise "".
std::string DescribeUnusedTokens(const DataOptions &);

class Data {
public:
  static absl::StatusOr<Data> Open(const DataOptions &);

  /// One micro-batch of a training step: [micro_batch, context] each.
  absl::Status FillTraining(int64_t step, int64_t micro_batch, int32_t *tokens,
                            int32_t *targets) const;
  /// One micro-batch of the `evaluate_batches` batches of validation. Every evaluation has the
  /// same sequences. They are spread evenly over the validation part.
  absl::Status FillValidation(int64_t micro_batch, int32_t *tokens, int32_t *targets) const;

  int64_t training_bytes() const { return training; }
  int64_t validation_bytes() const { return file.size() - training; }
  /// A hash of the text's size and of up to 16 MiB spread over it. A resumed run compares it.
  absl::StatusOr<uint64_t> Fingerprint() const;

private:
  absl::Status FillSequence(int64_t start, uint64_t key, int32_t *tokens, int32_t *targets) const;
  void Mask(uint64_t key, int32_t *tokens, int32_t *targets) const;

  DataOptions options;
  InputFile file;
  int64_t training = 0; // bytes before the validation part
};

} // namespace boa

#endif // BOA_RUNTIME_DATA_DATA_H
