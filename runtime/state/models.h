//===- models.h - Which programs a state is for -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state belongs to a model, an optimizer and a computation. The parameters and their places
// identify the model, and the persistent storages identify the optimizer. Master weights may be
// in one storage or in two halves.
//
// All functions are pure, for any thread. `home` is for messages.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_MODELS_H
#define BOA_RUNTIME_STATE_MODELS_H

#include "runtime/state/manifest.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <string>

namespace boa {

/// InvalidArgument unless a manifest can hold the storages of the program.
absl::Status CheckProgram(const Program &);

/// Unimplemented if the commit has a part that only a later trainer can read.
absl::Status CheckReadable(const std::string &home, const Manifest &, const SavedCommit &);

/// FailedPrecondition unless the program may go on from the commit. Returns the change of the
/// computation in words (CheckComputation). `changed_model`: another computation is allowed.
absl::StatusOr<std::string> CheckContinues(const std::string &home, const Manifest &,
                                           const SavedCommit &, const Program &,
                                           bool changed_model);

} // namespace boa

#endif // BOA_RUNTIME_STATE_MODELS_H
