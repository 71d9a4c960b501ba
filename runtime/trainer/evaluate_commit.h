//===- evaluate_commit.h - The loss of a whole text -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `boa evaluate`: the loss of a commit over all sequences of a text or of token files, each once.
// The commit is streamed as in a training, within the same memory. Nothing is committed, so the
// state stays as it was.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_EVALUATE_COMMIT_H
#define BOA_RUNTIME_TRAINER_EVALUATE_COMMIT_H

#include "runtime/trainer/trainer.h"

namespace boa {

/// Evaluates the commit `at`, or the last one, of the state of `options`. `options.data` names the
/// text; else it is what the program validates with. Prints one line to `options.out`.
///
/// The process has the state for itself meanwhile. kCancelled: interrupted.
absl::Status Evaluate(const Program &, const Kernels &, const EntryPoints &,
                      const TrainerOptions &options, const InterruptGuard &);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_EVALUATE_COMMIT_H
