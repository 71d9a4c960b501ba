//===- parameter_names.h - Names of parameters in files ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A parameter's name in a file is `group.parameter`. If the group has several entries, the
// number of the entry is between: `embed.wte`, `block.3.qkv_w`. Outside of Boa it has the name that
// the spec gives it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_PARAMETER_NAMES_H
#define BOA_RUNTIME_WEIGHTS_PARAMETER_NAMES_H

#include "runtime/abi/module_names.h"
#include "runtime/abi/program.h"

#include "absl/status/status.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// "embed.wte"; in a layer "block.0.qkv_w", even in the only layer.
std::string ParameterName(const Group &, int64_t entry, const Parameter &);

/// Where a parameter lies in a tensor: `width` elements of each row of `stride` elements, from
/// element `begin` on.
struct TensorPart {
  int64_t begin = 0, width = 1, stride = 1;

  /// Whether its elements stand one behind another.
  bool IsDense() const { return width == stride; }
  /// Calls `move(at, count)` for elements [first, first + count) of the parameter, in runs that
  /// begin at element `at` of the tensor, until one fails.
  template <typename Move> absl::Status ForEachRun(int64_t first, int64_t count, Move move) const {
    if (IsDense())
      return move(begin + first, count);
    absl::Status status;
    for (int64_t end = first + count; first < end && status.ok();) {
      const int64_t run = std::min(end - first, width - first % width);
      status = move(begin + first / width * stride + first % width, run);
      first += run;
    }
    return status;
  }
  /// Whether it has an element of another part of the same tensor. Both have `elements`.
  bool Overlaps(int64_t elements, const TensorPart &other, int64_t of_other) const;
};

/// The tensor of a folder of Hugging Face that a parameter is, or a part of it.
struct ExternalTensor {
  /// "NAME", "NAME[2]", "NAME[2:]" and "NAME[2:, 3:]": from there as many rows and columns as the
  /// parameter has.
  enum Kind { all, one, rows, block };
  std::string name; // "model.layers.0.self_attn.q_proj.weight"; "": the spec has none
  Kind kind = all;
  int64_t row = 0, column = 0;

  /// Where a parameter lies in a tensor; none: it does not fit.
  std::optional<TensorPart> In(const std::vector<int64_t> &tensor,
                               const std::vector<int64_t> &parameter) const;
};
ExternalTensor ExternalOf(int64_t entry, const Parameter &);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_PARAMETER_NAMES_H
