//===- micro_batches.cpp - The data of one step ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/micro_batches.h"

#include <algorithm>
#include <numeric>

namespace boa {

MicroBatches::MicroBatches(const Program &program)
    : tokens(program.MicroBatches(),
             std::vector<int32_t>(program.MicroBatch() * program.model.context)),
      targets(tokens), counts(tokens.size()), loss_gradients(tokens.size()), losses(tokens.size()) {
  if (program.TakesDocuments())
    document_starts = tokens;
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
