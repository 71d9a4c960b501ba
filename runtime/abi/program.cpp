//===- program.cpp - What a compiled program says of itself ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/program.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace boa {

Traffic Program::TrafficOfStep(int64_t earlier) const {
  auto found = traffic.find(earlier == 0 ? "first_step" : earlier == 1 ? "second_step" : "step");
  if (found == traffic.end())
    found = traffic.find("step");
  return found == traffic.end() ? Traffic() : found->second;
}

std::string Program::ScheduleInWords() const {
  return absl::StrCat(WordOf(plan.schedule), ", ", MicroBatches(),
                      MicroBatches() == 1 ? " micro-batch of " : " micro-batches of ", MicroBatch(),
                      MicroBatch() == 1 ? " sequence" : " sequences", ", delay ",
                      absl::StrFormat("%.2f", plan.delay),
                      train.compute == ComputeType::bf16 ? ", computed in bf16" : "",
                      UpdatesOnDevice() ? ", updated on the device" : "",
                      IsDirect(machine) ? ", SSDs past the host's memory" : "");
}

void Traffic::Add(const Traffic &other) {
  auto add = [](std::map<std::string, int64_t> &to, const std::map<std::string, int64_t> &from) {
    for (const auto &[role, bytes] : from)
      to[role] += bytes;
  };
  add(read, other.read);
  add(written, other.written);
  add(to_device, other.to_device);
  add(to_host, other.to_host);
}

int64_t StateBytes(const std::string &state_type, int64_t elements) {
  if (!IsCode(state_type))
    return elements * (state_type == "bf16" ? 2 : 4);
  const int64_t bytes = elements + elements / BOA_STATE_BLOCK * int64_t{sizeof(float)};
  return (bytes + BOA_BLOCK_BYTES - 1) / BOA_BLOCK_BYTES * BOA_BLOCK_BYTES;
}

int64_t UpdateBytes(const Program &program, const Group &group) {
  int64_t bytes = group.chunk_elements * (2 * 4 + 4);
  for (const OptimizerState &state : program.optimizer.states)
    bytes += 2 * StateBytes(state.type, group.chunk_elements);
  return bytes;
}

const char *TierName(Home::Tier tier) {
  return tier == Home::device ? "device" : tier == Home::host ? "host" : "ssd";
}

const std::vector<Home> &Storage::HomesOf(int64_t entry) const {
  size_t range = 0;
  for (; range + 1 < homes.size() && entry >= homes[range].entries; ++range)
    entry -= homes[range].entries;
  return homes[range].homes;
}

Home::Tier Storage::TierOf(int64_t entry, int32_t chunk) const {
  for (const Home &home : HomesOf(entry)) {
    if (chunk < home.chunks)
      return home.tier;
    chunk -= home.chunks;
  }
  return Home::ssd;
}

int64_t Storage::ChunksOn(Home::Tier tier) const {
  int64_t count = 0;
  for (const EntryHomes &range : homes)
    for (const Home &home : range.homes)
      if (home.tier == tier)
        count += range.entries * home.chunks;
  return count;
}

bool Storage::LivesOn(Home::Tier tier) const { return ChunksOn(tier) > 0; }

absl::Status Storage::CheckHomes() const {
  int64_t housed = 0;
  for (const EntryHomes &range : homes) {
    int64_t of_entry = 0;
    for (const Home &home : range.homes)
      of_entry += home.chunks;
    if (of_entry != chunks)
      return absl::InvalidArgumentError(
          absl::StrCat("expected homes for ", chunks, " chunks but found them for ", of_entry));
    // A subtraction, since the sum of entries could overflow.
    if (range.entries < 1 || range.entries > entry_count() - housed)
      return absl::InvalidArgumentError(
          absl::StrCat("expected homes for ", entry_count(), " entries but found them for more"));
    housed += range.entries;
  }
  if (housed != entry_count())
    return absl::InvalidArgumentError(
        absl::StrCat("expected homes for ", entry_count(), " entries but found them for ", housed));
  return absl::OkStatus();
}

int64_t Storage::entry_count() const {
  int64_t count = 1;
  for (int64_t dimension : entries)
    count *= dimension;
  return count;
}

std::vector<int64_t> SlotBytes(const Program &program, int32_t space) {
  std::vector<int64_t> bytes(program.storages.size());
  std::map<int32_t, std::pair<size_t, int64_t>> shared; // the first storage, the most bytes
  for (size_t s = 0; s < program.storages.size(); ++s)
    for (const SlotPool &pool : program.storages[s].pools) {
      if (pool.space != space)
        continue;
      const int64_t slots = int64_t{pool.slots} * pool.chunks * program.storages[s].chunk_bytes();
      if (pool.shared) {
        int64_t &most = shared.try_emplace(pool.shared, s, 0).first->second.second;
        most = std::max(most, slots);
      } else {
        bytes[s] += slots;
      }
    }
  for (const auto &[number, pool] : shared)
    bytes[pool.first] += pool.second;
  return bytes;
}

std::string StoredName(const Program &program, const Group &group) {
  const bool frozen = IsFrozen(program.storages[size_t(group.weights)]);
  return absl::StrCat(frozen ? kFrozenPrefix : "", IsOfParts(group) ? kPartsPrefix : "",
                      group.name);
}

bool IsOfParts(const Group &group) {
  return !group.parameters.empty() && group.parameters[0].split >= 0;
}

/// Another parameter "frozen.w" is that of a user's group.
static std::string_view Without(std::string_view prefix, std::string_view saved) {
  const bool has = saved.substr(0, prefix.size()) == prefix &&
                   saved.find('.', prefix.size()) != std::string_view::npos;
  return has ? saved.substr(prefix.size()) : saved;
}

std::string_view UserName(std::string_view saved) {
  return Without(kPartsPrefix, Without(kFrozenPrefix, saved));
}

bool IsFrozen(std::string_view saved) { return Without(kFrozenPrefix, saved) != saved; }

bool IsFrozen(const Storage &storage) {
  return absl::StartsWith(storage.name, absl::StrCat("weights.", kFrozenPrefix));
}

std::optional<ParameterIndex> FindParameter(const Program &program, const Group &group,
                                            std::string_view name) {
  for (size_t g = 0; g < program.groups.size(); ++g)
    for (size_t p = 0; p < program.groups[g].parameters.size(); ++p)
      if (program.groups[g].name == group.name && program.groups[g].parameters[p].name == name)
        return ParameterIndex{int64_t(g), int64_t(p)};
  return std::nullopt;
}

bool HasAdapters(const Program &program) {
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters)
      if (!parameter.adapter.down.empty())
        return true;
  return false;
}

std::vector<std::vector<bool>> PartsOfAdapters(const Program &program) {
  std::vector<std::vector<bool>> parts;
  for (const Group &group : program.groups)
    parts.emplace_back(group.parameters.size());
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters)
      for (const std::string &name : {parameter.adapter.down, parameter.adapter.up})
        if (auto at = FindParameter(program, group, name); at && !name.empty())
          parts[size_t(at->group)][size_t(at->parameter)] = true;
  return parts;
}

std::vector<bool> StatesOfOptimizer(const Program &program) {
  std::vector<bool> states(program.storages.size());
  for (const Group &group : program.groups)
    for (int64_t storage : group.states)
      states[size_t(storage)] = true;
  return states;
}

double LearningRate(const OptimizerSettings &o, int64_t step, int64_t steps) {
  if (o.warmup > 0 && step <= o.warmup)
    return o.peak * static_cast<double>(step) / static_cast<double>(o.warmup);
  if (o.rate == RateKind::constant)
    return o.peak;
  // Past the last step, and where the warm-up takes every step, the floor
  // holds.
  if (step >= steps)
    return o.floor;
  const double done = static_cast<double>(step - o.warmup) / static_cast<double>(steps - o.warmup);
  if (o.rate == RateKind::linear)
    return o.peak + (o.floor - o.peak) * done;
  constexpr double kPi = 3.14159265358979323846;
  return o.floor + 0.5 * (o.peak - o.floor) * (1 + std::cos(kPi * done));
}

} // namespace boa
