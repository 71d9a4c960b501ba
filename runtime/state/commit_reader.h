//===- commit_reader.h - A commit of a state, to read only ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_COMMIT_READER_H
#define BOA_RUNTIME_STATE_COMMIT_READER_H

#include "runtime/io/file_system.h"
#include "runtime/state/manifest.h"
#include "runtime/state/path.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// A commit of a state that other processes may train. It changes nothing on disk. As long as it
/// exists, trainers keep the commit beside those that they would keep. There are exceptions: a full
/// disk, and a trainer that goes on from an earlier commit. Reads fail then, since checksums
/// differ.
///
/// Ownership: it owns its descriptors and the lock; the file system outlives it.
/// Threads: one at a time, but Read from any. Errors name the directory or the file.
class CommitReader {
public:
  /// The commit of step `at`, or else the last one. The other paths of the state are where they
  /// stood last. NotFound if there is no such commit, with the steps that there are; Unavailable
  /// while a trainer runs whose file system cannot lock commits; Unimplemented if a newer Boa made
  /// it.
  static absl::StatusOr<std::unique_ptr<CommitReader>>
  Open(FileSystem &, const std::string &directory, std::optional<int64_t> at);

  /// That of the state, with this commit alone.
  const Manifest &manifest() const { return read; }
  const std::vector<SavedParameter> &parameters() const { return saved().model->parameters; }
  const SavedCommit &saved() const { return read.commits.front(); }
  const Computation &computation() const { return saved().model->computation; }
  BaseState Origin() const;
  /// Whether the state did not move since its last training.
  bool IsAtHome() const { return read.home == home.real(); }

  /// Reads a chunk of one of its tables, `index` by entry, then chunk. DataLoss if its checksum
  /// does not match. `data` is aligned to 4096.
  absl::Status Read(const SavedTable &, size_t index, void *data) const;
  /// The data file of each path in the manifest, for transfers; any where nothing of the commit is.
  std::vector<IoFile> Files() const;
  /// Aborted if a trainer has dropped the commit, so that reads find other data.
  absl::Status CheckKept() const;

private:
  explicit CommitReader(StatePath opened) : home(std::move(opened)) {}
  /// Reads the manifest and chooses the commit.
  absl::Status Choose(std::optional<int64_t> at);
  /// Reads the files of the chosen commit, and opens its paths.
  absl::Status Load(FileSystem &);
  absl::Status OpenPaths(FileSystem &);

  StatePath home;
  Manifest read;
  std::unique_ptr<OpenFile> commit_lock;         // null: the state has no lock file
  std::vector<std::unique_ptr<StatePath>> paths; // by index in the manifest; null: not named
};

/// Reads a chunk of a commit from its data file. DataLoss if its checksum does not match.
absl::Status ReadSavedChunk(const OpenFile &, const SavedTable &, size_t index, void *data);

} // namespace boa

#endif // BOA_RUNTIME_STATE_COMMIT_READER_H
