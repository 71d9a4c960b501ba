//===- manifest_files.h - The two manifests of a state ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_MANIFEST_FILES_H
#define BOA_RUNTIME_STATE_MANIFEST_FILES_H

#include "runtime/io/file_system.h"
#include "runtime/state/manifest.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace boa {

constexpr char kManifest[] = "manifest.json", kManifestCopy[] = "manifest.copy.json";

/// Both manifests of a home together.
struct ReadManifests {
  Manifest manifest;                     // the newer one of those that are whole
  std::string note;                      // the fault of the other; "": both are the same
  std::vector<std::string> commit_notes; // of files of commits (CommitLoader::notes)
};

/// Reads both, but nothing of the commits beside steps and sums. Pure but for the reads; from any
/// thread. NotFound if both are missing, Unimplemented if one is of another version,
/// FailedPrecondition if they belong to two states or to none, DataLoss if none is whole. One that
/// the disk cannot read is an error, since it may be the newer one.
absl::StatusOr<ReadManifests> ReadRoot(Directory &home);
absl::StatusOr<ReadManifests> ReadRoot(FileSystem &, const std::string &home);

/// The same with its commits, and with their chunk tables if `tables`. Commits whose files are lost
/// or cannot be read have a fault. Works beside a trainer.
absl::StatusOr<ReadManifests> ReadManifest(FileSystem &, Directory &home, bool tables = false);
absl::StatusOr<ReadManifests> ReadManifest(FileSystem &, const std::string &home,
                                           bool tables = false);

/// Aborted if the manifests on disk are newer than this one, or of another state. A process
/// whose lock file was removed may commit until its data files are locked.
absl::Status CheckUnchanged(Directory &home, const Manifest &);

/// Writes the manifests of one process.
///
/// Ownership: it remembers only the checksum of the last text. Threads: one at a time. Errors:
/// after one of Write, the old or the new manifest may be on disk, or each in one file.
class ManifestWriter {
public:
  /// Increases the sequence number, then replaces both files, durably and one after the other.
  /// From the second call on it first compares the files with its last text. It mends one that
  /// is damaged, and refuses to replace that of another process (FailedPrecondition) or of
  /// another version. DataLoss if neither file is its own. A manifest that could not be read again
  /// is refused, and the files stay as they are.
  absl::Status Write(Directory &home, Manifest &);

private:
  absl::Status CheckOwn(Directory &home) const;
  std::optional<uint64_t> written; // the checksum of the last text
};

} // namespace boa

#endif // BOA_RUNTIME_STATE_MANIFEST_FILES_H
