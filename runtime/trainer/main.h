//===- main.h - The command line of a trainer -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The flags of training, for stand-alone trainers and `boa train`, and main() of a
// stand-alone trainer.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_MAIN_H
#define BOA_RUNTIME_TRAINER_MAIN_H

#include "runtime/support/flags.h"
#include "runtime/trainer/trainer.h"

#include "absl/status/status.h"

#include <functional>
#include <string_view>

namespace boa {

/// The flags of command "train". Their values go into `options`.
FlagTable TrainerFlags(TrainerOptions &options);
/// Refuses a flag that would be ignored beside another one.
absl::Status CheckTrainerOptions(const TrainerOptions &);
/// Where --state names a commit (FindCommit), takes the state, and the commit as --at.
absl::Status NameCommit(TrainerOptions &);
/// Where --from names a folder of PEFT, opens it as the adapters to begin with. The model under it
/// is that of --weights, or the one that the folder names, if it is here. Where --from names a
/// state, refuses --weights.
absl::Status NameAdapter(TrainerOptions &);

/// Boa's version: "0.1".
const char *Version();

/// Fails if some output to stdout did not arrive.
absl::Status FlushOutput();
/// Prints an error to stderr (`error: ...`) and returns the process's exit status: 0, 128 + signal
/// after an interrupt, else 1.
int ExitStatus(const absl::Status &);
/// The same for a wrong command line: 2.
int UsageStatus(const absl::Status &);
/// What `run` returns. An allocation that fails in it is an error like any other.
int RunWithinMemory(const std::function<int()> &run);

/// main() of a stand-alone trainer.
int TrainerMain(int argc, char **argv, std::string_view program, const Kernels &,
                const EntryPoints &);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_MAIN_H
