//===- commit_policy.cpp - When a commit is due ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/commit_policy.h"

#include <algorithm>

namespace boa {

bool CommitPolicy::IsDue(int64_t step, Time now) {
  if (settings.commit_every > 0 && step % settings.commit_every == 0)
    return true;
  const std::chrono::duration<double> since = now - last;
  if (settings.commit_seconds > 0 && since.count() >= settings.commit_seconds)
    timed = std::max(timed, step);
  return timed == step;
}

} // namespace boa
