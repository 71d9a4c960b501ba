//===- main.h - The command line of a trainer -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The flags of training, shared by stand-alone trainers and `boa train`, and the
// whole of a stand-alone trainer's main().
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_MAIN_H
#define BOA_RUNTIME_TRAINER_MAIN_H

#include "runtime/trainer/flags.h"
#include "runtime/trainer/trainer.h"

#include "absl/status/status.h"

#include <string_view>

namespace boa {

/// The flags of training, of command "train"; values go into `options`.
FlagTable TrainerFlags(TrainerOptions &options);
/// Refuses flags of which one would be ignored beside another.
absl::Status CheckTrainerOptions(const TrainerOptions &);

/// Of Boa: "0.1".
const char *Version();

/// Fails where something that was printed to stdout did not arrive.
absl::Status FlushOutput();
/// Prints what is not OK to stderr (`error: ...`) and returns the process's exit
/// status: 0, 128 + signal after an interrupt, else 1.
int ExitStatus(const absl::Status &);
/// The same of a command line that is wrong: 2.
int UsageStatus(const absl::Status &);

/// main() of a stand-alone trainer.
int TrainerMain(int argc, char **argv, std::string_view program, const Kernels &,
                const EntryPoints &);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_MAIN_H
