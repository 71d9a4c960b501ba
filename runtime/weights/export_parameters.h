//===- export_parameters.h - The file of trained weights --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A safetensors file with Boa's names (parameter_names.h), in f32, and with the computation that
// the weights are of.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_EXPORT_PARAMETERS_H
#define BOA_RUNTIME_WEIGHTS_EXPORT_PARAMETERS_H

#include "runtime/abi/program.h"
#include "runtime/engine/engine.h"
#include "runtime/state/state.h"
#include "runtime/weights/weight_files.h"

#include "absl/status/status.h"

#include <cstdint>
#include <string>

namespace boa {

/// The parameters after `step`. The engine must be idle and drained.
absl::Status ExportParameters(const Program &, Engine &, const std::string &path, int64_t step);

/// The computation that an export names; version 0: it names none.
Computation ComputationOf(const WeightFiles &);

/// Whether `path` is a complete export of this model from the commit. A file older than the commit
/// comes from another run with the same number of steps.
bool IsExport(const Program &, const std::string &path, const CommitRecord &);

/// Bytes of an export of the parameters, but for its header.
int64_t BytesOfExport(const Program &);

/// Refuses an export of the parameters to `path` if its disk has too little space.
absl::Status CheckExportSpace(const Program &, const std::string &path);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_EXPORT_PARAMETERS_H
