//===- weights.h - Parameters in and out of a program's storages --*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fills the storages of a program's parameters, and exports the parameters. Chunks go one at a
// time, so memory holds a few chunks, not the model. A new state lacks the storages of the
// optimizer: they read as zero until its first updates write them.
//
// In files, a parameter is its master weight in f32. If the group's weights are bf16, the
// master weight is joined from two halves (runtime/abi/optimizer.h).
//
// A parameter's name in a file is `group.parameter`. If the group has several entries, the
// number of the entry is between: `embed.wte`, `block.3.qkv_w`.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_WEIGHTS_H
#define BOA_RUNTIME_WEIGHTS_WEIGHTS_H

#include "runtime/abi/program.h"
#include "runtime/engine/engine.h"
#include "runtime/state/state.h"
#include "runtime/weights/weight_files.h"

#include "absl/status/status.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace boa {

/// Puts elements [first, first + count) of a parameter of an entry at `values`. Groups and
/// parameters by their index.
using ParameterSource = std::function<absl::Status(int64_t group, int64_t entry, int64_t parameter,
                                                   int64_t first, int64_t count, float *values)>;

/// Parameters of one group from a source.
absl::Status FillGroup(const Program &, int64_t group, Engine &, const ParameterSource &);

/// Puts the same elements of a state of the optimizer at `bytes`.
using StateSource = std::function<absl::Status(int64_t entry, const Parameter &, int64_t first,
                                               int64_t count, char *bytes)>;
/// A state of the optimizer of one group, by its number. It is not of 8 bits.
absl::Status FillState(const Program &, int64_t group, size_t state, Engine &, const StateSource &);

/// Parameters from a source.
absl::Status FillParameters(const Program &, Engine &, const ParameterSource &);

/// Shapes of tensors, by ParameterName.
using ShapesByName = std::map<std::string, std::vector<int64_t>>;

/// Whether the weights that a training begins with may lack all parts of its adapters, which then
/// have their initial values.
enum class Adapters { present, may_be_new };

/// Whether no tensor is a part of an adapter: half of them are not taken for none.
bool LacksAdapters(const Program &, const ShapesByName &);

/// FailedPrecondition if a parameter is missing or has another shape, or if a tensor is no
/// parameter. Names the first few. `of`: the file or state, for the message.
absl::Status CheckParameters(const Program &, const std::string &of, const ShapesByName &,
                             Adapters);

/// Fresh parameters (runtime/weights/initial_values.h).
absl::Status InitializeParameters(const Program &, Engine &);

/// The same error for lines that the caller has found; Ok for none.
absl::Status DescribeMismatches(const Program &, const std::string &of,
                                const std::vector<std::string> &lines);

/// The parameters after `step`. The engine must be idle and drained.
absl::Status ExportParameters(const Program &, Engine &, const std::string &path, int64_t step);

/// The computation that an export names; version 0: it names none.
Computation ComputationOf(const WeightFiles &);

/// Whether `path` is a complete export of this model from the commit. A file older than the commit
/// comes from another run with the same number of steps.
bool IsExport(const Program &, const std::string &path, const CommitRecord &);

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

#endif // BOA_RUNTIME_WEIGHTS_WEIGHTS_H
