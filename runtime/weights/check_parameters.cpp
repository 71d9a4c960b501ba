//===- check_parameters.cpp - Tensors against the parameters --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/check_parameters.h"

#include "runtime/abi/parts.h"
#include "runtime/weights/parameter_names.h"
#include "runtime/weights/safetensors.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <set>

namespace boa {
namespace {

/// One line for each way in which the tensors are not those of this model.
std::vector<std::string> Mismatches(const Program &program, const ShapesByName &shapes,
                                    Adapters adapters) {
  std::vector<std::string> lines;
  const bool may_lack = adapters == Adapters::may_be_new && LacksAdapters(program, shapes);
  const std::vector<std::vector<bool>> parts = PartsOfAdapters(program);
  std::set<std::string> known;
  for (size_t g = 0; g < program.groups.size(); ++g)
    for (int64_t entry = 0; entry < CountWholes(program.groups[g]); ++entry)
      for (size_t p = 0; p < program.groups[g].parameters.size(); ++p) {
        const Group &group = program.groups[g];
        const Parameter &parameter = group.parameters[p];
        const std::string name = ParameterName(group, entry, parameter);
        const std::vector<int64_t> shape = Parts(group, parameter).WholeShape();
        if (may_lack && parts[g][p])
          continue;
        known.insert(name);
        auto found = shapes.find(name);
        if (found == shapes.end())
          lines.push_back(
              absl::StrCat(name, ": expected ", FormatShape(shape), " but found no such tensor"));
        else if (found->second != shape)
          lines.push_back(absl::StrCat(name, ": expected ", FormatShape(shape), " but found ",
                                       FormatShape(found->second)));
      }
  for (const auto &[name, shape] : shapes)
    if (!known.count(name))
      lines.push_back(absl::StrCat(name, ": the model has no such parameter"));
  return lines;
}

} // namespace

bool LacksAdapters(const Program &program, const ShapesByName &shapes) {
  const std::vector<std::vector<bool>> parts = PartsOfAdapters(program);
  for (size_t g = 0; g < program.groups.size(); ++g)
    for (int64_t entry = 0; entry < program.groups[g].count; ++entry)
      for (size_t p = 0; p < program.groups[g].parameters.size(); ++p)
        if (parts[g][p] &&
            shapes.count(ParameterName(program.groups[g], entry, program.groups[g].parameters[p])))
          return false;
  return true;
}

absl::Status CheckParameters(const Program &program, const std::string &of,
                             const ShapesByName &shapes, Adapters adapters) {
  return DescribeMismatches(program, of, Mismatches(program, shapes, adapters));
}

absl::Status DescribeMismatches(const Program &program, const std::string &of,
                                const std::vector<std::string> &lines) {
  constexpr size_t kShown = 5;
  if (lines.empty())
    return absl::OkStatus();
  std::string message =
      absl::StrCat("`", of, "` does not hold the weights of `", program.model.name, "`:");
  for (size_t i = 0; i < std::min(lines.size(), kShown); ++i)
    absl::StrAppend(&message, "\n  ", lines[i]);
  if (lines.size() > kShown)
    absl::StrAppend(&message, "\n  and ", lines.size() - kShown, " more");
  return absl::FailedPreconditionError(message);
}

} // namespace boa
