//===- output_checks.h - Files that a run may write -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of a run's output files before its first step. No output may destroy a file that
// the run needs. None may fail after the last step because space or permission is missing.
//
// Two names are one file if device and inode are the same. For a file that does not exist
// yet, directory and name must be the same. Pipes and devices are never the same file.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_OUTPUT_CHECKS_H
#define BOA_RUNTIME_TRAINER_OUTPUT_CHECKS_H

#include "runtime/abi/program.h"
#include "runtime/io/new_file.h"

#include "absl/status/status.h"

#include <string>
#include <vector>

namespace boa {

/// The files of a state in its directories, now or later.
std::vector<FileUse> StateFiles(const std::vector<std::string> &directories);

/// The files of `data` and `validate`.
std::vector<FileUse> FilesOfData(const TrainSettings &);

/// Refuses an output that is one of the `kept` files, another output, or a file of any state.
absl::Status CheckOutputs(const std::vector<FileUse> &outputs, const std::vector<FileUse> &kept);

/// A note for each directory of a state outside of the first one. The spec names them, and the run
/// writes there.
std::vector<std::string> DescribeForeignPaths(const std::vector<std::string> &directories);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_OUTPUT_CHECKS_H
