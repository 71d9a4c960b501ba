//===- outputs.h - Files that a run may write ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of the files that a run writes, made before its first step: none of them
// may destroy what the run needs, and none may fail for want of space or permission
// after the last step.
//
// Two names are one file if device and inode are the same, or, where there is no
// file yet, directory and name. Pipes and devices are nobody's.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_OUTPUTS_H
#define BOA_RUNTIME_TRAINER_OUTPUTS_H

#include "runtime/abi/program.h"

#include "absl/status/status.h"

#include <string>
#include <vector>

namespace boa {

/// A file and its use: "--trace", "the training text". An empty path names none.
struct FileUse {
  std::string use, path;
};

/// The files that a state has, or will have, in its directories.
std::vector<FileUse> StateFiles(const std::vector<std::string> &directories);

/// Refuses an output that is one of the `kept` files, another output, or a file of
/// the state of any training.
absl::Status CheckOutputs(const std::vector<FileUse> &outputs, const std::vector<FileUse> &kept);

/// Refuses a name that a new file could not take: of a directory, a link, a pipe, a
/// device; with `directory`, also in a directory that cannot be written.
absl::Status CheckNewFile(const FileUse &, bool directory);

/// Refuses an export of the parameters to `path` for which its disk is too full.
absl::Status CheckExportSpace(const Program &, const std::string &path);

/// The directories of a state that are not below its first, one line each: a spec
/// names them, and the run writes there. "" if there are none.
std::string DescribeForeignPaths(const std::vector<std::string> &directories);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_OUTPUTS_H
