//===- SearchSpace.h - What a plan block leaves open ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The values that a search may choose from. A setting that the plan block gives has one.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_SEARCHSPACE_H
#define BOA_TOOLS_PLAN_SEARCHSPACE_H

#include "tools/plan/PlanTrials.h"

namespace boa {

/// The layers of the deepest kind.
int64_t countLayers(const Program &program);

class SearchSpace {
public:
  explicit SearchSpace(const Trials &trials) : trials(trials), config(*trials.config()) {}

  std::vector<Schedule> orders() const;
  std::vector<bool> recomputes() const;
  /// Whether some layers may keep their activations where the others compute them again.
  bool someLayersMayKeep() const;
  /// The largest first.
  std::vector<int64_t> microBatches() const;
  /// The largest that is smaller; 0: none.
  int64_t nextMicroBatch(int64_t size) const;
  std::vector<double> delays(Schedule order) const;
  std::vector<int64_t> prefetches() const;
  /// How many layers may keep their activations, where the others compute them again.
  std::vector<int64_t> keeps(const Program &program) const;
  /// Everything that is free on SSD, which takes least memory.
  Choice smallest(Schedule order, bool recompute, int64_t microBatch,
                  int64_t vocabularyBlocks) const;

private:
  const Trials &trials;
  const Config &config;
};

} // namespace boa

#endif // BOA_TOOLS_PLAN_SEARCHSPACE_H
