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
// whose time cannot be the best are not looked at again. The rest are filled, simulated, and the
// best of them is improved, one setting at a time, until no change helps.
//
// The same spec and machine give the same plan.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_SEARCH_H
#define BOA_TOOLS_PLAN_SEARCH_H

#include "tools/plan/Trial.h"

namespace boa {

/// A time below which no place of anything and no delay can bring a step, and what sets it.
struct Bound {
  double seconds = 0;
  std::string link;
};

struct Found {
  Choice choice;
  Trial trial;
  Bound bound;           // of all combinations
  Bound boundOfOrder;    // of the combination that was chosen
  double horizontal = 0; // seconds of the best horizontal plan; 0: none fits, or none was tried
  int64_t tried = 0;
};

/// None if no plan fits: `need` is then why the smallest does not.
std::optional<Found> findPlan(Trials &trials, std::string &need);

} // namespace boa

#endif // BOA_TOOLS_PLAN_SEARCH_H
