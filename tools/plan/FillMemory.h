//===- FillMemory.h - Memory that is left, filled with roles ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_FILLMEMORY_H
#define BOA_TOOLS_PLAN_FILLMEMORY_H

#include "tools/plan/PlanTrials.h"

#include <optional>
#include <string>
#include <utility>

namespace boa {

/// A plan that is faster by less is no better.
inline constexpr double kGain = 1e-3;
/// So near to its bound a plan is not improved.
inline constexpr double kNear = 5e-3;

/// Whether `trial` is faster than `best`, or as fast and writes less to SSDs.
bool isBetter(const Trial &trial, const Trial &best);

/// A role that stays out of memory, or a memory that stays as it is.
struct Exclusion {
  std::string role;
  std::optional<Space> memory;
};

/// Fills what memory `baseTrial` leaves with the roles that gain most; the best of a few trials.
/// `bound`: seconds that none of them beats. `behind`: choices that may come next.
std::pair<Choice, const Trial *> fillMemory(Trials &trials, const Choice &base,
                                            const Trial &baseTrial, double bound,
                                            const std::vector<Choice> &behind = {},
                                            const Exclusion &without = {});

} // namespace boa

#endif // BOA_TOOLS_PLAN_FILLMEMORY_H
