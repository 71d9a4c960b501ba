//===- commit_name.h - Commits as a user names them -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_COMMIT_NAME_H
#define BOA_RUNTIME_STATE_COMMIT_NAME_H

#include "runtime/io/file_system.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <optional>
#include <string>

namespace boa {

/// A state, or a commit of it.
struct CommitName {
  std::string directory;
  std::optional<int64_t> step; // nothing: the last one
};

/// Reads DIR, DIR@STEP or DIR@best, the best in validation. Where something is there by the whole
/// name, that is meant. NotFound if no commit is the best. Whether there is a commit of a step is
/// not looked at.
absl::StatusOr<CommitName> FindCommit(FileSystem &, const std::string &name);

} // namespace boa

#endif // BOA_RUNTIME_STATE_COMMIT_NAME_H
