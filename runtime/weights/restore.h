//===- restore.h - A commit into a program's storages -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_RESTORE_H
#define BOA_RUNTIME_WEIGHTS_RESTORE_H

#include "runtime/abi/program.h"
#include "runtime/engine/engine.h"
#include "runtime/state/state.h"

#include "absl/status/status.h"

namespace boa {

/// Brings the opened commit to where the program has it. Storages that stand stay on SSD or are
/// read to memory as they are. The others are filled by parameter, with no bit changed: master
/// weights in their form of now (f32 or halves), and states of the optimizer. Parameters that the
/// commit does not have get initial values. Nothing of the commit is written over, so a process
/// that dies here has changed nothing.
///
/// Its memory is a few chunks. The engine must be idle.
absl::Status Restore(const Program &, StateStore &, Engine &);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_RESTORE_H
