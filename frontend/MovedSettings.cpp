//===- MovedSettings.cpp - Settings that moved to another block -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/MovedSettings.h"

#include "frontend/SettingTable.h"

namespace boa::frontend {

static bool isMoved(const Field &field) { return !movedTo("train", field.key.text).empty(); }

void moveSettings(Program &program) {
  if (program.trains.empty())
    return;
  std::vector<Field> &fields = program.trains[0].fields, kept;
  for (Field &field : fields) {
    if (!isMoved(field)) {
      kept.push_back(std::move(field));
      continue;
    }
    if (program.plans.empty())
      program.plans.push_back({field.key.location, {}, {}});
    program.plans[0].fields.push_back(std::move(field));
  }
  fields = std::move(kept);
}

void expandRates(Program &program) {
  for (MachineSyntax &machine : program.machines)
    for (Field &block : machine.fields)
      for (Field &field : block.fields) {
        const auto [name, format] = shortRate("machine." + block.key.text + "." + field.key.text);
        if (field.isBlock || name.empty())
          continue;
        Field rate;
        rate.key = {name, field.key.location};
        rate.isBlock = true;
        field.key.text = format;
        rate.fields.push_back(std::move(field));
        field = std::move(rate);
      }
}

/// Where the lines of a setting begin: behind the line on which the token before it ends, so
/// that comments above it are its own.
static size_t beginOf(const std::string &text, size_t key) {
  size_t line = text.rfind('\n', key);
  if (line == std::string::npos)
    return key;
  if (text.find_first_not_of(" \t\r", line + 1) < key)
    return key; // another setting stands before it on its line
  while (line > 0) {
    const size_t before = text.rfind('\n', line - 1);
    const size_t begin = before == std::string::npos ? 0 : before + 1;
    const size_t first = text.find_first_not_of(" \t\r", begin);
    if (first >= line || text[first] != '#')
      break;
    line = begin == 0 ? 0 : begin - 1;
  }
  return line + 1;
}

std::optional<std::string> moveSettings(const Sources &sources, int32_t file,
                                        const Program &program) {
  const std::string &text = sources.get(file).text;
  if (program.trains.size() != 1 || program.plans.size() > 1)
    return std::nullopt;
  const TrainSyntax &train = program.trains[0];
  std::string kept, moved;
  size_t at = 0;
  for (size_t i = 0; i < train.fields.size(); ++i) {
    if (!isMoved(train.fields[i]))
      continue;
    const size_t begin = beginOf(text, train.fields[i].key.location.begin);
    const bool isLast = i + 1 == train.fields.size();
    size_t end = isLast ? train.end.begin : train.fields[i + 1].key.location.begin;
    // What stands on the lines between belongs to the next setting.
    if (size_t line = text.find('\n', train.fields[i].end.end); line < end)
      end = line + 1;
    kept += text.substr(at, begin - at);
    moved += text.substr(begin, end - begin) + (text[end - 1] == '\n' ? "" : "\n");
    at = end;
  }
  if (moved.empty())
    return std::nullopt;
  if (program.plans.empty())
    return kept + text.substr(at, train.end.end - at) + "\n\nplan {\n" + moved + "}\n" +
           text.substr(train.end.end);
  // The plan may stand before the train block or behind it.
  const size_t plan = program.plans[0].end.begin;
  if (plan > train.end.begin)
    return kept + text.substr(at, plan - at) + "\n" + moved + text.substr(plan);
  return kept.substr(0, plan) + "\n" + moved + kept.substr(plan) + text.substr(at);
}

} // namespace boa::frontend
