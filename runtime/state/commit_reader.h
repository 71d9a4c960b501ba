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

/// A commit of a state that another training begins with. It changes nothing on disk, and keeps
/// trainers away from the state as long as it exists.
///
/// Ownership: it owns its descriptors and the lock; the file system outlives it.
/// Threads: one at a time, but Read from any. Errors name the directory or the file.
class CommitReader {
public:
  /// The commit of step `at`, or else the last one. The other paths of the state are where they
  /// stood last. NotFound if there is no such commit, with the steps that there are; Unavailable
  /// while a trainer runs; Unimplemented if a newer Boa made it.
  static absl::StatusOr<std::unique_ptr<CommitReader>>
  Open(FileSystem &, const std::string &directory, std::optional<int64_t> at);

  const std::vector<SavedParameter> &parameters() const { return manifest.parameters; }
  const SavedCommit &saved() const { return commit; }
  const Computation &computation() const { return ComputationOf(manifest, commit); }
  BaseState Origin() const;

  /// Reads a chunk of one of its tables, `index` by entry, then chunk. DataLoss if its checksum
  /// does not match. `data` is aligned to 4096.
  absl::Status Read(const SavedTable &, size_t index, void *data) const;

private:
  explicit CommitReader(StatePath opened) : home(std::move(opened)) {}
  absl::Status OpenPaths(FileSystem &);

  StatePath home; // with the lock
  Manifest manifest;
  SavedCommit commit;
  std::vector<std::unique_ptr<StatePath>> paths; // by index in the manifest; null: not named
};

/// Reads a chunk of a commit from its data file. DataLoss if its checksum does not match.
absl::Status ReadSavedChunk(const OpenFile &, const SavedTable &, size_t index, void *data);

} // namespace boa

#endif // BOA_RUNTIME_STATE_COMMIT_READER_H
