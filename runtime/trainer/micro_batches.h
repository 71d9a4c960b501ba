//===- micro_batches.h - The data of one step -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_MICRO_BATCHES_H
#define BOA_RUNTIME_TRAINER_MICRO_BATCHES_H

#include "runtime/abi/program.h"

#include <cstdint>
#include <vector>

namespace boa {

/// Tokens and targets for one call of an entry point, and the losses that it returns. The loss of
/// the call is the mean over its counted targets (not negative), however it is cut into
/// micro-batches: each of them has the weight of its targets.
struct MicroBatches {
  explicit MicroBatches(const Program &);
  /// Of one micro-batch; null where the program takes none.
  int32_t *StartsOf(int64_t micro_batch) {
    return document_starts.empty() ? nullptr : document_starts[size_t(micro_batch)].data();
  }
  /// The keys of dropout for a step that trains. Without a call they are 0, and nothing is dropped.
  void SetDropoutKeys(const Program &, int64_t step);
  /// Comes after the targets are filled in.
  void CountTargets();
  int64_t counted() const; // targets of all micro-batches
  /// Sum over the counted targets.
  double TotalLoss() const;
  /// 0 if no target is counted.
  double MeanLoss() const;

  std::vector<std::vector<int32_t>> tokens, targets; // [micro_batches][micro_batch * context]
  /// The same, of a program whose attention is within documents: the positions where they begin.
  std::vector<std::vector<int32_t>> document_starts;
  /// The same for each layer, if the program has dropout: [layers * micro_batches][...].
  std::vector<std::vector<int32_t>> dropout_keys;
  std::vector<int64_t> counts;       // [micro_batches] of targets
  std::vector<float> loss_gradients; // [micro_batches] shares of the counts
  std::vector<float> losses;         // [micro_batches] means over their targets
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_MICRO_BATCHES_H
