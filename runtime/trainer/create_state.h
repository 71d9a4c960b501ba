//===- create_state.h - A state that no step has trained --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_CREATE_STATE_H
#define BOA_RUNTIME_TRAINER_CREATE_STATE_H

#include "runtime/abi/program.h"
#include "runtime/trainer/process.h"
#include "runtime/trainer/trainer.h"

#include "absl/status/status.h"

namespace boa {

/// Creates the state of a training at step 0, with the weights that the options name, and reads no
/// text. Train goes on from there. Memory holds a few chunks, and what lives there.
///
/// The commit is the last write. A run that was cut short before it leaves a directory in which
/// the next run begins again. kCancelled: the run was interrupted, and has not committed.
absl::Status CreateState(const Program &, const Kernels &, const TrainerOptions &,
                         const InterruptGuard &);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_CREATE_STATE_H
