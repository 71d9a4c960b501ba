//===- SettingTable.h - The settings that there are -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lookups in the table of settings (runtime/abi/settings.def): for the checker, --set,
// `boa help settings` and the completion of shells.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_SETTINGTABLE_H
#define BOA_FRONTEND_SETTINGTABLE_H

#include "runtime/abi/settings.h"

#include <string>
#include <string_view>
#include <vector>

namespace boa::frontend {

using Setting = SettingRow;

/// The rows of a block, or of a call in the value of setting `of`, in order.
std::vector<const Setting *> settingsOf(std::string_view of, std::string_view call = "");

/// Whether `of` is a block for a pattern of names, parameters "PATTERN" { }.
bool hasPattern(std::string_view of);

/// How a value of a word is written: `every(...)` where it must have arguments.
std::string describeWord(const Setting &setting, const std::string &word);

/// Whether a path is one of rates by format: `machine.device.compute` of compute { f32 = ... }.
bool hasFormats(std::string_view path);

/// `compute` and `bf16` of the short form machine.device.compute_bf16; else "".
std::pair<std::string, std::string> shortRate(std::string_view path);

/// The block to which a setting of `train` moved: `plan` for schedule; else "".
std::string movedTo(std::string_view block, std::string_view name);

/// The paths that --set takes, `train.steps`, that are near to `path`, or whose
/// last name it has: `, did you mean 'train.optimizer.lr'?` or "".
std::string didYouMeanSetting(std::string_view path);

} // namespace boa::frontend

#endif // BOA_FRONTEND_SETTINGTABLE_H
