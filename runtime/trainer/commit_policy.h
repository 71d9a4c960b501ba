//===- commit_policy.h - When a commit is due -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A commit is due after every `commit_every` steps, and after a step during which
// `commit_seconds` have passed since the last commit.
//
// Ownership: numbers only. The settings must outlive it.
// Threads: one, the driver.
// Errors: none.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_COMMIT_POLICY_H
#define BOA_RUNTIME_TRAINER_COMMIT_POLICY_H

#include "runtime/abi/program.h"

#include <chrono>
#include <cstdint>

namespace boa {

class CommitPolicy {
public:
  using Time = std::chrono::steady_clock::time_point;

  /// `now`: the time from which `commit_seconds` count until the first commit.
  CommitPolicy(const TrainSettings &settings, Time now) : settings(settings), last(now) {}

  /// Whether a commit is due after this step, which may still run. Steps are asked about in
  /// order. Time passes between two calls, but a step that was due stays due.
  bool IsDue(int64_t step, Time now);
  void Committed(Time now) { last = now; }

private:
  const TrainSettings &settings;
  Time last;
  int64_t timed = 0; // the newest step after which the time was over
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_COMMIT_POLICY_H
