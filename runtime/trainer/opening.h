//===- opening.h - Opens the parts of a training run ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text, the state and the engine of a run, and their contents before its first step:
// fresh parameters, weights from a file or from another state, or a commit.
//
// Ownership: the caller owns each part. The engine uses the state, so it must go first.
// Both refer to the request.
// Threads: one, the driver.
// Errors: each says the way out. kCancelled: a signal came while the state was opened.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_OPENING_H
#define BOA_RUNTIME_TRAINER_OPENING_H

#include "runtime/data/data.h"
#include "runtime/engine/engine.h"
#include "runtime/state/state.h"
#include "runtime/trainer/loss_settings.h"
#include "runtime/trainer/process.h"
#include "runtime/trainer/request.h"
#include "runtime/trainer/run_report.h"
#include "runtime/weights/base_weights.h"
#include "runtime/weights/given_weights.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <memory>
#include <string>

namespace boa {

/// Where tokens of texts are kept: in the folder that was named, or beside the state, so that runs
/// whose states are neighbours share it.
std::string FolderOfTokens(const std::string &named, const std::string &state);

/// Data that are not there: with what their paths are relative to. `of_spec`: a spec may name them.
absl::Status WithPathHint(const absl::Status &, bool of_spec);

/// An error that the user mends where the spec names its data: with the place.
absl::Status AtData(const TrainRequest &, const absl::Status &);

/// Makes the tokens of texts and conversations that are not kept yet. kCancelled: a signal came.
absl::StatusOr<Data> OpenData(const TrainRequest &, const InterruptGuard &);

/// The state whose weights a new run begins with (--from); null if there is none.
absl::StatusOr<std::unique_ptr<BaseWeights>> OpenBase(const TrainRequest &);

/// The file or folder whose weights a new run begins with (--weights); null if there is none.
/// Refuses tensors that are not those of the program.
absl::StatusOr<std::unique_ptr<GivenWeights>> OpenGiven(const TrainRequest &);

/// Refuses adapters to begin with that are not those of the program.
absl::Status MatchAdapter(const TrainRequest &);

/// Creates the state of a new run, or opens that of a run to resume. `base` may be null.
absl::StatusOr<std::unique_ptr<StateStore>> OpenState(const TrainRequest &, const BaseWeights *base,
                                                      const InterruptGuard &);

/// Refuses an engine that takes more memory than the machine gives.
absl::StatusOr<std::unique_ptr<Engine>> OpenEngine(const TrainRequest &, const Kernels &,
                                                   StateStore &);

/// The parameters of a new run: from `base` or `given` unless it is null, or fresh; those of
/// adapters to begin with from there. The caller commits them.
absl::Status FillParameters(const TrainRequest &, BaseWeights *base, const GivenWeights *given,
                            Engine &, RunReport &);

/// Brings the parameters of the opened commit to memory, and reports changes since then.
absl::Status RestoreCommit(const TrainRequest &, const Settings &, StateStore &, Engine &,
                           RunReport &);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_OPENING_H
