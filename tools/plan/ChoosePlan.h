//===- ChoosePlan.h - The fastest plan, or why there is none ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_CHOOSEPLAN_H
#define BOA_TOOLS_PLAN_CHOOSEPLAN_H

#include "tools/plan/Search.h"

#include "absl/status/statusor.h"

namespace boa {

/// The fastest plan. Fails if the machine does not say how fast it is, if no plan is possible, or
/// if none fits: then with the nearest changes that do, each of which was tried. An empty message:
/// diagnostics were printed.
absl::StatusOr<FoundPlan> choosePlan(Trials &trials);

} // namespace boa

#endif // BOA_TOOLS_PLAN_CHOOSEPLAN_H
