//===- commit_files.h - The files of commits on disk ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file that is named by the hash of its text never changes. A commit writes those that are not
// there yet, each twice, and the manifests name it afterwards. Either copy serves. A file goes when
// no manifest names it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_COMMIT_FILES_H
#define BOA_RUNTIME_STATE_COMMIT_FILES_H

#include "runtime/io/file_system.h"
#include "runtime/state/manifest.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace boa {

/// Reads commits of a manifest, and each file once.
///
/// Ownership: the file system, the directory and the manifest outlive it. Threads: one at a time.
/// Errors, of a file without a whole copy: NotFound if it is missing, DataLoss if it is damaged or
/// is not what its name says, another one if the disk cannot read it. Unimplemented if it has
/// another version.
class CommitLoader {
public:
  CommitLoader(FileSystem &disk, Directory &home, const Manifest &manifest)
      : disk(disk), home(home), manifest(manifest) {}

  /// Fills in a commit that has its step and its sum, but for the chunk tables.
  absl::Status Load(SavedCommit &);
  /// Fills in its chunk tables.
  absl::Status LoadTables(SavedCommit &);
  /// What is wrong with files whose copy was taken, a sentence each, without a full stop.
  const std::vector<std::string> &notes() const { return of_copies; }

private:
  absl::StatusOr<std::string> Read(Directory &, const char *kind, const std::string &sum);
  absl::Status LoadPart(const SavedPart &);

  FileSystem &disk;
  Directory &home;
  const Manifest &manifest;
  std::map<std::string, std::shared_ptr<const SavedModel>> models;       // by sum
  std::map<std::string, std::vector<std::shared_ptr<ChunkTable>>> parts; // by sum
  std::map<std::string, absl::Status> failed; // by directory and sum: none is tried again
  std::vector<std::string> of_copies;
};

/// Whether a small file of a state is gone for good, after this error of its reading: NotFound,
/// DataLoss, or FailedPrecondition of what is no file of Boa (file_system.h). Others say nothing
/// about it.
bool IsLoss(const absl::Status &);

/// Gives the commit a fault, so that others can be gone on from. DataLoss: files of it are lost
/// (IsLoss). Other errors say nothing about the commit, and it stays. An error is returned
/// if it may concern all commits: of another version, or for want of memory.
absl::Status KeepFault(SavedCommit &, const absl::Status &, const std::string &home);

/// Fills in the chunk tables of all commits. Those that are lost go, and those that cannot be read
/// stay with their fault, each with a note. It is an error if the one at `step` has a fault.
absl::Status LoadAllTables(FileSystem &, Directory &home, Manifest &, int64_t step,
                           std::vector<std::string> &notes);

/// Writes what no file holds: a part with the new chunk tables, the model, and the commit. All are
/// durable when this returns. It reads the files that the commit shares with others. What a person
/// or the disk took of them is written again, so that no commit is made that cannot be opened.
absl::Status WriteCommit(Directory &home, const Manifest &, SavedCommit &);

/// Whether the name and the beginning of a file say that a commit left it. One that is still being
/// written may be torn.
bool IsSealedFile(Directory &, const std::string &name);

/// Removes the files of commits that the manifest does not name. Both manifests on disk are this
/// one. What cannot be removed stays until the next time.
void RemoveUnnamed(Directory &home, const Manifest &);

} // namespace boa

#endif // BOA_RUNTIME_STATE_COMMIT_FILES_H
