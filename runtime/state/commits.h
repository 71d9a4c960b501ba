//===- commits.h - The commits of a state -----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_COMMITS_H
#define BOA_RUNTIME_STATE_COMMITS_H

#include "runtime/state/manifest.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// InvalidArgument unless a manifest can hold the record.
absl::Status CheckRecord(const CommitRecord &);

/// Of the commits that were evaluated as the newest such was, the one with the least loss, and of
/// several the oldest; null if none was evaluated.
const SavedCommit *BestCommit(const Manifest &);

/// The manifest of an open state, and the commit at which this process is. It touches no disk.
///
/// Ownership: it owns the manifest. The pointers that it returns are valid until the next Add.
/// Threads: one at a time. Errors: only GoTo has one, and changes nothing then.
class Commits {
public:
  /// At no commit, and with an empty manifest. `most`: the number of commits to keep.
  explicit Commits(int64_t most) : most_kept(most) {}
  int64_t most() const { return most_kept; }

  Manifest &manifest() { return kept; }
  const Manifest &manifest() const { return kept; }

  /// Goes to the commit of step `at`, or to the last one. Notes the later ones, which the next
  /// Add drops. NotFound, with the steps that there are. `home` is for messages.
  absl::StatusOr<const SavedCommit *> GoTo(std::optional<int64_t> at, const std::string &home,
                                           std::vector<std::string> &notes);
  /// The commit at which the process is, or null.
  const SavedCommit *Present() const;
  /// Its record; step 0 if there is none.
  const CommitRecord &record() const;

  /// Whether a process reads the commit of the step.
  using IsRead = std::function<bool(int64_t step)>;

  /// Adds a commit, and returns the dropped ones. They are the later ones, one of the same step,
  /// and the oldest beyond the number to keep, as DropOldest says.
  std::vector<SavedCommit> Add(SavedCommit, size_t given, const IsRead & = nullptr);
  /// Drops the oldest commit, and returns it; null if all stay. The last one stays, and those that
  /// are read. So does the best one, if more than one is kept and it stands in the first `given`
  /// paths alone, which the machine has. One that cannot be read now may be the best, and goes
  /// only if no other can.
  std::optional<SavedCommit> DropOldest(size_t given, const IsRead & = nullptr);
  /// Whether there are more commits than the number to keep.
  bool HasMore() const { return int64_t(kept.commits.size()) > most_kept; }
  /// Goes to the last commit, which is on disk now.
  void GoToLast() { present = kept.commits.back().record; }

private:
  Manifest kept;
  const int64_t most_kept;
  std::optional<CommitRecord> present; // stays as it is if the last commit fails
};

} // namespace boa

#endif // BOA_RUNTIME_STATE_COMMITS_H
