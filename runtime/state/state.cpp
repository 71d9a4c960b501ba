//===- state.cpp - The state directory ------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes, opens and commits a state.
//
// Commit: fdatasync of the data files; a new manifest beside the old, synced;
// rename; sync of the directory. A data directory without a manifest is what a run
// left that died before its first commit, and is made anew.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/impl.h"

#include "absl/strings/str_format.h"

#include <unistd.h>
#include <utility>

namespace boa {

absl::StatusOr<std::unique_ptr<StateStore::Impl>>
StateStore::Impl::Make(const Program &program, const std::vector<std::string> &directories) {
  if (directories.empty())
    return absl::InvalidArgumentError("a state needs at least one directory");
  auto impl = std::make_unique<Impl>();
  for (std::string directory : directories) {
    while (directory.size() > 1 && directory.back() == '/')
      directory.pop_back();
    if (directory.empty())
      return absl::InvalidArgumentError("a state directory has an empty name");
    impl->directories.push_back(std::move(directory));
  }
  impl->program_name = program.name;
  impl->fingerprint = Fingerprint(program);
  impl->weights = StripeWeights(program.machine, directories.size());
  return impl;
}

bool StateStore::Exists(const std::string &directory) {
  return PathExists(ManifestPath(directory));
}

absl::StatusOr<std::unique_ptr<StateStore>>
StateStore::Create(const Program &program, const std::vector<std::string> &directories) {
  absl::StatusOr<std::unique_ptr<Impl>> impl = Impl::Make(program, directories);
  if (!impl.ok())
    return impl.status();
  Impl &state = **impl;
  Undo undo;
  for (const std::string &directory : state.directories)
    if (absl::Status status = MakeDirectories(directory, undo); !status.ok())
      return Unwritable(status);
  if (absl::Status status = state.TakeLocks(undo); !status.ok())
    return status;
  state.LayOut(program);
  if (absl::Status status = state.CheckUnused(); !status.ok())
    return status;
  for (const IoFile &file : state.files)
    unlink(file.path.c_str()); // of a run that died before its first commit
  if (absl::Status status = state.CheckSpace(); !status.ok())
    return status;
  for (size_t file = 0; file < state.files.size(); ++file) {
    undo.AddFile(state.files[file].path);
    if (absl::Status status = state.MakeFile(file); !status.ok())
      return status;
  }
  for (const std::string &directory : state.directories)
    if (absl::Status status = SyncDirectory(directory); !status.ok())
      return status;
  undo.Commit();
  return std::unique_ptr<StateStore>(new StateStore(*std::move(impl)));
}

absl::StatusOr<std::unique_ptr<StateStore>>
StateStore::Open(const Program &program, const std::vector<std::string> &directories) {
  absl::StatusOr<std::unique_ptr<Impl>> impl = Impl::Make(program, directories);
  if (!impl.ok())
    return impl.status();
  Impl &state = **impl;
  if (!Exists(state.directories[0]))
    return absl::NotFoundError(absl::StrFormat(
        "%s holds no training state: start one without resuming", state.directories[0]));
  Undo undo;
  if (absl::Status status = state.TakeLocks(undo); !status.ok())
    return status;
  undo.Commit(); // a lock that was missing stays
  if (absl::Status status = state.ReadManifest(program); !status.ok())
    return status;
  for (size_t file = 0; file < state.files.size(); ++file) {
    bool scratch = file % 2 == 1;
    absl::Status status = scratch ? state.MakeFile(file) : state.OpenFile(file);
    if (!status.ok())
      return status;
  }
  return std::unique_ptr<StateStore>(new StateStore(*std::move(impl)));
}

StateStore::StateStore(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
StateStore::~StateStore() = default;

const std::vector<IoFile> &StateStore::Files() const { return impl->files; }
const std::vector<IoLink> &StateStore::Links() const { return impl->links; }

absl::Status StateStore::Commit(const CommitRecord &record) {
  // After a failed one it is not known which manifest a crash would leave, so
  // neither extent of a chunk may be named anew.
  if (!impl->failed.ok())
    return impl->failed;
  const std::string &directory = impl->directories[0];
  for (size_t path = 0; path < impl->directories.size(); ++path) {
    const IoFile &file = impl->files[DataFile(path)];
    if (fdatasync(file.fd) != 0)
      return impl->failed = ErrnoError("sync", file.path);
  }
  absl::Status status =
      ReplaceFile(directory, ManifestPath(directory), impl->WriteManifest(record));
  if (!status.ok())
    return impl->failed = status;
  for (StorageLayout &storage : impl->storages)
    storage.committed = storage.current;
  impl->committed = record;
  return absl::OkStatus();
}

const CommitRecord &StateStore::Committed() const { return impl->committed; }

std::vector<int64_t> StateStore::BytesByPath() const {
  std::vector<int64_t> bytes;
  for (size_t path = 0; path < impl->directories.size(); ++path)
    bytes.push_back(impl->file_bytes[DataFile(path)] + impl->file_bytes[ScratchFile(path)]);
  return bytes;
}

const std::string &StateStore::Directory() const { return impl->directories[0]; }

} // namespace boa
