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

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

/// "embed.wte"; in a layer "block.0.qkv_w", even in the only layer.
std::string ParameterName(const Group &, int64_t entry, const Parameter &);

/// The tensor of a folder of Hugging Face that a parameter is, or whose rows it is.
struct ExternalTensor {
  enum Rows { all, one, first }; // "NAME", "NAME[ROW]", "NAME[:]": as many as it has
  std::string name;              // "model.layers.0.self_attn.q_proj.weight"; "": the spec has none
  Rows rows = all;
  int64_t row = 0;

  /// Whether a tensor of that shape has it.
  bool Fits(const std::vector<int64_t> &tensor, const std::vector<int64_t> &parameter) const;
  /// The element of the tensor with which a parameter of so many begins.
  int64_t Begin(int64_t elements) const { return row * elements; }
};
ExternalTensor ExternalOf(int64_t entry, const Parameter &);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_PARAMETER_NAMES_H
