//===- Fill.cpp -----------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/Fill.h"

#include "tools/plan/Roles.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace boa {
namespace {

/// A share of all memory that is not worth another trial.
constexpr double kWorth = 0.02;

bool isUsed(double left, double all) { return all == 0 || left < kWorth * all; }

double writtenBy(const Trial &trial) {
  double bytes = 0;
  for (const auto &[role, written] : trial.program.TrafficOfStep(/*earlier=*/2).written)
    bytes += double(written);
  return bytes;
}

/// Roles that may be placed in memory as a whole. Such a role needs no slots, so it may take less
/// memory than a part of it. Roles with the most traffic for each byte come first.
std::vector<RoleUse> wholeRoles(const Choice &base, std::vector<RoleUse> roles) {
  auto moved = [](const RoleUse &use) { return (use.read + use.written) / use.bytes; };
  llvm::erase_if(roles, [&](const RoleUse &use) {
    return !base.places.count(use.role) || use.bytes == 0 || moved(use) == 0;
  });
  llvm::sort(roles, [&](const RoleUse &a, const RoleUse &b) {
    return std::make_pair(-moved(a), a.role) < std::make_pair(-moved(b), b.role);
  });
  return roles;
}

Choice withWhole(Choice choice, const RoleUse &use) {
  choice.places[use.role] = {0, 100};
  return choice;
}

/// Places whole roles in memory. A role stays if it fits.
void fillWhole(Trials &trials, Choice choice, std::pair<Choice, const Trial *> &best,
               const std::vector<RoleUse> &roles, const std::vector<Choice> &behind) {
  for (size_t i = 0; i < roles.size(); ++i) {
    Choice next = withWhole(choice, roles[i]);
    std::vector<Choice> later;
    if (i + 1 < roles.size())
      later = {withWhole(next, roles[i + 1]), withWhole(choice, roles[i + 1])};
    llvm::append_range(later, behind);
    trials.prepare(later);
    const Trial &trial = trials.run(next);
    if (!trial.fits)
      continue;
    choice = next;
    if (isBetter(trial, *best.second))
      best = {choice, &trial};
  }
}

} // namespace

bool isBetter(const Trial &trial, const Trial &best) {
  if (std::abs(trial.seconds - best.seconds) > best.seconds * kGain)
    return trial.seconds < best.seconds;
  return std::make_pair(writtenBy(trial), trial.seconds) <
         std::make_pair(writtenBy(best), best.seconds);
}

std::pair<Choice, const Trial *> fill(Trials &trials, const Choice &base, const Trial &baseTrial,
                                      double bound, const std::vector<Choice> &behind) {
  std::pair<Choice, const Trial *> best(base, &baseTrial);
  if (base.places.empty())
    return best;
  const std::vector<RoleUse> roles = usesOf(baseTrial.program);
  const std::vector<RoleUse> whole = wholeRoles(base, roles);
  std::vector<Choice> later;
  if (!whole.empty())
    later.push_back(withWhole(base, whole[0]));
  llvm::append_range(later, behind);
  trials.prepare(later);
  Room room = roomLeft(baseTrial.program);
  for (int attempt = 0; attempt < 5; ++attempt) {
    const Choice choice = spread(base, roles, room, baseTrial.program);
    const Trial &trial = trials.run(choice);
    if (!trial.fits) {
      room.device *= 0.85;
      room.host *= 0.85;
      continue;
    }
    if (isBetter(trial, *best.second))
      best = {choice, &trial};
    if (trial.seconds <= bound * (1 + kNear))
      break;
    // Homes need no slots: there may be more room than it seemed.
    const Room left = roomLeft(trial.program);
    const Room all = roomOf(trial.program.machine);
    if (isUsed(left.device, all.device) && isUsed(left.host, all.host))
      break;
    if (llvm::all_of(choice.places, [](const auto &place) { return place.second.rest() == 0; }))
      break;
    room.device += left.device;
    room.host += left.host;
  }
  if (best.second->seconds > bound * (1 + kNear))
    fillWhole(trials, base, best, whole, behind);
  return best;
}

} // namespace boa
