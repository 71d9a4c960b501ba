//===- adapters.cpp - Weights with their adapters, and adapters alone -----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/adapters.h"

#include "runtime/abi/parts.h"
#include "runtime/support/interrupt.h"
#include "runtime/weights/parameter_names.h"
#include "runtime/weights/safetensors.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <set>
#include <utility>

namespace boa {
namespace {

/// Elements that are in memory at once.
constexpr int64_t kAdaptedAtOnce = int64_t{1} << 20;

const Parameter &ParameterAt(const Program &program, ParameterIndex at) {
  return program.groups[size_t(at.group)].parameters[size_t(at.parameter)];
}

/// A matrix with its rows and columns changed.
std::vector<float> Transposed(const std::vector<float> &values, int64_t rows, int64_t columns) {
  std::vector<float> out(values.size());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      out[size_t(column * rows + row)] = values[size_t(row * columns + column)];
  return out;
}

} // namespace

absl::Status MergedWeights::Hold(const Group &group, int64_t entry, const Parameter &parameter) {
  if (held == &parameter && held_entry == entry)
    return absl::OkStatus();
  held = nullptr;
  // A is [rank, in], B is [out, rank].
  const Adapter &adapter = parameter.adapter;
  auto read = [&](const std::string &name, std::vector<float> &values) {
    const ParameterIndex at = *FindParameter(program, group, name);
    const Parameter &part = ParameterAt(program, at);
    values.resize(size_t(part.elements()));
    return weights.Read(program.groups[size_t(at.group)], entry, part, 0, part.elements(),
                        values.data());
  };
  absl::Status status = read(adapter.down, right);
  if (status.ok())
    status = read(adapter.up, left);
  if (!status.ok())
    return status;
  const int64_t in = parameter.shape[adapter.transposed],
                out = parameter.shape[!adapter.transposed];
  rank = int64_t(right.size()) / in;
  if (!adapter.transposed) {
    std::swap(left, right);
    left = Transposed(left, rank, in);
    right = Transposed(right, out, rank);
  }
  const double scale = adapter.Scale(rank);
  for (float &value : left)
    value = float(value * scale);
  held = &parameter;
  held_entry = entry;
  return absl::OkStatus();
}

absl::Status MergedWeights::Read(const Group &group, int64_t entry, const Parameter &parameter,
                                 int64_t first, int64_t count, float *values) {
  absl::Status status = weights.Read(group, entry, parameter, first, count, values);
  if (!status.ok() || parameter.adapter.down.empty())
    return status;
  if (status = Hold(group, entry, parameter); !status.ok())
    return status;
  const int64_t columns = parameter.shape[1], end = first + count;
  sum.resize(size_t(columns));
  for (int64_t at = first, next; at < end; at = next) {
    const int64_t row = at / columns, begin = at % columns;
    next = std::min(end, (row + 1) * columns);
    const int64_t width = next - at;
    std::fill_n(sum.begin(), width, 0.0f);
    for (int64_t k = 0; k < rank; ++k) {
      const float factor = left[size_t(row * rank + k)];
      const float *from = right.data() + k * columns + begin;
      for (int64_t i = 0; i < width; ++i)
        sum[size_t(i)] += factor * from[i];
    }
    for (int64_t i = 0; i < width; ++i)
      values[at - first + i] += sum[size_t(i)];
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Adapted>> FindAdapted(const Program &program) {
  std::vector<Adapted> found;
  for (size_t g = 0; g < program.groups.size(); ++g)
    for (int64_t entry = 0; entry < program.groups[g].count; ++entry)
      for (const Parameter &parameter : program.groups[g].parameters) {
        const Group &group = program.groups[g];
        if (parameter.adapter.down.empty())
          continue;
        const ExternalTensor external = ExternalOf(entry, parameter);
        absl::string_view module = external.name;
        if (external.kind != ExternalTensor::all || !absl::ConsumeSuffix(&module, ".weight") ||
            module.empty())
          return absl::FailedPreconditionError(absl::StrCat(
              "parameter ", group.name, ".", parameter.name,
              " has an adapter, but no module: write as \"MODULE.weight\" behind its initial value "
              "in the spec"));
        const ParameterIndex down = *FindParameter(program, group, parameter.adapter.down);
        found.push_back({int64_t(g), entry, down,
                         *FindParameter(program, group, parameter.adapter.up), parameter.adapter,
                         ParameterAt(program, down).shape[0], std::string(module)});
      }
  return found;
}

absl::StatusOr<std::vector<NamedParameter>> FindTrainedWhole(const Program &program) {
  const std::vector<std::vector<bool>> parts = PartsOfAdapters(program);
  std::set<std::string> modules;
  std::vector<NamedParameter> found;
  absl::Status status;
  const auto refuse = [&](const Group &group, const Parameter &parameter, const char *why) {
    status.Update(absl::FailedPreconditionError(
        absl::StrCat("parameter ", group.name, ".", parameter.name, why)));
  };
  const auto for_each = [&](auto take) {
    for (size_t g = 0; g < program.groups.size(); ++g)
      for (int64_t entry = 0; entry < CountWholes(program.groups[g]); ++entry)
        for (size_t p = 0; p < program.groups[g].parameters.size(); ++p)
          if (!parts[g][p])
            take(g, entry, p, ExternalOf(entry, program.groups[g].parameters[p]));
  };
  for_each([&](size_t g, int64_t, size_t p, const ExternalTensor &external) {
    const Group &group = program.groups[g];
    if (IsFrozen(program.storages[size_t(group.weights)]))
      return;
    if (external.name.empty())
      refuse(group, group.parameters[p],
             " is trained as a whole, but has no name elsewhere: write as \"TENSOR\" behind its "
             "initial value in the spec");
    modules.insert(ModuleOf(external.name));
  });
  for_each([&](size_t g, int64_t entry, size_t p, const ExternalTensor &external) {
    const Group &group = program.groups[g];
    const Parameter &parameter = group.parameters[p];
    if (!modules.count(ModuleOf(external.name)))
      return;
    if (external.kind != ExternalTensor::all)
      refuse(group, parameter,
             " is only some rows of its tensor, and PEFT saves whole tensors of a module that is "
             "trained");
    if (!parameter.adapter.down.empty())
      refuse(group, parameter,
             " has an adapter, and another parameter of its module is trained as a whole: PEFT "
             "saves a module in one way");
    found.push_back({external.name, entry, {int64_t(g), int64_t(p)}});
  });
  if (!status.ok())
    return status;
  return found;
}

absl::Status CheckForPeft(const Program &program) {
  const bool names =
      std::any_of(program.groups.begin(), program.groups.end(), [](const Group &group) {
        return std::any_of(group.parameters.begin(), group.parameters.end(),
                           [](const Parameter &parameter) { return !parameter.external.empty(); });
      });
  if (!HasAdapters(program) || !names)
    return absl::OkStatus();
  absl::Status status = FindAdapted(program).status();
  return status.ok() ? FindTrainedWhole(program).status() : status;
}

absl::StatusOr<int64_t> ExportTensors(FileSystem &disk, const Program &program,
                                      const std::string &from, const std::string &path, bool bf16,
                                      const std::vector<NamedParameter> &parameters) {
  absl::StatusOr<std::unique_ptr<BaseWeights>> weights = BaseWeights::Open(disk, program, from);
  if (!weights.ok())
    return weights.status();
  std::vector<Tensor> tensors;
  int64_t bytes = 0;
  for (const NamedParameter &named : parameters) {
    Tensor tensor;
    tensor.name = named.tensor;
    tensor.dtype = bf16 ? "BF16" : "F32";
    tensor.shape = ParameterAt(program, named.at).shape;
    bytes += tensor.elements() * (bf16 ? 2 : 4);
    tensors.push_back(std::move(tensor));
  }
  absl::StatusOr<SafetensorsWriter> writer =
      SafetensorsWriter::Create(path, std::move(tensors), {{"format", "pt"}});
  if (!writer.ok())
    return writer.status();
  std::vector<float> values(static_cast<size_t>(kAdaptedAtOnce));
  for (const NamedParameter &named : parameters) {
    const Parameter &part = ParameterAt(program, named.at);
    for (int64_t first = 0; first < part.elements(); first += kAdaptedAtOnce) {
      const int64_t count = std::min(kAdaptedAtOnce, part.elements() - first);
      if (Interrupted())
        return Interruption();
      absl::Status status = (*weights)->Read(program.groups[size_t(named.at.group)], named.entry,
                                             part, first, count, values.data());
      if (status.ok())
        status = writer->Append(values.data(), count);
      if (!status.ok())
        return status;
    }
  }
  if (absl::Status status = writer->Finish(); !status.ok())
    return status;
  return bytes;
}

} // namespace boa
