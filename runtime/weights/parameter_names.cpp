//===- parameter_names.cpp - Names of parameters in files -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/parameter_names.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace boa {

std::string ParameterName(const Group &group, int64_t entry, const Parameter &parameter) {
  if (!group.layer)
    return absl::StrCat(group.name, ".", parameter.name);
  return absl::StrCat(group.name, ".", entry, ".", parameter.name);
}

bool ExternalTensor::Fits(const std::vector<int64_t> &tensor,
                          const std::vector<int64_t> &parameter) const {
  if (rows == all || tensor.empty())
    return tensor == parameter;
  const std::vector<int64_t> of_row(tensor.begin() + 1, tensor.end());
  if (rows == one)
    return row < tensor[0] && of_row == parameter;
  return !parameter.empty() && parameter[0] <= tensor[0] &&
         of_row == std::vector<int64_t>(parameter.begin() + 1, parameter.end());
}

ExternalTensor ExternalOf(int64_t entry, const Parameter &parameter) {
  ExternalTensor tensor;
  absl::string_view text = parameter.external;
  if (absl::ConsumeSuffix(&text, "[:]")) {
    tensor.rows = ExternalTensor::first;
  } else if (const size_t at = text.rfind('['); absl::ConsumeSuffix(&text, "]")) {
    // The checker knows that it is a number.
    if (at != absl::string_view::npos && absl::SimpleAtoi(text.substr(at + 1), &tensor.row))
      tensor.rows = ExternalTensor::one;
    text = text.substr(0, at);
  }
  tensor.name = absl::StrReplaceAll(text, {{"*", absl::StrCat(entry)}});
  return tensor;
}

} // namespace boa
