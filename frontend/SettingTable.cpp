//===- SettingTable.cpp - The settings that there are ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/SettingTable.h"

#include "frontend/Frontend.h"
#include "frontend/Printer.h"
#include "frontend/Settings.h"

#include <algorithm>

namespace boa::frontend {

bool hasPattern(std::string_view of) {
  const std::vector<Setting> &all = WrittenSettings();
  return std::any_of(all.begin(), all.end(), [&](const Setting &setting) {
    return setting.isLabel && setting.kind == SettingKind::Text && setting.of() == of;
  });
}

static std::string describeValues(const Setting &setting) {
  std::vector<std::string> words;
  for (const std::string &word : SplitWords(setting.list))
    words.push_back(describeWord(setting, word));
  auto range = [&] {
    return (setting.excludesLeast ? "above " : "") + printNumber(setting.least) + " to " +
           printNumber(setting.most);
  };
  switch (setting.kind) {
  case SettingKind::Path:
    return "a path";
  case SettingKind::Data:
    return "a path; tokens, text, chat or mix(...)";
  case SettingKind::Count:
    return setting.most > kMostSteps ? "from " + printNumber(setting.least) : range();
  case SettingKind::Real:
    return range();
  case SettingKind::Rate:
    return range() + ", " + listWords(words);
  case SettingKind::Bytes:
    return words.empty() ? "a size: 256 MiB" : "a size: 256 MiB, or " + listWords(words);
  case SettingKind::Speed:
    return "a speed: 200 MB/s";
  case SettingKind::Operations:
    return "a speed: 300 TFLOP/s";
  case SettingKind::Time:
    return "a time: 80 us";
  case SettingKind::Power:
    return "a power: 400 W";
  case SettingKind::Flag:
  case SettingKind::Word:
    return listWords(words);
  case SettingKind::Pair:
    return "two numbers: (a, b)";
  case SettingKind::Place:
    if (hasPattern(setting.of()))
      return "as plan.place";
    return listWords(SplitWords(WordList(HomeTier()))) + "; host 12 layers, ssd; or host 40%, ssd";
  case SettingKind::Interval:
    return "200 steps, or a time: 5 min";
  case SettingKind::Duration:
    return "200 steps, or 3 epochs of the data";
  case SettingKind::Patterns:
    return "\"block.*\", or several: (\"embed.*\", \"*.norm\")";
  case SettingKind::Text:
    return "a text";
  case SettingKind::Object:
    return "an object of JSON";
  case SettingKind::Section:
  case SettingKind::List:
    break;
  }
  return "";
}

std::vector<const Setting *> settingsOf(std::string_view of, std::string_view call) {
  std::vector<const Setting *> rows;
  for (const Setting &setting : WrittenSettings())
    if (setting.of() == of && !setting.isLabel &&
        (*setting.calls ? ListHasWord(setting.calls, call) : call.empty()))
      rows.push_back(&setting);
  return rows;
}

std::string describeWord(const Setting &setting, const std::string &word) {
  for (const Setting *argument : settingsOf(setting.path, word))
    if (argument->isRequired)
      return word + "(...)";
  return word;
}

bool hasFormats(std::string_view path) {
  const std::vector<Setting> &all = WrittenSettings();
  return std::any_of(all.begin(), all.end(), [&](const Setting &setting) {
    const std::string_view whole = setting.path;
    return setting.isOfFormat && whole.substr(0, whole.rfind('.')) == path;
  });
}

/// The path that an old or a short one stands for; else "".
static std::string aliasOf(std::string_view path) {
  for (const SettingAlias &alias : kSettingAliases)
    if (path == alias.from)
      return alias.to;
  return "";
}

std::pair<std::string, std::string> shortRate(std::string_view path) {
  const std::string whole = aliasOf(path);
  const size_t dot = whole.rfind('.'), before = whole.rfind('.', dot - 1);
  if (whole.empty() || !hasFormats(whole.substr(0, dot)))
    return {};
  return {whole.substr(before + 1, dot - before - 1), whole.substr(dot + 1)};
}

std::string movedTo(std::string_view block, std::string_view name) {
  const std::string to = aliasOf(std::string(block) + "." + std::string(name));
  return to.substr(0, to.find('.'));
}

std::vector<SettingInfo> listSettings() {
  std::vector<SettingInfo> list;
  for (const Setting &setting : WrittenSettings()) {
    std::string fallback = *setting.none       ? "none"
                           : *setting.fallback ? setting.fallback
                                               : setting.value;
    list.push_back({setting.path, setting.calls, describeValues(setting), SplitWords(setting.list),
                    setting.isRequired ? "" : fallback, setting.none, setting.isRequired,
                    hasPattern(setting.of()), setting.help});
  }
  return list;
}

std::vector<std::string> settingsNamed(std::string_view name) {
  std::vector<std::string> paths;
  ptrdiff_t least = 4;
  for (const Setting &setting : WrittenSettings()) {
    const std::string_view of = setting.of();
    ptrdiff_t dots = std::count(of.begin(), of.end(), '.');
    if (setting.name() != name || dots > least)
      continue;
    if (dots < least)
      paths.clear();
    least = dots;
    paths.push_back(setting.path);
  }
  return paths;
}

std::string didYouMeanSetting(std::string_view path) {
  std::string same;
  for (const std::string &found : settingsNamed(path.substr(path.rfind('.') + 1)))
    if (found != path)
      same += (same.empty() ? "'" : " or '") + found + "'";
  if (!same.empty())
    return ", did you mean " + same + "?";
  std::vector<std::string> paths;
  for (const Setting &setting : WrittenSettings())
    paths.push_back(setting.path);
  return didYouMean(path, paths);
}

} // namespace boa::frontend
