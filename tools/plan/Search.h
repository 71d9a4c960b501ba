//===- Search.h - The fastest plan for a machine ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever the plan block gives is a constraint; all else is chosen. For each order,
// micro-batch and treatment of activations, the search compiles and simulates the plan that
// takes least memory. That gives the traffic of each role and the memory that is left. From these
// follow a time that no place can beat, and the roles that gain most from memory. Combinations
// whose time cannot be the best are not looked at again. The rest are filled and simulated. The
// best of each order is improved, one setting at a time, until no change helps.
//
// A plan in which some layers keep their activations lies between two combinations. No link is
// busy for less than in the better of them. So the bound of all plans takes each link's least
// seconds over all combinations, and then the link that has most.
//
// The same spec and machine give the same plan.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_SEARCH_H
#define BOA_TOOLS_PLAN_SEARCH_H

#include "tools/plan/PlanTrials.h"

#include <optional>

namespace boa {

/// A time below which no place of anything and no delay can bring a step, and what sets it.
struct Bound {
  double seconds = 0;
  std::string link;
};

/// The least seconds of a step that each link of the machine is busy.
using Limits = std::map<std::string, double>;
/// The link that is busy longest.
Bound longest(const Limits &limits);

struct FoundPlan {
  Choice choice;
  Trial trial;
  Bound bound;        // of all combinations
  Bound boundOfOrder; // of the combination that was chosen
  /// Seconds of the best horizontal plan, or what none of them beats; 0: none fits.
  double horizontal = 0;
  bool isHorizontalPlan = false;
  int64_t compiled = 0, simulated = 0; // plans
  std::string block;                   // of the choice
};

/// The plan that takes least memory, and why it does not fit; no need: none is possible.
struct Shortage {
  std::optional<MemoryNeed> need;
  Choice choice;
};

/// None if no plan fits.
std::optional<FoundPlan> findPlan(Trials &trials, Shortage &shortage);

/// Seconds of a step with the settings of `start` and the memory of `machine` filled anew. Where
/// trials are quick, the settings are improved once. Infinite if nothing fits.
double refill(Trials &trials, const Choice &start, const MachineSettings &machine);

} // namespace boa

#endif // BOA_TOOLS_PLAN_SEARCH_H
