//===- base_weights.cpp - Weights of another state ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/base_weights.h"

#include "runtime/kernels/master.h"
#include "runtime/trainer/weights.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace boa {
namespace {

/// "DIR@STEP". Where no number follows the last @, it belongs to the directory.
std::pair<std::string, std::optional<int64_t>> ParseFrom(const std::string &from) {
  const size_t at = from.rfind('@');
  int64_t step = 0;
  if (at == std::string::npos || !absl::SimpleAtoi(from.substr(at + 1), &step) || step < 0)
    return {from, std::nullopt};
  return {from.substr(0, at), step};
}

/// The name of a group in a state, in that of its parameter.
std::string GroupOf(const SavedParameter &saved) {
  return saved.name.substr(0, saved.name.rfind('.'));
}

/// The weights of a group, and the lower halves of their masters; null if there are none.
const SavedTable *WeightsOf(const CommitReader &commit, const std::string &group) {
  return commit.Find(absl::StrCat("weights.", group));
}
const SavedTable *HalvesOf(const CommitReader &commit, const std::string &group) {
  return commit.Find(absl::StrCat("low.", group));
}

int64_t ChunkElements(const SavedTable &table, bool narrow) {
  return table.storage.chunk_bytes / (narrow ? 2 : 4);
}

/// Names as the program would give them.
absl::StatusOr<ShapesByName> ShapesOf(const CommitReader &commit, const Program &program) {
  ShapesByName shapes;
  for (const SavedParameter &saved : commit.parameters()) {
    const size_t dot = saved.name.rfind('.');
    const std::string stored = GroupOf(saved);
    Group group;
    group.name = UserName(saved.name).substr(0, UserName(saved.name).find('.'));
    Parameter parameter;
    parameter.name = saved.name.substr(dot + 1);
    const SavedTable *table = WeightsOf(commit, stored);
    if (dot == std::string::npos || !table)
      return absl::FailedPreconditionError(
          absl::StrCat("its commit has no weights of ", saved.name));
    const int64_t most = table->storage.chunks * ChunkElements(*table, commit.HasHalves());
    if (saved.offset > most || CountElements(saved.shape) > most - saved.offset)
      return absl::DataLossError(absl::StrCat(saved.name, " is beyond the chunks of its weights"));
    auto same = std::find_if(program.groups.begin(), program.groups.end(),
                             [&](const Group &other) { return other.name == group.name; });
    group.layer = same != program.groups.end() ? same->layer : table->storage.entries > 1;
    for (int64_t entry = 0; entry < table->storage.entries; ++entry)
      shapes[ParameterName(group, entry, parameter)] = saved.shape;
  }
  return shapes;
}

} // namespace

absl::StatusOr<std::unique_ptr<BaseWeights>>
BaseWeights::Open(FileSystem &disk, const Program &program, const std::string &from) {
  const auto [directory, step] = ParseFrom(from);
  auto refuse = [&](const absl::Status &status) {
    return absl::Status(status.code(), absl::StrCat("--from ", from, ": ", status.message()));
  };
  absl::StatusOr<std::unique_ptr<CommitReader>> commit = CommitReader::Open(disk, directory, step);
  if (!commit.ok())
    return refuse(commit.status());
  absl::StatusOr<ShapesByName> shapes = ShapesOf(**commit, program);
  if (!shapes.ok())
    return refuse(shapes.status());
  if (absl::Status status = CheckParameters(program, directory, *shapes); !status.ok())
    return refuse(status);
  return std::unique_ptr<BaseWeights>(new BaseWeights(*std::move(commit)));
}

absl::Status BaseWeights::Hold(Held &held, const SavedTable &table, size_t index) {
  if (held.table == &table && held.index == index)
    return absl::OkStatus();
  if (held.table != &table)
    held.data.reset(static_cast<char *>(
        std::aligned_alloc(size_t(kStateBlock), size_t(table.storage.chunk_bytes))));
  held.table = nullptr;
  if (!held.data)
    return absl::ResourceExhaustedError("no memory for a chunk");
  absl::Status status = commit->Read(table, index, held.data.get());
  if (status.ok())
    held.table = &table, held.index = index;
  return status;
}

absl::Status BaseWeights::Read(const Group &group, int64_t entry, const Parameter &parameter,
                               int64_t first, int64_t count, float *values) {
  const std::string name = absl::StrCat(group.name, ".", parameter.name);
  const std::vector<SavedParameter> &all = commit->parameters();
  auto saved = std::find_if(all.begin(), all.end(), [&](const SavedParameter &other) {
    return UserName(other.name) == name;
  });
  const SavedTable &table = *WeightsOf(*commit, GroupOf(*saved));
  const SavedTable *halves = HalvesOf(*commit, GroupOf(*saved)); // none if it is frozen
  const bool narrow = commit->HasHalves();
  const int64_t elements = ChunkElements(table, narrow);
  for (int64_t at = saved->offset + first, end = at + count, next; at < end; at = next) {
    const int64_t chunk = at / elements, begin = at % elements;
    next = std::min(end, (chunk + 1) * elements);
    const size_t index = size_t(entry * table.storage.chunks + chunk);
    if (absl::Status status = Hold(high, table, index); !status.ok())
      return status;
    if (!narrow) {
      std::memcpy(values, high.data.get() + begin * 4, size_t(next - at) * 4);
      values += next - at;
      continue;
    }
    if (absl::Status status = halves ? Hold(low, *halves, index) : absl::OkStatus(); !status.ok())
      return status;
    const auto *upper = reinterpret_cast<const uint16_t *>(high.data.get()) + begin;
    const auto *lower =
        halves ? reinterpret_cast<const int16_t *>(low.data.get()) + begin : nullptr;
    for (int64_t i = 0; i < next - at; ++i, ++values) {
      const uint32_t bits = JoinMaster(upper[i], lower ? lower[i] : int16_t{0});
      std::memcpy(values, &bits, 4);
    }
  }
  return absl::OkStatus();
}

} // namespace boa
