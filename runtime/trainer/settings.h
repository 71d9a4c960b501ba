//===- settings.h - What the losses of a run depend on ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every setting on which the losses of a run depend, as words: kept in each
// commit's `extra` and compared when a run is resumed. Where the model lives and
// the schedule are not among them: these change no bit of it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_SETTINGS_H
#define BOA_RUNTIME_TRAINER_SETTINGS_H

#include "runtime/abi/program.h"
#include "runtime/state/state.h"

#include <cstdint>
#include <map>
#include <string>

namespace boa {

using Settings = std::map<std::string, std::string>;

/// `fingerprint` is the text's (runtime/trainer/data.h).
Settings CollectSettings(const Program &, uint64_t fingerprint);

/// What is another training from here on than the one that was committed, a line
/// for each setting; empty: nothing is. All of it is allowed.
std::string DescribeChanges(const Settings &committed, const Settings &now);

/// What the last bits depend on and is not as it was at the commit, a line for each; empty:
/// nothing is, or the commit does not say.
std::string DescribeNewEnvironment(const Settings &committed, const Settings &now);

/// Sequences of each text that were used at `step` of `batch` sequences each, which came after that
/// commit with these settings.
std::map<std::string, int64_t> CountSamples(const CommitRecord &committed, int64_t step,
                                            int64_t batch, const Settings &);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_SETTINGS_H
