//===- FillMemory.cpp -----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/FillMemory.h"

#include "tools/plan/RoleTraffic.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace boa {
namespace {

/// A share of all memory that is not worth another trial.
constexpr double kWorth = 0.02;
/// How many shares are compiled, where that takes a fraction of a second and where it takes more.
constexpr int kQuickAttempts = 8, kSlowAttempts = 5;

double middle(double a, double b) { return std::isinf(b) ? b : (a + b) / 2; }

/// Whether another trial between the two is not worth it.
bool isNarrow(double enough, double tooMuch, double all) {
  return all == 0 || std::isinf(enough) || tooMuch - enough < kWorth * all;
}

double writtenBy(const Trial &trial) {
  double bytes = 0;
  for (const auto &[role, written] : trial.program.TrafficOfStep(/*earlier=*/2).written)
    bytes += double(written);
  return bytes;
}

/// Roles that may be placed in `room` bytes of memory as a whole. Such a role needs no slots, so it
/// may take less memory than a part of it. Roles with the most traffic for each byte come first.
std::vector<RoleTraffic> wholeRoles(const Choice &base, std::vector<RoleTraffic> roles,
                                    double room) {
  auto moved = [](const RoleTraffic &use) { return (use.read + use.written) / use.bytes; };
  llvm::erase_if(roles, [&](const RoleTraffic &use) {
    return !base.places.count(use.role) || use.bytes == 0 || use.bytes > room || moved(use) == 0;
  });
  llvm::sort(roles, [&](const RoleTraffic &a, const RoleTraffic &b) {
    return std::make_pair(-moved(a), a.role) < std::make_pair(-moved(b), b.role);
  });
  return roles;
}

Choice withWhole(Choice choice, const RoleTraffic &use) {
  choice.places[use.role] = {0, 100};
  return choice;
}

using Filled = std::pair<Choice, const Trial *>;

/// Places parts of roles in the memory that the best plan leaves. How much that is only a compiler
/// knows: a buffer that stays in memory makes way for a home, which may gain less. Of the plans
/// that fit the first, which leaves such buffers, and the fullest are simulated.
void fillShares(Trials &trials, Filled &best, const std::vector<RoleTraffic> &roles,
                const std::optional<Space> &without) {
  const auto [base, baseTrial] = best;
  Room all = roomOf(baseTrial->program.machine), room = roomLeft(baseTrial->program);
  for (Room *each : {&all, &room})
    if (without)
      (*without == Space::device ? each->device : each->host) = 0;
  Room enough, tooMuch = all;
  for (const RoleTraffic &use : roles)
    if (auto place = base.places.find(use.role); place != base.places.end()) {
      tooMuch.device -= use.bytes * place->second.device / 100;
      tooMuch.host -= use.bytes * place->second.host / 100;
    }
  std::optional<Choice> first, fullest;
  const int attempts = baseTrial->isQuick() ? kQuickAttempts : kSlowAttempts;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const Choice choice = placeGreedily(base, roles, room, baseTrial->program);
    const Trial &trial = trials.compile(choice);
    if (trial.fits) {
      fullest = choice;
      if (!first)
        first = choice;
      enough = room;
      if (llvm::all_of(choice.places, [](const auto &place) { return place.second.rest() == 0; }))
        break;
      room = {middle(enough.device, tooMuch.device), middle(enough.host, tooMuch.host)};
    } else if (trial.need && trial.need->space == Space::device) {
      tooMuch.device = room.device;
      room.device = middle(enough.device, tooMuch.device);
    } else {
      tooMuch.host = room.host;
      room.host = middle(enough.host, tooMuch.host);
    }
    if (isNarrow(enough.device, tooMuch.device, all.device) &&
        isNarrow(enough.host, tooMuch.host, all.host))
      break;
  }
  for (const std::optional<Choice> &choice : {first, fullest})
    if (choice)
      if (const Trial &trial = trials.run(*choice); isBetter(trial, *best.second))
        best = {*choice, &trial};
}

/// Places whole roles in `room` bytes of memory. A role stays if it fits.
void fillWhole(Trials &trials, Choice choice, Filled &best, const std::vector<RoleTraffic> &roles,
               double room, const std::vector<Choice> &behind) {
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

std::pair<Choice, const Trial *> fillMemory(Trials &trials, const Choice &base,
                                            const Trial &baseTrial, double bound,
                                            const std::vector<Choice> &behind,
                                            const Exclusion &without) {
  Filled best(base, &baseTrial);
  if (base.places.empty())
    return best;
  std::vector<RoleTraffic> roles = trafficByRole(baseTrial.program);
  llvm::erase_if(roles, [&](const RoleTraffic &use) { return use.role == without.role; });
  const Room all = roomOf(baseTrial.program.machine);
  const std::vector<RoleTraffic> whole = wholeRoles(base, roles, all.host);
  auto isFar = [&] { return best.second->seconds > bound * (1 + kNear); };
  std::vector<Choice> later;
  if (!whole.empty())
    later.push_back(withWhole(base, whole[0]));
  llvm::append_range(later, behind);
  trials.prepare(later);
  fillShares(trials, best, roles, without.memory);
  if (isFar() && without.memory != Space::host)
    fillWhole(trials, base, best, whole, all.host, behind);
  // Whole roles leave memory for parts of others.
  const bool somethingIsWhole =
      llvm::any_of(best.first.places, [](const auto &place) { return place.second.rest() == 0; });
  if (somethingIsWhole && isFar())
    fillShares(trials, best, roles, without.memory);
  return best;
}

} // namespace boa
