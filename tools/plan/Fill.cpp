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

Room middle(const Room &a, const Room &b) {
  return {(a.device + b.device) / 2, (a.host + b.host) / 2};
}

bool isUsed(double left, double all) { return all == 0 || left < kWorth * all; }

double writtenBy(const Trial &trial) {
  double bytes = 0;
  for (const auto &[role, written] : trial.program.TrafficOfStep(/*earlier=*/2).written)
    bytes += double(written);
  return bytes;
}

/// Roles that may be placed in `room` bytes of memory as a whole. Such a role needs no slots, so it
/// may take less memory than a part of it. Roles with the most traffic for each byte come first.
std::vector<RoleUse> wholeRoles(const Choice &base, std::vector<RoleUse> roles, double room) {
  auto moved = [](const RoleUse &use) { return (use.read + use.written) / use.bytes; };
  llvm::erase_if(roles, [&](const RoleUse &use) {
    return !base.places.count(use.role) || use.bytes == 0 || use.bytes > room || moved(use) == 0;
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

/// Places whole roles in `room` bytes of memory. A role stays if it fits.
void fillWhole(Trials &trials, Choice choice, std::pair<Choice, const Trial *> &best,
               const std::vector<RoleUse> &roles, double room, const std::vector<Choice> &behind) {
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i].bytes > room)
      continue;
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
    room -= roles[i].bytes;
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
  const Room all = roomOf(baseTrial.program.machine);
  const std::vector<RoleUse> whole = wholeRoles(base, roles, all.host);
  std::vector<Choice> later;
  if (!whole.empty())
    later.push_back(withWhole(base, whole[0]));
  llvm::append_range(later, behind);
  trials.prepare(later);
  // The last one that fits holds most. Only this one is simulated.
  std::optional<Choice> filled;
  Room room = roomLeft(baseTrial.program), least;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const Choice choice = spread(base, roles, room, baseTrial.program);
    const Trial &trial = trials.compile(choice);
    if (!trial.fits) {
      room = filled ? middle(least, room) : Room{0.85 * room.device, 0.85 * room.host};
      continue;
    }
    filled = choice;
    least = room;
    // Homes need no slots: there may be more room than it seemed.
    const Room left = roomLeft(trial.program);
    if (isUsed(left.device, all.device) && isUsed(left.host, all.host))
      break;
    if (llvm::all_of(choice.places, [](const auto &place) { return place.second.rest() == 0; }))
      break;
    room.device += left.device;
    room.host += left.host;
  }
  if (filled)
    if (const Trial &trial = trials.run(*filled); isBetter(trial, *best.second))
      best = {*filled, &trial};
  if (best.second->seconds > bound * (1 + kNear))
    fillWhole(trials, base, best, whole, all.host, behind);
  return best;
}

} // namespace boa
