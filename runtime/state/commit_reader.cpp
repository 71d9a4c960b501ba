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

absl::StatusOr<std::unique_ptr<CommitReader>>
CommitReader::Open(FileSystem &disk, const std::string &directory, std::optional<int64_t> at) {
  StatePath home(directory);
  if (absl::Status status = home.Open(disk); !status.ok())
    return status;
  if (absl::Status status = home.LockToRead(); !status.ok())
    return status;
  absl::StatusOr<ReadManifests> read = ReadManifest(*home.folder());
  if (absl::IsNotFound(read.status()))
    return absl::NotFoundError(absl::StrCat(directory, " holds no training state"));
  if (!read.ok())
    return read.status();
  std::unique_ptr<CommitReader> reader(new CommitReader(std::move(home)));
  Commits commits(1);
  commits.manifest() = std::move(read->manifest);
  std::vector<std::string> notes; // which concern a trainer that goes on
  absl::StatusOr<const SavedCommit *> commit = commits.GoTo(at, directory, notes);
  if (!commit.ok())
    return commit.status();
  reader->commit = **commit;
  reader->manifest = std::move(commits.manifest());
  reader->manifest.commits.clear();
  absl::Status status = CheckReadable(directory, reader->manifest, reader->commit);
  if (status.ok())
    status = reader->OpenPaths(disk);
  if (!status.ok())
    return status;
  return reader;
}

absl::Status CommitReader::OpenPaths(FileSystem &disk) {
  paths.resize(manifest.paths.size());
  for (const SavedTable &table : commit.tables)
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

BaseState CommitReader::Origin() const {
  return {manifest.state, commit.record.step, computation().hash, home.real()};
}

absl::Status CommitReader::Read(const SavedTable &table, size_t index, void *data) const {
  return ReadSavedChunk(paths[size_t(table.chunks[index].extent.file)]->data(), table, index, data);
}

} // namespace boa
