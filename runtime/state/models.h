//===- models.h - Which programs a state is for -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state belongs to a model, an optimizer and a computation. Names and shapes of its parameters
// identify the model, and its persistent storages identify the optimizer. Their places are no
// matter: parameters may stand in other chunks, be frozen or trained, have master weights in one
// storage or in two halves.
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
#include <vector>

namespace boa {

/// How a program goes on from a commit.
struct Continuation {
  std::string change; // of the computation, in words (CheckComputation)
  /// By storage of the program: whether its chunks are those of the commit. Otherwise a restore
  /// fills it by parameter, or it is absent.
  std::vector<bool> stands;
  /// Names of parameters, as a user gives them: frozen, trained or there from this commit on.
  std::vector<std::string> frozen, thawed, added;
};

/// InvalidArgument unless a commit can hold the storages of the program. ResourceExhausted if a
/// manifest cannot hold so many commits.
absl::Status CheckProgram(const Program &, int64_t keep);

/// Unimplemented if the commit has a part that only a later trainer can read.
absl::Status CheckReadable(const std::string &home, const Manifest &, const SavedCommit &);

/// FailedPrecondition unless the program may go on from the commit. `changed_model`: another
/// computation is allowed, and parameters that the state does not have.
absl::StatusOr<Continuation> CheckContinues(const std::string &home, const SavedCommit &,
                                            const Program &, bool changed_model);

} // namespace boa

#endif // BOA_RUNTIME_STATE_MODELS_H
