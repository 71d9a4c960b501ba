//===- settings.h - What makes a resumed run the same run -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every setting on which the losses of a run depend, as words: kept in each
// commit's `extra` and compared when a run is resumed. Where the model lives and
// the schedule are not among them.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_SETTINGS_H
#define BOA_RUNTIME_TRAINER_SETTINGS_H

#include "runtime/program.h"

#include "absl/status/status.h"

#include <cstdint>
#include <map>
#include <string>

namespace boa {

using Settings = std::map<std::string, std::string>;

/// `fingerprint` is the text's (runtime/trainer/data.h).
Settings CollectSettings(const Program &, uint64_t fingerprint);

/// Refuses `now` where it differs from `committed`, naming each difference. The
/// number of steps alone may differ: a rate that does not depend on it makes the
/// longer run the same run; for others `warning` says that it is not.
absl::Status CompareSettings(const Settings &committed, const Settings &now, std::string &warning);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_SETTINGS_H
