//===- SettingTable.h - The settings that there are -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Train blocks and machines as one table: of each setting the name, what a value
// is, its range, its default and its help. The checker reads ranges from it,
// --set its paths and suggestions, `boa help settings` and the completion of
// shells all of it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_SETTINGTABLE_H
#define BOA_FRONTEND_SETTINGTABLE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace boa::frontend {

enum class SettingKind {
  Path,
  Count,
  Real,
  Bytes,
  Speed,
  Compute,
  Latency,
  Word,
  Rate,
  Pair,
  Interval,
  Tiers,
  Block
};

struct Setting {
  /// What it is a part of: `train`, `machine.ssd`, `train.optimizer`.
  std::string of;
  /// Where that is a call: of which it is an argument, `adamw`.
  std::vector<std::string> calls;
  std::string name;
  SettingKind kind;
  /// Words: the values, in the order of the enumeration that the checker makes
  /// of them; some take arguments. Rates: besides a number.
  std::vector<std::string> words;
  /// Counts: the unit that may stand behind, and the range.
  const char *unit = nullptr;
  int64_t least = 0, most = 0;
  /// Reals and rates: the range, of which the lower end may be left out.
  double realLeast = 0, realMost = 0;
  bool above = false;
  /// The default as one writes it; "" where there is none.
  std::string fallback;
  /// Then: what its absence means, `no limit`. Written as `none`. Empty: it must
  /// be given.
  std::string absent;
  std::string help;
  /// Behind the name of its block, ssd "path", instead of in it.
  bool isLabel = false;

  std::string path() const { return of + "." + name; }
  bool isRequired() const {
    return fallback.empty() && absent.empty() && kind != SettingKind::Block;
  }
  bool isArgumentOf(std::string_view call) const;
};

const std::vector<Setting> &settingTable();

/// The rows of a block, or of a call in the value of setting `of`, in order.
std::vector<const Setting *> settingsOf(std::string_view of, std::string_view call = "");

/// How a value of a word is written: `every(...)` where it must have arguments.
std::string describeWord(const Setting &setting, const std::string &word);

/// The paths that --set takes, `train.steps`, that are near to `path`, or whose
/// last name it has: `, did you mean 'train.optimizer.lr'?` or "".
std::string didYouMeanSetting(std::string_view path);

} // namespace boa::frontend

#endif // BOA_FRONTEND_SETTINGTABLE_H
