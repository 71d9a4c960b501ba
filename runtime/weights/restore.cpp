//===- restore.cpp - A commit into a program's storages -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/restore.h"

#include "runtime/weights/initial_values.h"
#include "runtime/weights/parameter_storages.h"
#include "runtime/weights/saved_values.h"

#include <algorithm>
#include <cstring>

namespace boa {
namespace {

absl::Status RestoreWeights(const Program &program, int64_t g, SavedValues &saved, Engine &engine) {
  return FillGroup(
      program, g, engine,
      [&](int64_t, int64_t entry, int64_t p, int64_t first, int64_t count, float *values) {
        const Group &group = program.groups[size_t(g)];
        const Parameter &parameter = group.parameters[size_t(p)];
        if (saved.Has(group, parameter))
          return saved.ReadMaster(group, entry, parameter, first, count, values);
        InitialValues(program, g, entry, p, first, count, values);
        return absl::OkStatus();
      });
}

/// Of parameters that were frozen or not there, a state is zero. If it is zero for all, it stays
/// absent.
absl::Status RestoreState(const Program &program, int64_t g, size_t state, SavedValues &saved,
                          Engine &engine) {
  const Group &group = program.groups[size_t(g)];
  const OptimizerState &of = program.optimizer.states[state];
  auto has = [&](const Parameter &parameter) { return saved.HasState(of.name, group, parameter); };
  if (std::none_of(group.parameters.begin(), group.parameters.end(), has))
    return absl::OkStatus();
  const int64_t size = StateBytes(of.type, 1);
  return FillState(
      program, g, state, engine,
      [&](int64_t entry, const Parameter &parameter, int64_t first, int64_t count, char *bytes) {
        if (has(parameter))
          return saved.ReadState(of.name, size, group, entry, parameter, first, count, bytes);
        std::memset(bytes, 0, size_t(count * size));
        return absl::OkStatus();
      });
}

} // namespace

absl::Status Restore(const Program &program, StateStore &state, Engine &engine) {
  if (absl::Status status = engine.Restore(); !status.ok())
    return status;
  SavedValues saved(state.OpenedParameters(), *state.Opened(),
                    [&](const SavedTable &table, size_t index, void *data) {
                      return state.ReadOpened(table, index, data);
                    });
  for (size_t g = 0; g < program.groups.size(); ++g) {
    const Group &group = program.groups[g];
    absl::Status status;
    if (!state.Stands(group.weights))
      status = RestoreWeights(program, int64_t(g), saved, engine);
    for (size_t i = 0; i < group.states.size() && status.ok(); ++i)
      if (!state.Stands(int32_t(group.states[i])))
        status = RestoreState(program, int64_t(g), i, saved, engine);
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}

} // namespace boa
