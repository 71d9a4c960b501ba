//===- Neighbors.h - Plans that differ in the place of a role ---*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_NEIGHBORS_H
#define BOA_TOOLS_PLAN_NEIGHBORS_H

#include "tools/plan/PlanTrials.h"
#include "tools/plan/RoleTraffic.h"

#include <string>
#include <vector>

namespace boa {

/// Moves percents of a role from SSD to a memory or, where they are negative, back.
struct ShareChange {
  std::string role;
  Space memory;
  int percent;
};
/// The changes that lead to a neighbour of a plan.
using Neighbor = std::vector<ShareChange>;

/// Makes the changes in `choice`. Shares stay between 0 and what other memories leave.
void applyNeighbor(Choice &choice, const Neighbor &neighbor);

/// A tenth of each role that is free, to each of the memories or out of it.
std::vector<Neighbor> tenthNeighbors(const Choice &choice, const std::vector<Space> &memories);

/// A tenth of each role in a memory makes way for as many bytes of another role, or goes to another
/// memory. So does all of the role. `uses`: of the chosen plan.
std::vector<Neighbor> exchangeNeighbors(const Choice &choice, const std::vector<RoleTraffic> &uses,
                                        const std::vector<Space> &memories);

} // namespace boa

#endif // BOA_TOOLS_PLAN_NEIGHBORS_H
