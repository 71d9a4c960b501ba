//===- parameter_storages.h - Parameters and storages -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fills the storages of a program's parameters, and reads the parameters. Chunks go one at a
// time, so memory holds a few chunks, not the model. A new state lacks the storages of the
// optimizer: they read as zero until its first updates write them.
//
// A parameter is its master weight in f32. If the group's weights are bf16, the master weight
// is joined from two halves (runtime/abi/optimizer.h).
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_PARAMETER_STORAGES_H
#define BOA_RUNTIME_WEIGHTS_PARAMETER_STORAGES_H

#include "runtime/abi/program.h"
#include "runtime/engine/engine.h"

#include "absl/status/status.h"

#include <cstddef>
#include <cstdint>
#include <functional>

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

/// Takes the next `count` elements of a file of all parameters.
using ParameterSink = std::function<absl::Status(const float *values, int64_t count)>;

/// All parameters, whole, in the order of groups, entries and parameters. The engine must be idle
/// and drained.
absl::Status ReadParameters(const Program &, Engine &, const ParameterSink &);

/// Fresh parameters (runtime/weights/initial_values.h).
absl::Status InitializeParameters(const Program &, Engine &);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_PARAMETER_STORAGES_H
