//===- RoleTraffic.h - Traffic and memory of a program by role --*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_ROLETRAFFIC_H
#define BOA_TOOLS_PLAN_ROLETRAFFIC_H

#include "tools/plan/Search.h"

#include <optional>

namespace boa {

/// The roles that have a place in a plan block, by that name.
const std::vector<std::string> &planRoles();

/// The bytes of a role, and the bytes that a steady step moves of it.
struct RoleTraffic {
  std::string role;
  double bytes = 0, read = 0, written = 0, toDevice = 0, toHost = 0;
};
/// The traffic of each role that the program has.
std::vector<RoleTraffic> trafficByRole(const Program &program);

/// Bytes of memory. A machine of one memory has all of it on the host.
struct Room {
  double device = 0, host = 0;
};
/// Infinite where the machine names no limit.
Room roomOf(const MachineSettings &machine);
Room roomLeft(const Program &program);

/// `base` with as much in memory as there is room for: first the roles that take most of the
/// links' time for each byte.
Choice placeGreedily(const Choice &base, const std::vector<RoleTraffic> &roles, Room room,
                     const Program &program);

/// What no place of the roles can spare the links that move bytes. `program` has everything on SSD;
/// the limits of memory are those of `machine`. Without `saved`, activations that are kept move for
/// nothing.
Limits limitsOfTransfers(const Program &program, const MachineSettings &machine, bool saved);
/// The same limits with those of kernels and updates, which a simulated trial has.
Limits limitsOf(const Trial &trial, const MachineSettings &machine, bool saved);

/// From how many tokens a step on the SSDs take no longer than kernels, and updates if one
/// processor does both. The plan is in vertical order, and its places stay. So traffic of weights,
/// gradients and optimizer stays, and that of activations and the kernels' time grow with the
/// tokens. Infinite: from none. Nothing if any number hides the SSDs, or only a smaller one does,
/// or if the plan moves nothing at a known rate.
std::optional<double> tokensThatHideSsd(const Trial &trial);

} // namespace boa

#endif // BOA_TOOLS_PLAN_ROLETRAFFIC_H
