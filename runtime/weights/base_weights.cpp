//===- base_weights.cpp - Weights of another state ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/base_weights.h"

#include "runtime/state/commit_name.h"
#include "runtime/weights/parameter_names.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

namespace boa {
namespace {

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
    const SavedTable *table = FindTable(commit.saved(), absl::StrCat("weights.", stored));
    if (dot == std::string::npos || !table)
      return absl::FailedPreconditionError(
          absl::StrCat("its commit has no weights of ", saved.name));
    const int64_t most =
        table->storage.chunks * (table->storage.chunk_bytes / (HasHalves(commit.saved()) ? 2 : 4));
    if (saved.offset > most || CountElements(saved.shape) > most - saved.offset)
      return absl::DataLossError(absl::StrCat(saved.name, " is beyond the chunks of its weights"));
    auto same = std::find_if(program.groups.begin(), program.groups.end(),
                             [&](const Group &other) { return other.name == group.name; });
    group.layer = saved.split >= 0               ? false
                  : same != program.groups.end() ? same->layer
                                                 : table->storage.entries > 1;
    const int64_t wholes = saved.split < 0 ? table->storage.entries : 1;
    for (int64_t entry = 0; entry < wholes; ++entry)
      shapes[ParameterName(group, entry, parameter)] = PartsOf(commit.saved(), saved).WholeShape();
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
