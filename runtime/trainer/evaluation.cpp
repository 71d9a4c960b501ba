//===- evaluation.cpp - The validation loss -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/evaluation.h"

#include <algorithm>

namespace boa {

bool Evaluation::IsDue(int64_t step) const {
  const TrainSettings &settings = program.train;
  return settings.evaluate_every > 0 && settings.evaluate_batches > 0 && possible &&
         (step % settings.evaluate_every == 0 || step == settings.steps);
}

absl::StatusOr<std::optional<double>> Evaluation::Run(int64_t step) {
  if (absl::Status status = steps.ApplyUpdates(step); !status.ok())
    return status;
  if (absl::Status status = traffic.Settle(); !status.ok())
    return status;
  traffic.End();
  steps.engine().SetRunsEndEarly(true);
  absl::StatusOr<std::optional<double>> loss = MeanLoss(step);
  steps.engine().SetRunsEndEarly(false);
  traffic.Begin();
  return loss;
}

absl::StatusOr<std::optional<double>> Evaluation::MeanLoss(int64_t step) {
  const int64_t micro_batches = program.MicroBatches(),
                of_batch = micro_batches * program.MicroBatch();
  const int64_t total = (data.ValidationSequences() + of_batch - 1) / of_batch;
  double sum = 0;
  int64_t counted = 0;
  for (int64_t batch = 0; batch < total && !interrupt.interrupted(); ++batch) {
    MicroBatches batches(program);
    for (int64_t m = 0; m < micro_batches; ++m)
      if (absl::Status status =
              data.FillValidation(batch * micro_batches + m, batches.tokens[m].data(),
                                  batches.targets[m].data(), batches.StartsOf(m));
          !status.ok())
        return status;
    batches.CountTargets();
    if (absl::Status status = steps.Evaluate(step, batches); !status.ok())
      return status;
    sum += batches.TotalLoss();
    counted += batches.counted();
  }
  // Without a target there is no loss, and none that could be the best.
  if (interrupt.interrupted() || counted == 0)
    return std::nullopt;
  return sum / double(counted);
}

} // namespace boa
