//===- PlanSummary.h - A plan and its costs, as text ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_PLANSUMMARY_H
#define BOA_TOOLS_PLAN_PLANSUMMARY_H

#include "runtime/view/wear.h"
#include "tools/plan/Search.h"

namespace boa {

struct PlanSummaryOptions {
  double tokens = 0; // a budget; 0: none
};

/// What the step takes and what bounds it, the time and energy of the run and of a budget of
/// tokens, the plan block, the place of each role with its reason, what more of each resource would
/// gain, and how it wears the SSDs.
std::string formatPlanSummary(Trials &trials, const FoundPlan &found,
                              const PlanSummaryOptions &options);

/// The time of a budget of tokens, and the energy of the run, as sentences without a full stop.
std::vector<std::string> costsOf(const FoundPlan &found, const PlanSummaryOptions &options);

/// The bytes that a step of the plan writes to each SSD.
Writes writesOf(const Trial &trial);

} // namespace boa

#endif // BOA_TOOLS_PLAN_PLANSUMMARY_H
