//===- weights.h - Parameters in and out of a program's storages *- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fills the storages of a program's parameters and optimizer state, and exports
// the parameters. One chunk at a time: memory holds a few chunks, not the model.
//
// In files a parameter is f32: the master weight, joined from its halves where
// the group's weights are bf16 (runtime/kernels/optimizer.h).
//
// A parameter's name in a file is `group.parameter`, with the entry between
// where the group has several: `embed.wte`, `block.3.qkv_w`.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_WEIGHTS_H
#define BOA_RUNTIME_TRAINER_WEIGHTS_H

#include "runtime/abi/program.h"
#include "runtime/engine/engine.h"
#include "runtime/state/state.h"

#include "absl/status/status.h"

#include <cstdint>
#include <string>

namespace boa {

/// Fresh parameters (runtime/trainer/initialize.h), zero optimizer state.
absl::Status InitializeParameters(const Program &, Engine &);

/// Parameters from a safetensors file, zero optimizer state. Refuses a file that
/// lacks a parameter or has it in another shape, and names the first few;
/// tensors that the program has no parameter for are refused too.
absl::Status LoadParameters(const Program &, Engine &, const std::string &path);

/// Master weights that the opened commit has in the other form, in one storage
/// (f32) or in two halves, into the program's. Not a bit is lost.
absl::Status ConvertMasters(const Program &, Engine &, StateStore &);

/// The parameters after `step`. The engine must be idle and drained.
absl::Status ExportParameters(const Program &, Engine &, const std::string &path, int64_t step);

/// The computation that an export names; version 0 where it names none.
absl::StatusOr<Computation> ReadComputation(const std::string &path);

/// Whether `path` is a whole export of this model from the commit. A file that is older than the
/// commit is that of another run of as many steps.
bool IsExport(const Program &, const std::string &path, const CommitRecord &);

/// "embed.wte", and in a layer "block.0.qkv_w", also where it is the only one.
std::string ParameterName(const Group &, int64_t entry, const Parameter &);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_WEIGHTS_H
