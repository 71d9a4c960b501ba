//===- base_weights.cpp - Weights of another state ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/base_weights.h"

#include "runtime/abi/parts.h"
#include "runtime/state/commit_name.h"
#include "runtime/weights/parameter_names.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>
#include <utility>

namespace boa {
namespace {

/// So many parameters more than the program's are compared by name, so that a few can be named. A
/// manifest of some kilobytes may have millions.
constexpr int64_t kMostBeyond = 1 << 16;

/// Names as the program would give them.
absl::StatusOr<ShapesByName> ShapesOf(const CommitReader &commit, const Program &program) {
  ShapesByName shapes;
  std::map<absl::string_view, const SavedTable *> tables;
  for (const SavedTable &table : commit.saved().tables)
    tables.emplace(table.storage.name, &table);
  std::map<absl::string_view, const Group *> groups;
  const bool narrow = HasHalves(commit.saved());
  int64_t wanted = 0, found = 0;
  for (const Group &group : program.groups) {
    groups.emplace(group.name, &group);
    wanted += CountWholes(group) * int64_t(group.parameters.size());
  }
  for (const SavedParameter &saved : commit.parameters()) {
    const size_t dot = saved.name.rfind('.');
    const std::string stored = GroupOf(saved);
    Group group;
    group.name = UserName(saved.name).substr(0, UserName(saved.name).find('.'));
    Parameter parameter;
    parameter.name = saved.name.substr(dot + 1);
    const auto named = tables.find(absl::StrCat("weights.", stored));
    if (dot == std::string::npos || named == tables.end())
      return absl::FailedPreconditionError(
          absl::StrCat("its commit has no weights of ", saved.name));
    const SavedTable *table = named->second;
    const int64_t most = table->storage.chunks * (table->storage.chunk_bytes / (narrow ? 2 : 4));
    if (saved.offset > most || CountElements(saved.shape) > most - saved.offset)
      return absl::DataLossError(absl::StrCat(saved.name, " is beyond the chunks of its weights"));
    const auto same = groups.find(group.name);
    group.layer = saved.split >= 0       ? false
                  : same != groups.end() ? same->second->layer
                                         : table->storage.entries > 1;
    const int64_t wholes = saved.split < 0 ? table->storage.entries : 1;
    found += wholes;
    if (found > wanted + kMostBeyond)
      return absl::FailedPreconditionError(absl::StrCat("it has more than ", wanted + kMostBeyond,
                                                        " parameters, and `", program.model.name,
                                                        "` has ", wanted));
    const std::vector<int64_t> shape =
        Parts(saved.shape, saved.split, table->storage.entries).WholeShape();
    for (int64_t entry = 0; entry < wholes; ++entry)
      shapes[ParameterName(group, entry, parameter)] = shape;
  }
  return shapes;
}

} // namespace

absl::StatusOr<std::unique_ptr<BaseWeights>> BaseWeights::Open(FileSystem &disk,
                                                               const Program &program,
                                                               const std::string &from,
                                                               Adapters adapters) {
  auto refuse = [&](const absl::Status &status) {
    return absl::Status(status.code(), absl::StrCat(from, ": ", status.message()));
  };
  absl::StatusOr<CommitName> named = FindCommit(disk, from);
  if (!named.ok())
    return refuse(named.status());
  absl::StatusOr<std::unique_ptr<CommitReader>> commit =
      CommitReader::Open(disk, named->directory, named->step);
  if (!commit.ok())
    return refuse(commit.status());
  absl::StatusOr<ShapesByName> shapes = ShapesOf(**commit, program);
  if (!shapes.ok())
    return refuse(shapes.status());
  if (absl::Status status = CheckParameters(program, named->directory, *shapes, adapters);
      !status.ok())
    return refuse(status);
  return std::unique_ptr<BaseWeights>(new BaseWeights(*std::move(commit)));
}

} // namespace boa
