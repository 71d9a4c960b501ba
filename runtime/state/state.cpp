//===- state.cpp - The state directory ------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes, opens and commits a state.
//
// A commit syncs the data files. Then it writes its own files, each synced and renamed, and syncs
// the directory (commit_files.h). Then it writes the new manifest beside the old one, syncs it,
// renames it over the old one and syncs the directory. Then it does the same for the copy.
// Extents that no commit names any more become free only after that. So all extents that one
// of the two manifests names are still there, whichever of them a crash or rot leaves.
//
// Every opening writes both manifests. So the manifest that was read is durable before any
// extent that it does not name is written over, and a damaged copy is mended.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/state.h"

#include "runtime/state/commit_files.h"
#include "runtime/state/commit_reader.h"
#include "runtime/state/commits.h"
#include "runtime/state/extents.h"
#include "runtime/state/manifest_files.h"
#include "runtime/state/models.h"
#include "runtime/state/paths.h"
#include "runtime/state/saved_commit.h"
#include "runtime/support/memory_errors.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <utility>

namespace boa {

/// The parts of a state. On the heap, since `extents` calls `paths`.
struct StateStore::Impl {
  Impl(FileSystem &disk, StatePaths given, const Program &program, int64_t keep)
      : disk(disk), paths(std::move(given)), commits(keep),
        extents(program, paths.given(),
                [this](int32_t file, int64_t bytes) {
                  return paths[size_t(file)].data().Reserve(bytes);
                }),
        model(ModelOf(program)) {}

  static absl::StatusOr<std::unique_ptr<Impl>>
  Make(FileSystem &, const Program &, const std::vector<std::string> &directories, int64_t keep);
  absl::Status Begin(const MachineSettings &, const OpenOptions &, Undo &);
  absl::Status WriteManifests();
  absl::Status GrowFor(int64_t commits);
  void NoteChanges(const Program &, const Continuation &);

  FileSystem &disk;
  StatePaths paths;
  std::unique_ptr<CommitReader> reader; // null: the process may write
  Commits commits;
  ManifestWriter writer;
  Extents extents;
  const std::shared_ptr<const SavedModel> model; // of the program, for the next commits
  std::string change;        // from the state's computation to its own, in words
  std::vector<bool> stands;  // by storage (models.h); empty: no commit was opened
  std::vector<IoFile> files; // by path: its data file
  std::vector<IoLink> links; // by path
  std::vector<std::string> notes;
  int64_t spare_bytes = 0;
  absl::Status failed; // of a commit, or for want of space: no commit may follow
};

StateStore::StateStore(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
StateStore::~StateStore() = default;

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

absl::StatusOr<bool> StateStore::Exists(FileSystem &disk, const std::string &directory) {
  absl::StatusOr<ReadManifests> read = ReadRoot(disk, directory);
  if (read.ok())
    return !read->manifest.commits.empty();
  if (absl::IsNotFound(read.status()))
    return false;
  return read.status();
}

absl::Status StateStore::CheckFree(FileSystem &disk, const std::vector<std::string> &directories) {
  for (const std::string &directory : directories)
    if (StatePath path(directory); path.Open(disk).ok())
      if (absl::Status status = path.CheckFree(); !status.ok())
        return status;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<CommitRecord>> StateStore::Peek(FileSystem &disk,
                                                             const Program &program,
                                                             const std::string &directory,
                                                             bool changed_model) {
  absl::StatusOr<ReadManifests> read = ReadManifest(disk, directory);
  if (absl::IsNotFound(read.status()))
    return std::nullopt;
  if (!read.ok())
    return read.status();
  const Manifest &manifest = read->manifest;
  if (manifest.commits.empty() || !read->note.empty())
    return std::nullopt;
  const SavedCommit &last = manifest.commits.back();
  if (!last.fault.ok())
    return last.fault;
  if (absl::Status status = CheckReadable(directory, manifest, last); !status.ok())
    return status;
  if (absl::Status status = CheckContinues(directory, last, program, changed_model).status();
      !status.ok())
    return status;
  return last.record;
}

absl::StatusOr<std::unique_ptr<StateStore::Impl>>
StateStore::Impl::Make(FileSystem &disk, const Program &program,
                       const std::vector<std::string> &directories, int64_t keep) {
  absl::StatusOr<StatePaths> paths = StatePaths::Make(disk, directories);
  if (!paths.ok())
    return paths.status();
  keep = std::clamp<int64_t>(keep, 1, kMostFileBytes);
  if (absl::Status status = CheckProgram(program, keep); !status.ok())
    return status;
  return std::make_unique<Impl>(disk, *std::move(paths), program, keep);
}

/// The common part of Create and Open, once the manifest is read and the process is at one of
/// its commits.
absl::Status StateStore::Impl::Begin(const MachineSettings &machine, const OpenOptions &options,
                                     Undo &undo) {
  Manifest &manifest = commits.manifest();
  if (absl::Status status = paths.Identify(manifest, undo, notes); !status.ok())
    return status;
  boa::Directory &home = *paths.home().folder();
  const int64_t step = commits.record().step;
  if (absl::Status status = WithinMemory(
          home.path(), [&] { return LoadAllTables(disk, home, manifest, step, notes); });
      !status.ok()) {
    // Another process whose lock was removed may have dropped the commit meanwhile.
    absl::Status unchanged = CheckUnchanged(home, manifest);
    return unchanged.ok() ? status : unchanged;
  }
  std::vector<Extents::File> found;
  for (size_t i = 0; i < paths.size(); ++i)
    found.push_back({paths[i].DataPath(), paths[i].found_bytes()});
  if (absl::Status status = extents.Claim(manifest.commits, found); !status.ok())
    return status;
  const std::vector<int64_t> needed = extents.BytesNeeded(commits.most(), stands);
  std::vector<int64_t> sizes;
  for (const Extents::File &file : found)
    sizes.push_back(file.bytes);
  if (absl::Status status = paths.CheckSpace(needed, sizes); !status.ok()) {
    std::string why;
    for (const SavedCommit &commit : manifest.commits)
      if (!commit.fault.ok())
        why = absl::StrFormat("; nothing is written over while the commit of step %d cannot be "
                              "read, so the files grow",
                              commit.record.step);
    return absl::Status(status.code(), absl::StrCat(status.message(), why));
  }
  spare_bytes = options.spare_bytes;
  if (absl::Status status = paths.OpenData(manifest.state, options.interrupted, notes);
      !status.ok())
    return status;
  if (absl::Status status = CheckUnchanged(home, manifest); !status.ok())
    return status;
  // All checks are done. From here on the state changes.
  if (absl::Status status = paths.MarkLocks(); !status.ok())
    return status;
  if (absl::Status status = WriteManifests(); !status.ok())
    return status;
  absl::StatusOr<std::vector<int64_t>> bytes =
      paths.MakeData(manifest, needed, undo, options.interrupted, notes);
  if (!bytes.ok())
    return bytes.status();
  for (size_t i = 0; i < paths.size(); ++i) {
    files.push_back({paths[i].data().descriptor(), paths[i].DataPath(), int32_t(i)});
    const bool limited = i < paths.given() && i < machine.ssd.size();
    links.push_back(limited ? IoLink{machine.ssd[i].read, machine.ssd[i].write} : IoLink{});
  }
  // Those of commits that were cut short, or that were dropped and not removed.
  RemoveUnnamed(home, manifest);
  if (const SavedCommit *commit = commits.Present())
    extents.Adopt(*commit, stands);
  return extents.Begin(*bytes);
}

/// What the program does with the parameters of the commit that the one before did not.
void StateStore::Impl::NoteChanges(const Program &program, const Continuation &found) {
  auto note = [&](const std::vector<std::string> &names, const std::string &what) {
    if (!names.empty())
      notes.push_back(absl::StrCat(absl::StrJoin(names, ", "), what));
  };
  const bool narrow = !program.groups.empty() && program.groups[0].weight_type == "bf16";
  // Its corrections are those of the training's step, not of the state's.
  const bool adamw = program.train.optimizer.kind == OptimizerKind::adamw;
  const char *const large =
      adamw && commits.record().step > 0
          ? "; until adamw's moments fill, updates are larger than the rate says"
          : "";
  note(found.frozen, absl::StrCat(": frozen from here on, without the optimizer's state",
                                  narrow ? ", rounded to bf16" : ""));
  note(found.thawed,
       absl::StrCat(": trained from here on; the optimizer's state begins at zero", large));
  note(found.added, absl::StrCat(": new, with initial values", large));
}

/// The manifest of a state without commits. An empty identity: there is no state.
static absl::StatusOr<Manifest> Uncommitted(absl::StatusOr<ReadManifests> read,
                                            const std::string &home) {
  if (absl::IsNotFound(read.status()))
    return Manifest();
  if (!read.ok())
    return read.status();
  if (!read->manifest.commits.empty())
    return absl::AlreadyExistsError(absl::StrFormat(
        "%s holds a training state already: resume it, or choose another directory", home));
  return std::move(read->manifest);
}

absl::StatusOr<std::unique_ptr<StateStore>>
StateStore::Create(FileSystem &disk, const Program &program,
                   const std::vector<std::string> &directories, int64_t keep,
                   const OpenOptions &options) {
  absl::StatusOr<std::unique_ptr<Impl>> impl = Impl::Make(disk, program, directories, keep);
  if (!impl.ok())
    return impl.status();
  StatePaths &paths = (*impl)->paths;
  const std::string home = paths.home().directory();
  absl::StatusOr<Manifest> read = Uncommitted(ReadManifest(disk, home), home);
  if (!read.ok())
    return read.status();
  Undo undo(disk);
  if (absl::Status status = paths.Take(read->state, undo); !status.ok())
    return status;
  const std::shared_ptr<boa::Directory> &folder = paths.home().folder();
  read = Uncommitted(ReadManifest(disk, *folder), home); // now that no other process writes it
  if (!read.ok())
    return read.status();
  // An identity is left from a creation that was cut short before its first commit.
  if (read->state.empty()) {
    read->state = absl::StrFormat("%016x%016x", disk.Unique(), disk.Unique());
    undo.AddFile(folder, kManifest);
    undo.AddFile(folder, kManifestCopy);
  }
  read->model = program.model.name;
  read->base = options.base;
  (*impl)->commits.manifest() = *std::move(read);
  if (absl::Status status = (*impl)->Begin(program.machine, options, undo); !status.ok())
    return status;
  undo.Keep();
  return std::unique_ptr<StateStore>(new StateStore(*std::move(impl)));
}

absl::StatusOr<std::unique_ptr<StateStore>>
StateStore::Open(FileSystem &disk, const Program &program,
                 const std::vector<std::string> &directories, int64_t keep,
                 std::optional<int64_t> at, const OpenOptions &options) {
  absl::StatusOr<std::unique_ptr<Impl>> impl = Impl::Make(disk, program, directories, keep);
  if (!impl.ok())
    return impl.status();
  Impl &state = **impl;
  const std::string home = state.paths.home().directory();
  absl::StatusOr<ReadManifests> read = ReadManifest(disk, home);
  if (absl::IsNotFound(read.status()) || (read.ok() && read->manifest.commits.empty()))
    return absl::NotFoundError(
        absl::StrFormat("%s holds no training state: start one without resuming", home));
  if (!read.ok())
    return read.status();
  Undo undo(disk);
  if (absl::Status status = state.paths.Take(read->manifest.state, undo); !status.ok())
    return status;
  read = ReadManifest(disk, *state.paths.home().folder()); // now that no other process writes it
  if (!read.ok())
    return read.status();
  if (!read->note.empty())
    state.notes.push_back(
        absl::StrCat(read->note, "; the other one is whole, and both are written anew from it"));
  state.notes.insert(state.notes.end(), read->commit_notes.begin(), read->commit_notes.end());
  Manifest &manifest = state.commits.manifest() = std::move(read->manifest);
  absl::StatusOr<const SavedCommit *> commit = state.commits.GoTo(at, home, state.notes);
  if (!commit.ok())
    return commit.status();
  if (absl::Status status = CheckReadable(home, manifest, **commit); !status.ok())
    return status;
  absl::StatusOr<Continuation> found =
      CheckContinues(home, **commit, program, options.changed_model);
  if (!found.ok())
    return found.status();
  state.NoteChanges(program, *found);
  state.change = std::move(found->change);
  state.stands = std::move(found->stands);
  if ((*commit)->model->computation.version == 0 && program.computation.version > 0)
    state.notes.push_back("the state does not say what its program computes: only parameters and "
                          "storages were compared; the next commit will say it");
  if (absl::Status status = state.Begin(program.machine, options, undo); !status.ok())
    return status;
  undo.Keep();
  return std::unique_ptr<StateStore>(new StateStore(*std::move(impl)));
}

/// Whether each storage of the program on SSD is one that stands, so that nothing is written.
static bool ReadsOnly(const Program &program, const std::vector<bool> &stands) {
  for (size_t s = 0; s < program.storages.size(); ++s)
    if (program.storages[s].LivesOn(Home::ssd) && !(program.storages[s].persistent && stands[s]))
      return false;
  return true;
}

absl::StatusOr<std::unique_ptr<StateStore>>
StateStore::OpenToRead(FileSystem &disk, const Program &program, const std::string &directory,
                       std::optional<int64_t> at, const OpenOptions &options) {
  absl::StatusOr<std::unique_ptr<Impl>> impl = Impl::Make(disk, program, {directory}, /*keep=*/1);
  if (!impl.ok())
    return impl.status();
  Impl &state = **impl;
  absl::StatusOr<std::unique_ptr<CommitReader>> reader = CommitReader::Open(disk, directory, at);
  if (!reader.ok())
    return reader.status();
  state.reader = *std::move(reader);
  const Manifest &manifest = state.reader->manifest();
  const SavedCommit &commit = state.reader->saved();
  absl::StatusOr<Continuation> found =
      CheckContinues(directory, commit, program, options.changed_model);
  if (!found.ok())
    return found.status();
  // Where a state on several paths was moved, Open finds out which of them are its own.
  const std::vector<bool> named = NamedPaths(manifest, manifest.paths.size());
  const bool moved = std::count(named.begin(), named.end(), true) > 1 && !state.reader->IsAtHome();
  if (moved || !ReadsOnly(program, found->stands))
    return nullptr;
  state.commits.manifest() = manifest;
  state.commits.GoToLast();
  state.change = std::move(found->change);
  state.stands = std::move(found->stands);
  state.files = state.reader->Files();
  state.links.resize(state.files.size());
  for (size_t i = 0; i < state.links.size() && i < program.machine.ssd.size(); ++i)
    state.links[i] = {program.machine.ssd[i].read, program.machine.ssd[i].write};
  state.extents.Adopt(commit, state.stands);
  state.failed = absl::FailedPreconditionError(absl::StrCat(directory, " is open to read only"));
  return std::unique_ptr<StateStore>(new StateStore(*std::move(impl)));
}

absl::Status StateStore::CheckKept() const {
  return impl->reader ? impl->reader->CheckKept() : absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Shadow paging and commits
//===----------------------------------------------------------------------===//

Extent StateStore::Current(int32_t storage, int64_t entry, int32_t chunk) const {
  return impl->extents.Current(storage, entry, chunk);
}

Extent StateStore::Next(int32_t storage, int64_t entry, int32_t chunk) {
  if (!impl->failed.ok())
    return {};
  absl::StatusOr<Extent> next = impl->extents.Next(storage, entry, chunk);
  impl->failed = next.status();
  return next.ok() ? *next : Extent();
}

absl::Status StateStore::status() const { return impl->failed; }

void StateStore::SetChecksum(const Extent &extent, uint64_t checksum) {
  impl->extents.SetChecksum(extent, checksum);
}

std::optional<uint64_t> StateStore::Checksum(const Extent &extent) const {
  return impl->extents.Checksum(extent);
}

/// Compares the names before the write, so that nothing is written beside the state. Compares
/// them again after it: only then may a commit be acknowledged under these names.
absl::Status StateStore::Impl::WriteManifests() {
  Manifest &manifest = commits.manifest();
  if (absl::Status status = paths.CheckNames(manifest); !status.ok())
    return status;
  if (absl::Status status = writer.Write(*paths.home().folder(), manifest); !status.ok())
    return status;
  return paths.CheckNames(manifest);
}

/// Makes the files long enough for so many commits.
absl::Status StateStore::Impl::GrowFor(int64_t kept) {
  const std::vector<int64_t> needed = extents.BytesNeeded(kept, stands), now = extents.Bytes();
  bool enough = true;
  for (size_t i = 0; i < now.size(); ++i)
    enough &= needed[i] <= now[i];
  if (enough)
    return absl::OkStatus();
  if (absl::Status status = paths.CheckSpace(needed, now, spare_bytes); !status.ok())
    return status;
  return extents.GrowFiles(needed);
}

absl::Status StateStore::Commit(const CommitRecord &record) {
  // After a failed commit a crash may leave either manifest. So nothing that one of them names
  // may be written over.
  if (!impl->failed.ok())
    return impl->failed;
  if (record.step < 0)
    return absl::InvalidArgumentError(absl::StrCat("cannot commit step ", record.step));
  if (absl::Status status = CheckRecord(record); !status.ok())
    return status;
  absl::StatusOr<SavedCommit> commit = impl->extents.Contents();
  if (!commit.ok())
    return commit.status();
  commit->record = record;
  commit->model = impl->model;
  if (absl::Status status = impl->paths.SyncData(); !status.ok())
    return impl->failed = status;
  if (absl::Status status =
          WriteCommit(*impl->paths.home().folder(), impl->commits.manifest(), *commit);
      !status.ok())
    return impl->failed = status;
  // Until the manifests without a commit are durable, no process begins to read it.
  std::vector<std::unique_ptr<OpenFile>> locks;
  const StatePath &home = impl->paths.home();
  auto is_read = [&](int64_t step) {
    absl::StatusOr<std::unique_ptr<OpenFile>> lock = home.LockCommit(step, /*shared=*/false);
    if (lock.ok())
      locks.push_back(*std::move(lock));
    return absl::IsUnavailable(lock.status()) && home.CanLockCommits();
  };
  Commits &commits = impl->commits;
  std::vector<SavedCommit> dropped = commits.Add(*std::move(commit), impl->paths.given(), is_read);
  // With more commits than the state keeps, the next contents need more space. On a full disk the
  // training goes on without the oldest.
  while (commits.HasMore() && !impl->GrowFor(int64_t(commits.manifest().commits.size())).ok())
    dropped.push_back(*commits.DropOldest(impl->paths.given()));
  if (absl::Status status = impl->WriteManifests(); !status.ok())
    return impl->failed = status;
  impl->commits.GoToLast();
  impl->extents.Committed(impl->commits.manifest().commits, dropped);
  RemoveUnnamed(*home.folder(), impl->commits.manifest());
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// The opened commit
//===----------------------------------------------------------------------===//

bool StateStore::Stands(int32_t storage) const {
  return !impl->stands.empty() && impl->stands[size_t(storage)];
}

const SavedCommit *StateStore::Opened() const { return impl->commits.Present(); }

const std::vector<SavedParameter> &StateStore::OpenedParameters() const {
  return impl->commits.Present()->model->parameters;
}

absl::Status StateStore::ReadOpened(const SavedTable &table, size_t index, void *data) const {
  if (impl->reader)
    return impl->reader->Read(table, index, data);
  return ReadSavedChunk(impl->paths[size_t(table.Chunk(index).extent.file)].data(), table, index,
                        data);
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

FileSystem &StateStore::Disk() const { return impl->disk; }
const std::vector<IoFile> &StateStore::Files() const { return impl->files; }
const std::vector<IoLink> &StateStore::Links() const { return impl->links; }
const CommitRecord &StateStore::Committed() const { return impl->commits.record(); }
const std::string &StateStore::Identity() const { return impl->commits.manifest().state; }
const Computation &StateStore::SavedComputation() const {
  const SavedCommit *present = impl->commits.Present();
  return present ? present->model->computation : impl->model->computation;
}
const std::string &StateStore::ComputationChange() const { return impl->change; }
std::vector<std::string> StateStore::Notes() const { return impl->notes; }
const std::string &StateStore::Directory() const { return impl->paths.home().directory(); }
std::vector<int64_t> StateStore::BytesByPath() const { return impl->extents.Bytes(); }

absl::Status DamagedChunk(const std::string &storage, int64_t entry, int32_t chunk,
                          const std::string &file, int64_t offset, bool persistent) {
  return absl::DataLossError(absl::StrFormat(
      "checksum of %s entry %d chunk %d in %s at offset %d does not match: the data on disk is "
      "damaged; check the disk, then %s",
      storage, entry, chunk, file, offset,
      persistent ? "restore the state directory from a copy or go on from an earlier commit"
                 : "go on from the last commit"));
}

} // namespace boa
