//===- wear.cpp - What training costs an SSD ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/wear.h"

#include "runtime/abi/abi.h"
#include "runtime/support/printable.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <utility>

namespace boa {
namespace {

constexpr double kDay = 86400;

double SsdBytes(const Storage &storage) {
  return double(storage.ChunksOn(Home::ssd)) * double(storage.chunk_bytes());
}

/// Bytes of a role that live on SSD.
double SsdBytesOf(const Program &program, const std::string &role) {
  double bytes = 0;
  for (const Storage &storage : program.storages)
    bytes += storage.role == role ? SsdBytes(storage) : 0;
  return bytes;
}

double WrittenOf(const Writes &writes, const std::string &role) {
  auto found = writes.by_role.find(role);
  return found == writes.by_role.end() || writes.steps <= 0 ? 0
                                                            : double(found->second) / writes.steps;
}

/// Bytes of some storages that a step writes. Storages of one role share its bytes by their sizes.
double WrittenOf(const Program &program, const Writes &writes,
                 const std::vector<int64_t> &storages) {
  double written = 0;
  for (int64_t id : storages) {
    if (id < 0)
      continue;
    const Storage &storage = program.storages[size_t(id)];
    if (const double all = SsdBytesOf(program, storage.role); all > 0)
      written += WrittenOf(writes, storage.role) * SsdBytes(storage) / all;
  }
  return written;
}

/// Moments as codes of 8 bits instead of numbers.
double SavedByCodes(const Program &program, const Writes &writes) {
  double saved = 0;
  for (size_t s = 0; s < program.optimizer.states.size(); ++s) {
    const OptimizerState &state = program.optimizer.states[s];
    if (IsCode(state.type))
      continue;
    double now = 0, then = 0;
    for (const Group &group : program.groups) {
      if (s >= group.states.size())
        continue;
      const Storage &storage = program.storages[size_t(group.states[s])];
      now += SsdBytes(storage);
      then += double(storage.ChunksOn(Home::ssd)) * double(StateBytes("si8", group.chunk_elements));
    }
    if (now > then)
      saved += WrittenOf(writes, state.name) * (1 - then / now);
  }
  return saved;
}

/// Layers that are not trained: their weights, gradients and moments are written by no step. With
/// adapters, only these are trained.
Saving SavedByFreezing(const Program &program, const Writes &writes) {
  Saving saving;
  if (HasAdapters(program))
    return saving;
  std::vector<std::string> patterns;
  for (const Group &group : program.groups) {
    if (!group.layer || group.gradient < 0)
      continue;
    std::vector<int64_t> storages = group.states;
    storages.insert(storages.end(), {group.weights, group.low, group.gradient});
    saving.bytes += WrittenOf(program, writes, storages);
    patterns.push_back(absl::StrCat("\"", group.name, ".*\""));
  }
  const std::string list = absl::StrJoin(patterns, ", ");
  saving.what = absl::StrCat("frozen layers: freeze = ",
                             patterns.size() > 1 ? absl::StrCat("(", list, ")") : list);
  return saving;
}

} // namespace

std::string PlaceOfRole(const Program &program, const std::string &role) {
  for (const OptimizerState &state : program.optimizer.states)
    if (state.name == role)
      return "optimizer";
  if (role == "master")
    return "optimizer";
  std::string place;
  program.plan.place.Visit([&](const SettingRow &row, const Placement &) {
    if (row.name() == role)
      place = role;
  });
  return place;
}

std::string FormatEndurance(double bytes) { return FormatCount(bytes) + "B"; }

std::vector<PathWear> WearOf(const Program &program, const Writes &writes) {
  std::vector<PathWear> list;
  for (const auto &[number, bytes] : writes.by_path) {
    if (bytes <= 0 || writes.steps <= 0 || writes.seconds <= 0)
      continue;
    const auto &ssds = program.machine.ssd;
    const size_t index = size_t(number);
    PathWear wear;
    if (index < writes.paths.size())
      wear.path = writes.paths[index];
    else
      wear.path = index < ssds.size() ? ssds[index].path : absl::StrCat("ssd ", number);
    wear.step = double(bytes) / writes.steps;
    wear.day = double(bytes) / writes.seconds * kDay;
    wear.endurance = index < ssds.size() ? double(ssds[index].endurance) : 0;
    wear.life = wear.endurance > 0 ? wear.endurance / wear.day * kDay : 0;
    list.push_back(wear);
  }
  return list;
}

std::vector<Saving> SavingsOf(const Program &program, const Writes &writes) {
  std::vector<Saving> list;
  list.push_back({"moments in 8 bits: optimizer state = int8", SavedByCodes(program, writes)});
  list.push_back(SavedByFreezing(program, writes));
  std::map<std::string, std::pair<double, double>> places; // bytes of memory, bytes written
  std::map<std::string, bool> seen;
  for (const Storage &storage : program.storages) {
    const std::string place = PlaceOfRole(program, storage.role);
    if (place.empty())
      continue;
    places[place].first += SsdBytes(storage);
    if (!std::exchange(seen[storage.role], true))
      places[place].second += WrittenOf(writes, storage.role);
  }
  for (const auto &[place, bytes] : places)
    list.push_back({absl::StrCat(FormatBytes(bytes.first), " more of host memory: place { ", place,
                                 " = host }"),
                    bytes.second});
  list.erase(std::remove_if(list.begin(), list.end(),
                            [](const Saving &saving) { return saving.bytes < 1; }),
             list.end());
  std::sort(list.begin(), list.end(), [](const Saving &a, const Saving &b) {
    return std::make_pair(-a.bytes, a.what) < std::make_pair(-b.bytes, b.what);
  });
  return list;
}

std::string FindWornOut(const std::vector<PathWear> &wears, double seconds) {
  const PathWear *first = nullptr;
  for (const PathWear &wear : wears)
    if (wear.life > 0 && wear.life < seconds && (!first || wear.life < first->life))
      first = &wear;
  if (!first)
    return "";
  return absl::StrCat("the run takes ", FormatSeconds(seconds), " and wears `",
                      Printable(first->path), "` out after ", FormatSeconds(first->life), ": ",
                      FormatEndurance(first->endurance), " may be written to it");
}

std::string FormatWear(const Program &program, const Writes &writes) {
  const std::vector<PathWear> wears = WearOf(program, writes);
  if (wears.empty())
    return "";
  PathWear all;
  std::string text =
      absl::StrFormat("\n  %-22s %11s %11s %11s\n", "SSD wear", "a step", "a day", "lasts");
  auto add = [&](const std::string &name, const PathWear &wear) {
    absl::StrAppendFormat(&text, "  %-22s %11s %11s", name, FormatBytes(wear.step),
                          FormatBytes(wear.day));
    if (wear.life > 0)
      absl::StrAppendFormat(&text, " %11s of %s", FormatSeconds(wear.life),
                            FormatEndurance(wear.endurance));
    text += '\n';
  };
  for (const PathWear &wear : wears) {
    add(Printable(wear.path), wear);
    all.step += wear.step;
    all.day += wear.day;
  }
  if (wears.size() > 1)
    add("total", all);
  const std::vector<Saving> savings = SavingsOf(program, writes);
  for (size_t i = 0; i < savings.size(); ++i)
    absl::StrAppendFormat(
        &text, "%s  %9s less (%.0f%%) with %s\n", i == 0 ? "  each change alone, a step:\n" : "",
        FormatBytes(savings[i].bytes), 100 * savings[i].bytes / all.step, savings[i].what);
  return text;
}

} // namespace boa
