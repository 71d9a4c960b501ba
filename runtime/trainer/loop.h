//===- loop.h - The loop over steps -----------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs steps to the last one, with evaluations and commits between them. The next step is
// enqueued before the last has ended, unless an evaluation or a commit comes between. An
// interrupt, or a metrics file that cannot be written, ends the loop after the step in
// progress, with a commit.
//
// Ownership: none. All parts that it gets must outlive it.
// Threads: one, the driver.
// Errors: each names the step and the last commit. kCancelled: interrupted. A loss that is
// not finite is an error, and nothing of that step is committed.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_LOOP_H
#define BOA_RUNTIME_TRAINER_LOOP_H

#include "runtime/trainer/commit_policy.h"
#include "runtime/trainer/committer.h"
#include "runtime/trainer/evaluation.h"
#include "runtime/trainer/process.h"
#include "runtime/trainer/request.h"
#include "runtime/trainer/run_report.h"
#include "runtime/trainer/step_queue.h"
#include "runtime/trainer/step_traffic.h"

#include "absl/status/status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace boa {

class TrainingLoop {
public:
  struct Parts {
    const TrainRequest &request;
    const InterruptGuard &interrupt;
    StepQueue &steps;
    StepTraffic &traffic;
    Evaluation &evaluation;
    CommitPolicy &policy;
    Committer &committer;
    RunReport &report;
  };

  /// `first`: steps that were done before.
  TrainingLoop(const Parts &parts, int64_t first) : parts(parts), done(first) {}

  absl::Status Run();
  /// Steps that are done.
  int64_t step() const { return done; }
  /// Of an evaluation after that step.
  std::optional<double> validation_loss() const { return validated; }
  /// Adds the last commit to an error, and the step unless it names one.
  absl::Status AtStep(const absl::Status &) const;

private:
  absl::Status AtStep(const absl::Status &, int64_t step) const;
  absl::Status RunOne();
  absl::Status Stop();
  absl::Status EnqueueNext();
  absl::Status FinishStep();
  void NoteStop(const std::string &waits_for) const;
  absl::Status CheckFinite(const FinishedStep &);
  bool IsEnding() const;
  bool NextFollowsDirectly();
  bool IsCommitDue(int64_t step);

  const Parts parts;
  int64_t done;
  std::optional<double> validated; // the validation loss of the step that was done last
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_LOOP_H
