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

#include "runtime/trainer/trainer.h"

#include "absl/status/statusor.h"

#include <string>
#include <string_view>
#include <vector>

namespace boa {

/// If `arguments[0]` is a flag of training (--steps N or --steps=N, ...), puts it
/// into `options` and returns how many arguments it took. 0: it is none.
absl::StatusOr<int> ReadTrainerFlag(int count, const char *const *arguments,
                                    TrainerOptions &options);

/// What --help says of these flags: one line each.
std::string TrainerFlagsHelp();
/// One such line.
std::string FlagHelp(std::string_view flag, std::string_view help);
/// Their names, with dashes, for suggestions.
std::vector<std::string> TrainerFlagNames();

/// Prints what is not OK to stderr (`error: ...`) and returns the process's exit
/// status: 0, 128 + signal after an interrupt, else 1.
int ExitStatus(const absl::Status &);

/// main() of a stand-alone trainer.
int TrainerMain(int argc, char **argv, std::string_view program, const boa_kernel *kernels,
                const EntryPoints &);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_MAIN_H
