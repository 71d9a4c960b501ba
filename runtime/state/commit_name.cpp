//===- commit_name.cpp - Commits as a user names them ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/commit_name.h"

#include "runtime/state/commits.h"
#include "runtime/state/manifest_files.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace boa {

absl::StatusOr<CommitName> FindCommit(FileSystem &disk, const std::string &name) {
  const size_t at = name.rfind('@');
  if (at == std::string::npos)
    return CommitName{name, {}};
  const std::string commit = name.substr(at + 1);
  int64_t step = 0;
  if (commit != "best" && !(absl::SimpleAtoi(commit, &step) && step >= 0))
    return CommitName{name, {}};
  if (absl::StatusOr<PathKind> kind = disk.Kind(name); !kind.ok() || *kind != PathKind::nothing)
    return CommitName{name, {}};
  CommitName found = {name.substr(0, at), step};
  if (commit != "best")
    return found;
  absl::StatusOr<ReadManifests> read = ReadManifest(disk, found.directory);
  if (absl::IsNotFound(read.status()))
    return absl::NotFoundError(absl::StrCat(found.directory, " holds no training state"));
  if (!read.ok())
    return read.status();
  // A lost commit may be the best.
  for (const SavedCommit &commit : read->manifest.commits)
    if (!commit.fault.ok())
      return commit.fault;
  const SavedCommit *best = BestCommit(read->manifest);
  if (!best)
    return absl::NotFoundError(absl::StrCat(
        found.directory,
        " has no best commit: none was evaluated. `evaluate = every(...)` in a train block does"));
  found.step = best->record.step;
  return found;
}

} // namespace boa
