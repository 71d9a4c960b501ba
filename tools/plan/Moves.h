//===- Moves.h - Parts of roles that change their place ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_MOVES_H
#define BOA_TOOLS_PLAN_MOVES_H

#include "tools/plan/Roles.h"
#include "tools/plan/Trial.h"

#include <string>
#include <vector>

namespace boa {

/// Percents of a role that move from SSD to a memory or, where they are negative, back.
struct Move {
  std::string role;
  Space memory;
  int percent;
};
using Moves = std::vector<Move>;

/// Makes the moves in `choice`. Shares stay between 0 and what other memories leave.
void makeMoves(Choice &choice, const Moves &moves);

/// A tenth of each role that is free, to each of the memories or out of it.
std::vector<Moves> tenths(const Choice &choice, const std::vector<Space> &memories);

/// A tenth of each role in a memory makes way for as many bytes of another role, or goes to another
/// memory. So does all of the role. `uses`: of the chosen plan.
std::vector<Moves> exchanges(const Choice &choice, const std::vector<RoleUse> &uses,
                             const std::vector<Space> &memories);

} // namespace boa

#endif // BOA_TOOLS_PLAN_MOVES_H
