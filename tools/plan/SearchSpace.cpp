//===- SearchSpace.cpp ----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/SearchSpace.h"

#include "tools/plan/RoleTraffic.h"

#include <algorithm>

namespace boa {

int64_t countLayers(const Program &program) {
  int64_t most = 0;
  for (const Group &group : program.groups)
    if (group.layer)
      most = std::max(most, group.count);
  return most;
}

std::vector<Schedule> SearchSpace::orders() const {
  if (trials.isGiven("plan.schedule"))
    return {config.plan.schedule};
  return {Schedule::vertical, Schedule::horizontal};
}

std::vector<bool> SearchSpace::recomputes() const {
  if (trials.isGiven("plan.schedule.recompute") || trials.isGiven("plan.schedule.keep"))
    return {config.plan.recompute};
  return {true, false};
}

bool SearchSpace::someLayersMayKeep() const {
  return !trials.isGiven("plan.schedule.keep") &&
         (config.plan.recompute || !trials.isGiven("plan.schedule.recompute"));
}

std::vector<int64_t> SearchSpace::microBatches() const {
  if (trials.isGiven("plan.micro_batch"))
    return {config.microBatch()};
  std::vector<int64_t> sizes;
  for (int64_t size = config.train.batch; size > 0; --size)
    if (config.train.batch % size == 0)
      sizes.push_back(size);
  return sizes;
}

int64_t SearchSpace::nextMicroBatch(int64_t size) const {
  for (int64_t smaller : microBatches())
    if (smaller < size)
      return smaller;
  return 0;
}

std::vector<double> SearchSpace::delays(Schedule order) const {
  if (trials.isGiven("plan.schedule.delay"))
    return {config.plan.delay};
  // The norm of all gradients comes before the first update.
  if (NeedsNorm(config.train))
    return order == Schedule::vertical ? std::vector<double>{1, 0} : std::vector<double>{0};
  return {0, 0.25, 0.5, 0.75, 1};
}

std::vector<int64_t> SearchSpace::prefetches() const {
  if (trials.isGiven("plan.schedule.prefetch"))
    return {config.plan.prefetch};
  return {1, 2, 3};
}

std::vector<int64_t> SearchSpace::keeps(const Program &program) const {
  if (trials.isGiven("plan.schedule.keep"))
    return {config.plan.keep};
  const int64_t layers = countLayers(program);
  std::vector<int64_t> counts = {0};
  for (int64_t eighth = 1; eighth < 8; ++eighth)
    if (int64_t count = layers * eighth / 8; count > counts.back())
      counts.push_back(count);
  return counts;
}

Choice SearchSpace::smallest(Schedule order, bool recompute, int64_t microBatch,
                             int64_t vocabularyBlocks) const {
  Choice choice;
  choice.order = order;
  choice.recompute = recompute;
  choice.microBatch = microBatch;
  choice.delay = delays(order).front();
  choice.prefetch = prefetches().front();
  choice.keep = recompute ? config.plan.keep : 0;
  choice.vocabularyBlocks = vocabularyBlocks;
  for (const std::string &role : planRoles())
    if (!trials.isGiven("plan.place") && !trials.isGiven("plan.place." + role))
      choice.places[role] = {};
  return choice;
}

} // namespace boa
