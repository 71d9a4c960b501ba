//===- paths.h - The directories of a state ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which directories hold the state, and which path of the manifest each of them is.
//
// A data file is taken only if its head names this state and one of its paths. Everything else
// is refused and not changed. That is checked before anything is made or locked, and again
// under the locks. The process writes its number into a lock only when all paths are known to
// belong to the state.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_PATHS_H
#define BOA_RUNTIME_STATE_PATHS_H

#include "runtime/state/path.h"

#include <cstddef>

namespace boa {

/// The paths of a state: those that the caller gave, in their order, then those that only a
/// commit names. The first is the home. The order of the calls is Make, Take, Identify,
/// CheckSpace, OpenData, MarkLocks, MakeData; then the state is open.
///
/// Ownership: it owns its paths, with their descriptors and locks. The file system outlives it.
/// Threads: one at a time. Errors: up to OpenData they leave everything on disk as it was, once
/// the Undo of the opening is destroyed.
class StatePaths {
public:
  /// InvalidArgument if there is no directory, or one without a name.
  static absl::StatusOr<StatePaths> Make(FileSystem &, const std::vector<std::string> &directories);

  size_t size() const { return paths.size(); }
  size_t given() const { return given_count; }
  const StatePath &operator[](size_t path) const { return paths[path]; }
  const StatePath &home() const { return paths[0]; }

  /// Makes the directories where they lack, opens them and locks them. `state`: the identity
  /// in the manifest, or "". AlreadyExists if one of them holds a file of another state.
  absl::Status Take(const std::string &state, Undo &);

  /// Finds out which path of the manifest each directory is, or gives it an identity. Opens
  /// and locks those that are not given but named by a commit. Then gives the manifest this list
  /// of paths, and renumbers its extents.
  absl::Status Identify(Manifest &, Undo &, std::vector<std::string> &notes);

  /// ResourceExhausted unless the disks have room for data files of these sizes, by given path, and
  /// `spare` bytes more each. `now`: their sizes.
  absl::Status CheckSpace(const std::vector<int64_t> &bytes, const std::vector<int64_t> &now,
                          int64_t spare = 0) const;

  /// Opens the data files that exist, and waits for their last writes (StatePath::LockData).
  absl::Status OpenData(const std::string &state, const std::function<bool()> &interrupted,
                        std::vector<std::string> &notes);
  absl::Status MarkLocks();
  /// Makes the data files that lack, and reserves `bytes` of each given path. The manifest on
  /// disk names the new ones already, so none is ever without an owner. Returns the sizes.
  absl::StatusOr<std::vector<int64_t>> MakeData(const Manifest &, const std::vector<int64_t> &bytes,
                                                Undo &, const std::function<bool()> &interrupted,
                                                std::vector<std::string> &notes);

  /// FailedPrecondition if a directory or data file is no longer the one that is open. A path
  /// that is neither given nor named by a commit may go.
  absl::Status CheckNames(const Manifest &) const;
  /// Makes everything that was written to the given paths durable.
  absl::Status SyncData() const;

private:
  explicit StatePaths(FileSystem &disk) : disk(disk) {}
  absl::Status RefuseOthers(const std::string &state) const;
  absl::Status MakeDirectories(Undo &) const;
  absl::Status OpenDirectories();
  absl::Status FindUngiven(const SavedPath &, const std::string &state, Undo &,
                           std::vector<std::string> &notes);
  absl::Status RefuseCopy(const Manifest &, const std::vector<SavedPath> &known,
                          const std::vector<int32_t> &place) const;

  FileSystem &disk;
  std::vector<StatePath> paths;
  size_t given_count = 0;
};

} // namespace boa

#endif // BOA_RUNTIME_STATE_PATHS_H
