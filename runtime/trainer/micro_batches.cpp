//===- micro_batches.cpp - The data of one step ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/micro_batches.h"

#include "runtime/support/random.h"

#include <algorithm>
#include <numeric>

namespace boa {

MicroBatches::MicroBatches(const Program &program)
    : tokens(program.MicroBatches(),
             std::vector<int32_t>(program.MicroBatch() * program.model.context)),
      targets(tokens), counts(tokens.size()), loss_gradients(tokens.size()), losses(tokens.size()) {
  if (program.TakesDocuments())
    document_starts = tokens;
  for (const Storage &storage : program.storages)
    if (storage.role == "dropout_keys")
      dropout_keys.assign(size_t(storage.entry_count()), tokens[0]);
}

void MicroBatches::SetDropoutKeys(const Program &program, int64_t step) {
  constexpr uint64_t kDropout = 0x64726f70; // apart from other uses of the seed
  const int64_t context = program.model.context, batch = int64_t(tokens.size());
  const uint64_t of_step = Hash({kDropout, uint64_t(program.train.seed), uint64_t(step)});
  for (size_t entry = 0; entry < dropout_keys.size(); ++entry)
    for (size_t i = 0; i < dropout_keys[entry].size(); ++i) {
      // The sequence counts in its step, whatever micro-batch it is in.
      const uint64_t layer = entry / uint64_t(batch), m = entry % uint64_t(batch),
                     sequence = m * uint64_t(program.MicroBatch()) + i / uint64_t(context);
      const uint64_t hash = Hash({of_step, layer, sequence, i % uint64_t(context)});
      dropout_keys[entry][i] = int32_t(std::max<uint32_t>(uint32_t(hash >> 32), 1));
    }
}

int64_t MicroBatches::counted() const {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

void MicroBatches::CountTargets() {
  for (size_t m = 0; m < counts.size(); ++m)
    counts[m] = std::count_if(targets[m].begin(), targets[m].end(),
                              [](int32_t target) { return target >= 0; });
  const double all = double(std::max<int64_t>(counted(), 1));
  for (size_t m = 0; m < counts.size(); ++m)
    loss_gradients[m] = float(double(counts[m]) / all);
}

double MicroBatches::TotalLoss() const {
  double sum = 0;
  for (size_t m = 0; m < counts.size(); ++m)
    sum += double(counts[m]) * losses[m];
  return sum;
}

double MicroBatches::MeanLoss() const {
  return TotalLoss() / double(std::max<int64_t>(counted(), 1));
}

} // namespace boa
