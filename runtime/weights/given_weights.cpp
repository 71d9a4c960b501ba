//===- given_weights.cpp - Weights from a file or a folder ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/given_weights.h"

#include "runtime/abi/parts.h"
#include "runtime/weights/check_parameters.h"
#include "runtime/weights/export_parameters.h"
#include "runtime/weights/initial_values.h"
#include "runtime/weights/parameter_names.h"
#include "runtime/weights/parameter_storages.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace boa {
namespace {

/// Models recompute these: GPT-2's causal masks, BERT's positions, the frequencies of rotary
/// positions, and their scaling, which GGUF files have as a tensor.
bool IsBuffer(const Tensor &tensor) {
  const bool mask = tensor.shape.size() == 4 && tensor.shape[0] == 1 && tensor.shape[1] == 1;
  return (mask && absl::EndsWith(tensor.name, ".attn.bias")) ||
         (tensor.shape.size() <= 1 && absl::EndsWith(tensor.name, ".attn.masked_bias")) ||
         absl::EndsWith(tensor.name, ".rotary_emb.inv_freq") ||
         tensor.name == "rope_freqs.weight" ||
         absl::EndsWith(tensor.name, "embeddings.position_ids");
}

/// Whether a parameter has a name elsewhere.
bool HasNames(const Program &program) {
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters)
      if (!parameter.external.empty())
        return true;
  return false;
}

/// What of a tensor is a parameter, for messages.
const char *PartName(const ExternalTensor &external) {
  if (external.kind == ExternalTensor::all)
    return "";
  return external.kind == ExternalTensor::block ? "rows and columns for " : "rows for ";
}

} // namespace

absl::StatusOr<std::unique_ptr<GivenWeights>>
GivenWeights::Open(const Program &program, const std::string &path,
                   const std::vector<std::string> &unwanted, Adapters adapters) {
  absl::StatusOr<WeightFiles> files = WeightFiles::Open(path);
  if (!files.ok())
    return files.status();
  std::unique_ptr<GivenWeights> given(new GivenWeights(program, *std::move(files)));
  std::vector<std::string> mismatches;
  given->Match(adapters, mismatches);
  if (absl::Status status = given->CheckRest(unwanted, mismatches); !status.ok())
    return status;
  if (absl::Status status = DescribeMismatches(program, path, mismatches); !status.ok())
    return status;
  return given;
}

void GivenWeights::Match(Adapters adapters, std::vector<std::string> &mismatches) {
  struct Part {
    TensorPart part;
    int64_t elements;
  };
  std::map<const Tensor *, std::vector<Part>> seen;
  ShapesByName shapes;
  for (const auto &[name, tensor] : files.tensors())
    shapes[name] = tensor->shape;
  const bool may_lack = adapters == Adapters::may_be_new && LacksAdapters(program, shapes);
  const std::vector<std::vector<bool>> parts = PartsOfAdapters(program);
  const bool has_names = files.has_outside_names() && HasNames(program);
  for (size_t g = 0; g < program.groups.size(); ++g) {
    const Group &group = program.groups[g];
    taken.emplace_back();
    for (int64_t entry = 0; entry < CountWholes(group); ++entry)
      for (size_t p = 0; p < group.parameters.size(); ++p) {
        const Parameter &parameter = group.parameters[p];
        const std::string own = ParameterName(group, entry, parameter);
        const ExternalTensor external = ExternalOf(entry, parameter);
        const bool is_fresh = has_names && external.name.empty() && !files.Find(own);
        if (is_fresh && !parts[g][p])
          initial.push_back(own);
        if ((is_fresh && !parts[g][p]) || (may_lack && parts[g][p])) {
          taken.back().emplace_back();
          continue;
        }
        const std::vector<int64_t> shape = Parts(group, parameter).WholeShape();
        const Tensor *tensor = external.name.empty() ? nullptr : files.Find(external.name);
        const bool is_own = !tensor;
        if (is_own)
          tensor = files.Find(own);
        const ExternalTensor whole;
        const std::optional<TensorPart> part =
            tensor ? (is_own ? whole : external).In(tensor->shape, shape) : std::nullopt;
        taken.back().push_back({tensor, part.value_or(TensorPart())});
        const bool elsewhere = files.has_outside_names() && !external.name.empty();
        const std::string name = tensor ? tensor->name : elsewhere ? external.name : own;
        if (!tensor)
          mismatches.push_back(
              absl::StrCat(name, ": expected ", FormatShape(shape), " but found no such tensor"));
        else if (!part)
          mismatches.push_back(absl::StrCat(name, ": expected ", is_own ? "" : PartName(external),
                                            FormatShape(shape), " but found ",
                                            FormatShape(tensor->shape)));
        else if (!IsReadable(*tensor))
          mismatches.push_back(absl::StrCat(name, " is ", tensor->dtype, ", but only ",
                                            files.readable_types(), " can be read"));
        else {
          const int64_t elements = CountElements(shape);
          for (const Part &other : seen[tensor])
            if (part->Overlaps(elements, other.part, other.elements)) {
              mismatches.push_back(absl::StrCat(name, ": two parameters have this name"));
              break;
            }
          seen[tensor].push_back({*part, elements});
        }
      }
  }
}

absl::Status GivenWeights::CheckRest(const std::vector<std::string> &unwanted,
                                     std::vector<std::string> &mismatches) {
  std::set<const Tensor *> used;
  for (const auto &group : taken)
    for (const Taken &part : group)
      used.insert(part.tensor);
  const std::set<std::string> left(unwanted.begin(), unwanted.end());
  for (const auto &[name, tensor] : files.tensors()) {
    if (used.count(tensor) || left.count(name) || IsBuffer(*tensor))
      continue;
    bool copy = false;
    for (auto it = used.begin(); it != used.end() && !copy; ++it) {
      if (!*it || !IsReadable(*tensor) || (*it)->shape != tensor->shape || tensor->shape.empty() ||
          tensor->shape[0] != program.model.vocab)
        continue;
      absl::StatusOr<bool> same = files.AreSame(**it, *tensor);
      if (!same.ok())
        return same.status();
      copy = *same;
    }
    if (copy)
      second.push_back(name);
    else
      mismatches.push_back(absl::StrCat(name, ": the model has no such parameter"));
  }
  return absl::OkStatus();
}

std::string GivenWeights::NoteOfInitial() const {
  return initial.empty() ? ""
                         : absl::StrCat("note: without a name in `", files.path(),
                                        "`, with initial values: ", absl::StrJoin(initial, ", "));
}

Computation GivenWeights::computation() const { return ComputationOf(files); }

absl::Status GivenWeights::Read(int64_t g, int64_t entry, int64_t p, int64_t first, int64_t count,
                                float *values) const {
  const Group &group = program.groups[size_t(g)];
  const size_t width = group.parameters.size();
  if (!taken[size_t(g)][size_t(IsOfParts(group) ? 0 : entry) * width + size_t(p)].tensor) {
    InitialValues(program, g, entry, p, first, count, values);
    return absl::OkStatus();
  }
  return Parts(group, group.parameters[size_t(p)])
      .ForEachOfPart(entry, first, count, [&](int64_t whole, int64_t begin, int64_t elements) {
        const Taken &from = taken[size_t(g)][size_t(whole) * width + size_t(p)];
        return from.part.ForEachRun(begin, elements, [&](int64_t at, int64_t run) {
          absl::Status status = ReadFinite(*from.tensor, at, run, values);
          values += run;
          return status;
        });
      });
}

absl::Status GivenWeights::ReadFinite(const Tensor &tensor, int64_t first, int64_t count,
                                      float *values) const {
  if (absl::Status status = files.Read(tensor, first, count, values); !status.ok())
    return status;
  const float *wrong =
      std::find_if(values, values + count, [](float value) { return !std::isfinite(value); });
  if (wrong == values + count)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("`", files.path(), "`: tensor `", tensor.name,
                                                 "`: element ", first + (wrong - values), " is ",
                                                 *wrong, ": expected finite weights"));
}

absl::Status GivenWeights::Fill(Engine &engine) const {
  return FillParameters(program, engine,
                        [this](int64_t g, int64_t entry, int64_t p, int64_t first, int64_t count,
                               float *values) { return Read(g, entry, p, first, count, values); });
}

} // namespace boa
