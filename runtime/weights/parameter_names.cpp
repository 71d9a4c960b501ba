//===- parameter_names.cpp - Names of parameters in files -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/parameter_names.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace boa {

std::string ParameterName(const Group &group, int64_t entry, const Parameter &parameter) {
  if (!group.layer)
    return absl::StrCat(group.name, ".", parameter.name);
  return absl::StrCat(group.name, ".", entry, ".", parameter.name);
}

bool TensorPart::Overlaps(int64_t elements, const TensorPart &other, int64_t of_other) const {
  const int64_t end = begin + (elements / width - 1) * stride + width;
  const int64_t other_end = other.begin + (of_other / other.width - 1) * other.stride + other.width;
  if (begin >= other_end || other.begin >= end)
    return false;
  if (IsDense() || other.IsDense() || stride != other.stride)
    return true;
  // Columns of the same rows.
  const int64_t column = begin % stride, other_column = other.begin % stride;
  return column < other_column + other.width && other_column < column + width;
}

std::optional<TensorPart> ExternalTensor::In(const std::vector<int64_t> &tensor,
                                             const std::vector<int64_t> &parameter) const {
  const int64_t elements = CountElements(parameter);
  if (kind == all || tensor.empty() || parameter.empty())
    return tensor == parameter ? std::optional(TensorPart{0, elements, elements}) : std::nullopt;
  if (kind == block) {
    if (tensor.size() != 2 || parameter.size() != 2 || row + parameter[0] > tensor[0] ||
        column + parameter[1] > tensor[1])
      return std::nullopt;
    return TensorPart{row * tensor[1] + column, parameter[1], tensor[1]};
  }
  // Whole rows, or one of them.
  const std::vector<int64_t> of_row(tensor.begin() + 1, tensor.end());
  const std::vector<int64_t> own(parameter.begin() + (kind == rows), parameter.end());
  const int64_t count = kind == rows ? parameter[0] : 1;
  if (of_row != own || row + count > tensor[0])
    return std::nullopt;
  return TensorPart{row * CountElements(of_row), elements, elements};
}

/// The checker knows that it is a number.
static int64_t NumberOf(absl::string_view digits) {
  int64_t number = 0;
  return absl::SimpleAtoi(digits, &number) ? number : 0;
}

ExternalTensor ExternalOf(int64_t entry, const Parameter &parameter) {
  ExternalTensor tensor;
  absl::string_view text = parameter.external;
  const size_t at = text.find('[');
  if (at != absl::string_view::npos && absl::EndsWith(text, "]")) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(text.substr(at + 1, text.size() - at - 2), ',');
    tensor.kind = parts.size() > 1                   ? ExternalTensor::block
                  : absl::StrContains(parts[0], ":") ? ExternalTensor::rows
                                                     : ExternalTensor::one;
    tensor.row = NumberOf(parts[0].substr(0, parts[0].find(':')));
    if (parts.size() > 1)
      tensor.column = NumberOf(parts[1].substr(0, parts[1].find(':')));
    text = text.substr(0, at);
  }
  tensor.name = absl::StrReplaceAll(text, {{"*", absl::StrCat(entry)}});
  return tensor;
}

} // namespace boa
