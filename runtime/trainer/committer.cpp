//===- committer.cpp - Commits the state after a step ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/committer.h"

#include <chrono>
#include <cmath>
#include <utility>

namespace boa {

absl::Status Committer::Commit(int64_t step, std::optional<double> validation_loss) {
  if (absl::Status status = steps.ApplyUpdates(step); !status.ok())
    return status;
  if (absl::Status status = traffic.Settle(); !status.ok())
    return status;
  const bool counting = traffic.IsCounting();
  traffic.End();
  CommitRecord record;
  record.step = step;
  record.time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  record.extra = settings;
  record.plan = program.ScheduleInWords();
  record.environment = steps.engine().Environment();
  record.samples = CountSamples(state.Committed(), data.Consumed(state.Committed().step, step));
  if (!validation_loss && step == state.Committed().step) // it is committed again
    validation_loss = state.Committed().validation_loss;
  if (validation_loss && std::isfinite(*validation_loss))
    record.validation_loss = validation_loss;
  if (absl::Status status = steps.engine().Commit(std::move(record)); !status.ok())
    return status;
  last = step;
  policy.Committed(std::chrono::steady_clock::now());
  if (counting)
    traffic.Begin();
  return absl::OkStatus();
}

} // namespace boa
