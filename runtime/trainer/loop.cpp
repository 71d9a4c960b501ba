//===- loop.cpp - The loop over steps -------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/loop.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

namespace boa {

absl::Status TrainingLoop::Run() {
  parts.traffic.Begin();
  while (done < parts.request.program().train.steps) {
    if (IsEnding() && parts.steps.IsEmpty())
      return Stop();
    if (absl::Status status = RunOne(); !status.ok())
      return status;
  }
  return AtStep(parts.steps.ApplyUpdates(done));
}

/// What a signal would have to wait for, from now on.
void TrainingLoop::NoteStop(const std::string &waits_for) const {
  SetStopNote(absl::StrCat("stopping: waits for ", waits_for,
                           "; a second signal ends at once, and step ", parts.committer.committed(),
                           " is then the last one in `", parts.request.directories()[0], "`\n"));
}

/// Ends the loop before its last step.
absl::Status TrainingLoop::Stop() {
  if (parts.committer.committed() != done)
    if (absl::Status status = parts.committer.Commit(done, validated); !status.ok())
      return AtStep(status);
  if (!parts.report.status().ok())
    return AtStep(parts.report.status());
  const TrainRequest &request = parts.request;
  return InterruptedError(parts.interrupt.signal(),
                          absl::StrCat("interrupted after step ", done, " of ",
                                       request.program().train.steps, ", which is committed in `",
                                       request.directories()[0],
                                       "`; the same command with --resume continues"));
}

absl::Status TrainingLoop::RunOne() {
  if (parts.steps.IsEmpty())
    if (absl::Status status = EnqueueNext(); !status.ok())
      return status;
  if (!parts.steps.IsEmpty() && NextFollowsDirectly()) {
    if (absl::Status status = parts.steps.WaitToEnqueue(); !status.ok())
      return AtStep(status);
    if (!IsEnding())
      if (absl::Status status = EnqueueNext(); !status.ok())
        return status;
  }
  if (parts.steps.IsEmpty()) // a signal ended the wait for its data
    return absl::OkStatus();
  if (absl::Status status = FinishStep(); !status.ok())
    return status;
  // If a commit is due, NextFollowsDirectly has seen it, and no step is enqueued.
  if (!parts.steps.IsEmpty() || !IsCommitDue(done))
    return absl::OkStatus();
  NoteStop(absl::StrCat("the commit of step ", done));
  return AtStep(parts.committer.Commit(done, validated));
}

bool TrainingLoop::IsEnding() const {
  return parts.interrupt.interrupted() || !parts.report.status().ok();
}

bool TrainingLoop::IsCommitDue(int64_t step) {
  return parts.policy.IsDue(step, std::chrono::steady_clock::now());
}

/// Whether nothing comes between the step that runs and the next one.
bool TrainingLoop::NextFollowsDirectly() {
  const int64_t running = parts.steps.oldest();
  return running < parts.request.program().train.steps && !parts.evaluation.IsDue(running) &&
         !IsCommitDue(running);
}

/// Enqueues nothing if a signal comes before its data.
absl::Status TrainingLoop::EnqueueNext() {
  const int64_t next = done + (parts.steps.IsEmpty() ? 1 : 2);
  // While a step is enqueued, most of it runs.
  NoteStop(
      absl::StrCat("step ", next, " of ", parts.request.program().train.steps, " and its commit"));
  absl::Status status = parts.steps.Enqueue(next);
  return SignalOf(status) != 0 ? absl::OkStatus() : AtStep(status, next);
}

/// Waits for the oldest step, evaluates, and reports.
absl::Status TrainingLoop::FinishStep() {
  ++done;
  absl::StatusOr<FinishedStep> finished = parts.steps.Finish();
  if (!finished.ok())
    return AtStep(finished.status());
  if (const std::string remark = parts.steps.engine().TakeRemark(); !remark.empty())
    parts.report.Say(absl::StrCat("step ", done, ": ", remark));
  if (absl::Status status = CheckFinite(*finished); !status.ok())
    return status;
  validated.reset();
  if (parts.evaluation.IsDue(done)) {
    NoteStop(absl::StrCat("the commit of step ", done));
    absl::StatusOr<std::optional<double>> loss = parts.evaluation.Run(done);
    if (!loss.ok())
      return AtStep(loss.status());
    validated = *loss;
  }
  // Transfers that end after a step count for the next one. The last step has no next.
  if (done == parts.request.program().train.steps)
    if (absl::Status status = parts.traffic.Settle(); !status.ok())
      return AtStep(status);
  parts.traffic.Count(finished->run);
  parts.report.Step(*finished, validated, parts.traffic.TakeCounters(), parts.steps.engine());
  return absl::OkStatus();
}

/// A program may leave out steps whose gradient is not finite. Any other loss that is not finite
/// ends the run.
absl::Status TrainingLoop::CheckFinite(const FinishedStep &finished) {
  const double loss = finished.loss;
  if (finished.gradient_norm && !std::isfinite(*finished.gradient_norm)) {
    parts.report.Say(absl::StrCat("step ", done, " is left out: its gradient is not finite (loss ",
                                  loss, "); weights and moments stay as they were"));
  } else if (!std::isfinite(loss)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the loss of step ", done, " is ", std::isnan(loss) ? "nan" : "infinite",
                     "; nothing of it is kept: the last committed step is ",
                     parts.committer.committed(), " in `", parts.request.directories()[0],
                     "`. The same settings lead here again; a lower learning rate, a longer "
                     "warm-up or gradient clipping may not"));
  }
  return absl::OkStatus();
}

absl::Status TrainingLoop::AtStep(const absl::Status &status) const { return AtStep(status, done); }

/// Whether an error is of a step that it names, which may be an earlier one: a delayed update.
static bool NamesStep(absl::string_view message) {
  constexpr absl::string_view kStep = " step ";
  const size_t at = message.find(kStep);
  return at != message.npos && at + kStep.size() < message.size() &&
         absl::ascii_isdigit(uint8_t(message[at + kStep.size()]));
}

absl::Status TrainingLoop::AtStep(const absl::Status &status, int64_t step) const {
  if (status.ok())
    return status;
  const std::string &directory = parts.request.directories()[0];
  return absl::Status(
      status.code(),
      absl::StrCat(NamesStep(status.message()) ? "" : absl::StrCat("step ", step, ": "),
                   status.message(), "; the last committed step is ", parts.committer.committed(),
                   " in `", directory,
                   // The damaged data may be a part of that commit.
                   absl::IsDataLoss(status) ? absl::StrCat("`; `boa state ", directory,
                                                           " --check` says whether it is whole")
                                            : "`, and --resume continues from it"));
}

} // namespace boa
