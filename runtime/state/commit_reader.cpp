//===- commit_reader.cpp - A commit of a state, to read only --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/commit_reader.h"

#include "runtime/state/checksum.h"
#include "runtime/state/commit_files.h"
#include "runtime/state/commits.h"
#include "runtime/state/manifest_files.h"
#include "runtime/state/models.h"
#include "runtime/support/memory_errors.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace boa {

absl::Status ReadSavedChunk(const OpenFile &file, const SavedTable &table, size_t index,
                            void *data) {
  const SavedStorage &storage = table.storage;
  const SavedChunk &chunk = table.Chunk(index);
  if (absl::Status status = file.Read(chunk.extent.offset, data, storage.chunk_bytes); !status.ok())
    return status;
  if (Checksum(data, storage.chunk_bytes) == chunk.checksum)
    return absl::OkStatus();
  return DamagedChunk(storage.name, int64_t(index) / storage.chunks,
                      int32_t(int64_t(index) % storage.chunks), file.path(), chunk.extent.offset);
}

absl::Status CommitReader::Choose(std::optional<int64_t> at) {
  absl::StatusOr<ReadManifests> found = ReadRoot(*home.folder());
  if (absl::IsNotFound(found.status()))
    return absl::NotFoundError(absl::StrCat(home.directory(), " holds no training state"));
  if (!found.ok())
    return found.status();
  Commits commits(1);
  commits.manifest() = std::move(found->manifest);
  std::vector<std::string> notes; // which concern a trainer that goes on
  absl::StatusOr<const SavedCommit *> commit = commits.GoTo(at, home.directory(), notes);
  if (!commit.ok())
    return commit.status();
  SavedCommit chosen = **commit;
  read = std::move(commits.manifest());
  read.commits = {std::move(chosen)};
  return absl::OkStatus();
}

absl::Status CommitReader::Load(FileSystem &disk) {
  SavedCommit &commit = read.commits.front();
  CommitLoader loader(disk, *home.folder(), read);
  auto lost = [&](const absl::Status &status) {
    if (absl::Status kept = CheckKept(); absl::IsAborted(kept))
      return kept;
    const absl::Status other = KeepFault(commit, status, home.directory());
    return other.ok() ? commit.fault : other;
  };
  if (absl::Status status = loader.Load(commit); !status.ok())
    return lost(status);
  if (absl::Status status = CheckReadable(home.directory(), read, commit); !status.ok())
    return status;
  if (absl::Status status = OpenPaths(disk); !status.ok())
    return status;
  const absl::Status status = loader.LoadTables(commit);
  return status.ok() ? status : lost(status);
}

absl::StatusOr<std::unique_ptr<CommitReader>>
CommitReader::Open(FileSystem &disk, const std::string &directory, std::optional<int64_t> at) {
  StatePath opened(directory);
  if (absl::Status status = opened.Open(disk); !status.ok())
    return status;
  std::unique_ptr<CommitReader> reader(new CommitReader(std::move(opened)));
  // A trainer may drop the commit before it is locked. Then there is a later one.
  constexpr int kTries = 500;
  for (int tries = 0; !reader->commit_lock; ++tries) {
    if (absl::Status status = reader->Choose(at); !status.ok())
      return status;
    const int64_t step = reader->saved().record.step;
    absl::StatusOr<std::unique_ptr<OpenFile>> lock = reader->home.LockCommit(step, /*shared=*/true);
    if (absl::IsNotFound(lock.status()))
      break;
    if (lock.ok() && reader->Choose(step).ok())
      reader->commit_lock = *std::move(lock);
    else if (!lock.ok() && !absl::IsUnavailable(lock.status())) {
      // There are no locks of bytes here. Beside a trainer the commit could go at any time.
      if (absl::Status status = reader->home.CheckFree(); !status.ok())
        return status;
      break;
    } else if (tries == kTries)
      return reader->home.InUse();
    else
      disk.Wait(std::chrono::milliseconds(10));
  }
  absl::Status status = WithinMemory(directory, [&] { return reader->Load(disk); });
  if (!status.ok())
    return status;
  return reader;
}

absl::Status CommitReader::OpenPaths(FileSystem &disk) {
  paths.resize(read.paths.size());
  const std::vector<bool> named = NamedPaths(read, read.paths.size());
  for (size_t i = 0; i < named.size(); ++i) {
    if (!named[i])
      continue;
    const SavedPath &saved = read.paths[i];
    std::unique_ptr<StatePath> &path = paths[i] = std::make_unique<StatePath>(
        saved.directory == read.home ? home.directory() : saved.directory);
    absl::Status status = path->Open(disk);
    path->Identify(saved.id, 0);
    if (status.ok())
      status = path->OpenData(read.state, /*write=*/false);
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat("a part of the state of ", home.directory(),
                                                      OfHost(disk, saved), ": ", status.message()));
  }
  return absl::OkStatus();
}

std::vector<IoFile> CommitReader::Files() const {
  std::vector<IoFile> files;
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto any =
        std::find_if(paths.begin(), paths.end(),
                     [](const std::unique_ptr<StatePath> &path) { return path != nullptr; });
    const StatePath &path = paths[i] ? *paths[i] : **any;
    files.push_back({path.data().descriptor(), path.DataPath(), int32_t(i)});
  }
  return files;
}

absl::Status CommitReader::CheckKept() const {
  absl::StatusOr<ReadManifests> now = ReadRoot(*home.folder());
  if (!now.ok())
    return now.status();
  for (const SavedCommit &commit : now->manifest.commits)
    if (commit.sum == saved().sum)
      return absl::OkStatus();
  return absl::AbortedError(absl::StrFormat("the training in %s has dropped the commit of step %d, "
                                            "which was being read: read a later one",
                                            home.directory(), saved().record.step));
}

BaseState CommitReader::Origin() const {
  return {read.state, saved().record.step, computation().hash, home.real()};
}

absl::Status CommitReader::Read(const SavedTable &table, size_t index, void *data) const {
  absl::Status status =
      ReadSavedChunk(paths[size_t(table.Chunk(index).extent.file)]->data(), table, index, data);
  if (absl::IsDataLoss(status))
    if (absl::Status kept = CheckKept(); !kept.ok())
      return kept;
  return status;
}

} // namespace boa
