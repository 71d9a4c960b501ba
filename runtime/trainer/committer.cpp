//===- committer.cpp - Commits the state after a step ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/committer.h"

#include "runtime/abi/settings.h"
#include "runtime/state/checksum.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <chrono>
#include <cmath>
#include <utility>

namespace boa {

/// All that a validation loss depends on but for the weights, as one number.
std::string Committer::ValidatedOn() const {
  std::string text =
      absl::StrCat(program.computation.hash, "\n", WordOf(program.train.objective), "\n",
                   data.ValidationSequences(), "\n", program.model.context, "\n");
  if (program.TakesDocuments())
    absl::StrAppend(&text, "within documents\n");
  for (const auto &[key, value] : data.facts())
    absl::StrAppend(&text, key, "=", value, "\n");
  return absl::StrFormat("%016x", Checksum(text.data(), int64_t(text.size())));
}

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
  const std::string validated_on = ValidatedOn();
  if (!validation_loss && step == state.Committed().step && // it is committed again
      validated_on == state.Committed().validated_on)
    validation_loss = state.Committed().validation_loss;
  if (validation_loss && std::isfinite(*validation_loss)) {
    record.validation_loss = validation_loss;
    record.validated_on = validated_on;
  }
  if (absl::Status status = steps.engine().Commit(std::move(record)); !status.ok())
    return status;
  last = step;
  policy.Committed(std::chrono::steady_clock::now());
  if (counting)
    traffic.Begin();
  return absl::OkStatus();
}

} // namespace boa
