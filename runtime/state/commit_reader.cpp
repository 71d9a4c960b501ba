//===- commit_reader.cpp - A commit of a state, to read only --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/commit_reader.h"

#include "runtime/state/checksum.h"
#include "runtime/state/commits.h"
#include "runtime/state/manifest_files.h"
#include "runtime/state/models.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace boa {

absl::Status ReadSavedChunk(const OpenFile &file, const SavedTable &table, size_t index,
                            void *data) {
  const SavedStorage &storage = table.storage;
  const SavedChunk &chunk = table.chunks[index];
  if (absl::Status status = file.Read(chunk.extent.offset, data, storage.chunk_bytes); !status.ok())
    return status;
  if (Checksum(data, storage.chunk_bytes) == chunk.checksum)
    return absl::OkStatus();
  return DamagedChunk(storage.name, int64_t(index) / storage.chunks,
                      int32_t(int64_t(index) % storage.chunks), file.path(), chunk.extent.offset);
}

absl::Status CommitReader::Choose(std::optional<int64_t> at) {
  absl::StatusOr<ReadManifests> read = ReadManifest(*home.folder());
  if (absl::IsNotFound(read.status()))
    return absl::NotFoundError(absl::StrCat(home.directory(), " holds no training state"));
  if (!read.ok())
    return read.status();
  Commits commits(1);
  commits.manifest() = std::move(read->manifest);
  std::vector<std::string> notes; // which concern a trainer that goes on
  absl::StatusOr<const SavedCommit *> commit = commits.GoTo(at, home.directory(), notes);
  if (!commit.ok())
    return commit.status();
  SavedCommit chosen = **commit;
  manifest = std::move(commits.manifest());
  manifest.commits = {std::move(chosen)};
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CommitReader>>
CommitReader::Open(FileSystem &disk, const std::string &directory, std::optional<int64_t> at) {
  StatePath opened(directory);
  if (absl::Status status = opened.Open(disk); !status.ok())
    return status;
  const absl::Status locked = opened.LockToRead();
  const bool in_use = absl::IsUnavailable(locked);
  if (!locked.ok() && !in_use)
    return locked;
  std::unique_ptr<CommitReader> reader(new CommitReader(std::move(opened)));
  absl::Status status = reader->Choose(at);
  // The trainer may drop the commit before it is locked. Then there is a later one.
  constexpr int kTries = 1000;
  for (int i = 0; in_use && status.ok() && !reader->lease; ++i) {
    const int64_t step = reader->saved().record.step;
    absl::StatusOr<std::unique_ptr<OpenFile>> lease =
        reader->home.LockCommit(step, /*shared=*/true);
    if (lease.ok() && reader->Choose(step).ok()) {
      reader->lease = *std::move(lease);
      break;
    }
    if (i == kTries || !(lease.ok() || absl::IsUnavailable(lease.status())))
      return locked;
    disk.Wait(std::chrono::milliseconds(10));
    status = reader->Choose(at);
  }
  if (status.ok())
    status = CheckReadable(directory, reader->manifest, reader->saved());
  if (status.ok())
    status = reader->OpenPaths(disk);
  if (!status.ok())
    return status;
  return reader;
}

absl::Status CommitReader::OpenPaths(FileSystem &disk) {
  paths.resize(manifest.paths.size());
  for (const SavedTable &table : saved().tables)
    for (const SavedChunk &chunk : table.chunks) {
      std::unique_ptr<StatePath> &path = paths[size_t(chunk.extent.file)];
      if (path)
        continue;
      const SavedPath &saved = manifest.paths[size_t(chunk.extent.file)];
      path = std::make_unique<StatePath>(saved.directory == manifest.home ? home.directory()
                                                                          : saved.directory);
      absl::Status status = path->Open(disk);
      path->Identify(saved.id, 0);
      if (status.ok())
        status = path->OpenData(manifest.state, /*write=*/false);
      if (!status.ok())
        return absl::Status(status.code(), absl::StrCat("a part of the state of ", home.directory(),
                                                        ": ", status.message()));
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
  if (!lease)
    return absl::OkStatus();
  absl::StatusOr<ReadManifests> read = ReadManifest(*home.folder());
  if (!read.ok())
    return read.status();
  for (const SavedCommit &commit : read->manifest.commits)
    if (commit.record.step == saved().record.step && commit.record.time == saved().record.time)
      return absl::OkStatus();
  return absl::AbortedError(absl::StrFormat("the training in %s has dropped the commit of step %d, "
                                            "which was being read: read a later one",
                                            home.directory(), saved().record.step));
}

BaseState CommitReader::Origin() const {
  return {manifest.state, saved().record.step, computation().hash, home.real()};
}

absl::Status CommitReader::Read(const SavedTable &table, size_t index, void *data) const {
  absl::Status status =
      ReadSavedChunk(paths[size_t(table.chunks[index].extent.file)]->data(), table, index, data);
  if (absl::IsDataLoss(status))
    if (absl::Status kept = CheckKept(); !kept.ok())
      return kept;
  return status;
}

} // namespace boa
