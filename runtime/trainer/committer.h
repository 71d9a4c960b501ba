//===- committer.h - Commits the state after a step -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ownership: none. All parts that it gets must outlive it.
// Threads: one, the driver.
// Errors: those of the engine and of the state. After one, the last commit is as before.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_COMMITTER_H
#define BOA_RUNTIME_TRAINER_COMMITTER_H

#include "runtime/abi/program.h"
#include "runtime/state/state.h"
#include "runtime/trainer/commit_policy.h"
#include "runtime/trainer/loss_settings.h"
#include "runtime/trainer/step_queue.h"
#include "runtime/trainer/step_traffic.h"

#include "absl/status/status.h"

#include <cstdint>
#include <optional>

namespace boa {

class Committer {
public:
  /// `last`: the step of the opened commit; 0: there is none.
  Committer(const Program &program, const Data &data, const Settings &settings,
            const StateStore &state, StepQueue &steps, StepTraffic &traffic, CommitPolicy &policy,
            int64_t last)
      : program(program), data(data), settings(settings), state(state), steps(steps),
        traffic(traffic), policy(policy), last(last) {}

  /// Commits the state after this step. Applies delayed updates first, because a commit holds
  /// none. No step may be enqueued. `validation_loss`: of an evaluation after this step.
  absl::Status Commit(int64_t step, std::optional<double> validation_loss);
  /// The step of the last commit.
  int64_t committed() const { return last; }

private:
  std::string ValidatedOn() const;

  const Program &program;
  const Data &data;
  const Settings &settings;
  const StateStore &state;
  StepQueue &steps;
  StepTraffic &traffic;
  CommitPolicy &policy;
  int64_t last;
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_COMMITTER_H
