//===- Fill.h - Memory that is left, filled with roles ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_FILL_H
#define BOA_TOOLS_PLAN_FILL_H

#include "tools/plan/Trial.h"

#include <optional>
#include <string>
#include <utility>

namespace boa {

/// A plan that is faster by less is no better.
inline constexpr double kGain = 1e-3;
/// So near to its bound a plan is not improved.
inline constexpr double kNear = 5e-3;

/// Of plans that are as fast, the one that writes less to SSDs.
bool isBetter(const Trial &trial, const Trial &best);

/// A role that is not placed in memory, or a memory that is left alone.
struct Without {
  std::string role;
  std::optional<Space> memory;
};

/// Fills what memory `baseTrial` leaves with the roles that gain most; the best of a few trials.
/// `bound`: seconds that none of them beats. `behind`: choices that may come next.
std::pair<Choice, const Trial *> fill(Trials &trials, const Choice &base, const Trial &baseTrial,
                                      double bound, const std::vector<Choice> &behind = {},
                                      const Without &without = {});

} // namespace boa

#endif // BOA_TOOLS_PLAN_FILL_H
