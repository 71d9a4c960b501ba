//===- loss_settings.h - What the losses of a run depend on -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All settings on which the losses of a run depend, as words. Each commit keeps them in
// `extra`, and a resumed run compares them. Homes and the schedule are left out, because
// they change no bit of the losses.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_LOSS_SETTINGS_H
#define BOA_RUNTIME_TRAINER_LOSS_SETTINGS_H

#include "runtime/abi/program.h"
#include "runtime/state/state.h"

#include "absl/status/status.h"

#include <cstdint>
#include <map>
#include <string>

namespace boa {

using Settings = std::map<std::string, std::string>;

/// `data`: see Data::facts.
Settings CollectSettings(const Program &, const Settings &data);

/// `settings` with the plan that was chosen. A run without one keeps that of the commit that it
/// goes on from (null: it begins).
Settings WithPlan(Settings settings, const ChosenPlan &chosen, const CommitRecord *committed);

/// Refuses files of a pattern that are not those of the commit: positions in their order would
/// mean other sequences.
absl::Status CheckFilesOfData(const Settings &committed, const Settings &now);

/// A line for each setting that differs from the commit's; may be empty. All such changes are
/// allowed.
std::string DescribeChanges(const Settings &committed, const Settings &now);

/// A line for each version that differs from the commit's and may change the last bits of results.
/// Empty if none does, or if the commit names no versions.
std::string DescribeNewEnvironment(const Settings &committed, const Settings &now);

/// A note where the run ends before the learning rate has risen to its peak; "" if it does not.
std::string DescribeWarmup(const TrainSettings &);

/// Sequences read of each source: those of the commit, and those that were consumed since.
std::map<std::string, int64_t> CountSamples(const CommitRecord &committed,
                                            const std::map<std::string, int64_t> &consumed);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_LOSS_SETTINGS_H
