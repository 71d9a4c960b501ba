//===- StoredPlan.h - The plan that a state holds ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan that was chosen is stored with each commit, as a plan block, and so is the block for which
// it was chosen. A resumed run takes the stored plan, so that its bits do not change with the
// machine file or with the planner.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_STOREDPLAN_H
#define BOA_TOOLS_PLAN_STOREDPLAN_H

#include "runtime/trainer/trainer.h"
#include "tools/Compiler.h"

#include "absl/status/status.h"

namespace boa {

struct StoredPlanOptions {
  bool choose = false; // a plan, unless the state has one
  bool again = false;  // a plan, whatever the state has
};

/// Puts the plan of a training behind the texts of `compile`, and into `train`: the one that its
/// state has, or one that is chosen now. Where neither is asked for, nothing changes.
absl::Status usePlan(const StoredPlanOptions &options, CompileRequest &compile,
                     TrainerOptions &train);

/// For a run that trains nothing: the plan of the state, if the spec's block is still that for
/// which it was chosen.
absl::Status useStoredPlan(CompileRequest &compile, const TrainerOptions &train);

} // namespace boa

#endif // BOA_TOOLS_PLAN_STOREDPLAN_H
