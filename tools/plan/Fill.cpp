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

} // namespace

bool isBetter(const Trial &trial, const Trial &best) {
  if (std::abs(trial.seconds - best.seconds) > best.seconds * kGain)
    return trial.seconds < best.seconds;
  return std::make_pair(writtenBy(trial), trial.seconds) <
         std::make_pair(writtenBy(best), best.seconds);
}

std::pair<Choice, const Trial *> fill(Trials &trials, const Choice &base, const Trial &baseTrial,
                                      double bound) {
  std::pair<Choice, const Trial *> best(base, &baseTrial);
  if (base.places.empty())
    return best;
  const std::vector<RoleUse> roles = usesOf(baseTrial.program);
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
  return best;
}

} // namespace boa
