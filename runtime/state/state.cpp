//===- state.cpp - The state directory ------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes, opens and commits a state.
//
// Commit: sync of the data files; the new manifest beside the old, synced, renamed
// over it, the directory synced; the same for its copy. Only then do extents that
// no commit names any more go back to the pool: whichever of the two manifests a
// crash or rot leaves, all that it names is still there.
//
// Every opening writes both manifests anew. So what was read is durable before
// anything that it does not name is written over, and a damaged copy is mended.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/impl.h"

#include "runtime/state/checksum.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace boa {

static absl::Status HoldsNone(const std::string &home) {
  return absl::NotFoundError(absl::StrCat(home, " holds no training state"));
}

absl::StatusOr<ReadManifests> ReadManifest(FileSystem &disk, const std::string &home) {
  absl::StatusOr<std::shared_ptr<Directory>> directory = disk.OpenDirectory(home);
  if (absl::IsNotFound(directory.status()))
    return HoldsNone(home);
  return directory.ok() ? ReadManifest(**directory) : directory.status();
}

/// NotFound: neither is there.
absl::StatusOr<ReadManifests> ReadManifest(Directory &directory) {
  const std::string &home = directory.path();
  const std::string paths[] = {absl::StrCat(home, "/", kManifest),
                               absl::StrCat(home, "/", kManifestCopy)};
  std::vector<absl::StatusOr<Manifest>> read;
  std::string before;
  for (const char *name : {kManifest, kManifestCopy}) {
    const std::string &path = paths[read.size()];
    absl::StatusOr<std::string> text = ReadSmallFile(directory, name);
    if (text.ok() && !read.empty() && read[0].ok() && *text == before)
      return ReadManifests{*std::move(read[0]), ""};
    read.push_back(text.ok() ? ParseManifest(*text, path) : text.status());
    if (text.ok())
      before = *std::move(text);
    // One of another version may say what this trainer does not know.
    if (absl::IsUnimplemented(read.back().status()))
      return read.back().status();
  }
  if (read[0].ok() && read[1].ok()) {
    Manifest &first = *read[0], &second = *read[1];
    if (first.state != second.state)
      return absl::FailedPreconditionError(
          absl::StrFormat("%s and %s are of two states: remove the one that does not belong there",
                          paths[0], paths[1]));
    if (first.sequence == second.sequence)
      return ReadManifests{std::move(first), ""};
    const bool newer = second.sequence > first.sequence; // the second one
    return ReadManifests{std::move(newer ? second : first),
                         absl::StrCat(paths[newer ? 0 : 1], " is older than ", paths[newer ? 1 : 0],
                                      ": a commit was cut short")};
  }
  for (size_t i : {0, 1})
    if (read[i].ok())
      return ReadManifests{*std::move(read[i]), absl::IsNotFound(read[1 - i].status())
                                                    ? absl::StrCat(paths[1 - i], " is missing")
                                                    : std::string(read[1 - i].status().message())};
  for (size_t i : {0, 1})
    if (absl::IsNotFound(read[i].status())) {
      const absl::Status &other = read[1 - i].status();
      if (absl::IsNotFound(other))
        return HoldsNone(home);
      if (!absl::IsDataLoss(other))
        return other;
      return absl::DataLossError(absl::StrCat(other.message(), ", and ", paths[i],
                                              " is missing: restore ", home, " from a copy"));
    }
  // What is neither damaged nor missing is told first: somebody else's file, or one
  // that cannot be read.
  for (const absl::StatusOr<Manifest> &manifest : read)
    if (!absl::IsDataLoss(manifest.status()))
      return manifest.status();
  return absl::DataLossError(absl::StrCat(read[0].status().message(),
                                          ", and so is its copy: restore ", home, " from a copy"));
}

absl::StatusOr<bool> StateStore::Exists(FileSystem &disk, const std::string &directory) {
  absl::StatusOr<ReadManifests> read = ReadManifest(disk, directory);
  if (read.ok())
    return !read->manifest.commits.empty();
  if (absl::IsNotFound(read.status()))
    return false;
  return read.status();
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
  if (read->manifest.commits.empty() || !read->note.empty())
    return std::nullopt;
  Impl state(disk);
  state.paths.emplace_back().directory = directory;
  state.options.changed_model = changed_model;
  state.manifest = std::move(read->manifest);
  const SavedCommit &last = state.manifest.commits.back();
  if (absl::Status status = state.CheckReadable(last); !status.ok())
    return status;
  if (absl::Status status = state.CheckContinues(program, last); !status.ok())
    return status;
  return last.record;
}

/// One that is damaged is mended by the next writing; one that another process wrote
/// is not written over.
absl::Status StateStore::Impl::CheckManifests() const {
  const std::string &home = paths[0].directory;
  bool mine = false;
  for (const char *name : {kManifest, kManifestCopy}) {
    absl::StatusOr<std::string> text = ReadSmallFile(*paths[0].folder, name);
    if (!text.ok() && !absl::IsNotFound(text.status()) && !absl::IsDataLoss(text.status()))
      return text.status();
    if (text.ok() && boa::Checksum(text->data(), int64_t(text->size())) == written) {
      mine = true;
      continue;
    }
    const std::string path = absl::StrCat(home, "/", name);
    const absl::Status found = text.ok() ? ParseManifest(*text, path).status() : text.status();
    if (found.ok() || absl::IsUnimplemented(found)) // of this version or another
      return absl::FailedPreconditionError(absl::StrCat(
          path, " was replaced while this process used the state: end the other process that "
                "writes there"));
  }
  if (!mine)
    return absl::DataLossError(
        absl::StrFormat("%s/%s and %s were removed or damaged while this process used the state: "
                        "restore %s from a copy",
                        home, kManifest, kManifestCopy, home));
  return absl::OkStatus();
}

/// Directories are compared before it, so that nothing is written beside the state,
/// and after it, since only then a commit may be acknowledged under their names.
absl::Status StateStore::Impl::WriteManifests() {
  if (absl::Status status = CheckPaths(); !status.ok())
    return status;
  if (written != 0)
    if (absl::Status status = CheckManifests(); !status.ok())
      return status;
  ++manifest.sequence;
  const std::string text = FormatManifest(manifest);
  for (const char *name : {kManifest, kManifestCopy})
    if (absl::Status status = ReplaceFile(*paths[0].folder, name, text); !status.ok())
      return status;
  written = boa::Checksum(text.data(), int64_t(text.size()));
  return CheckPaths();
}

//===----------------------------------------------------------------------===//
// Beginning
//===----------------------------------------------------------------------===//

/// The directories, under their locks, if nothing there is of others.
absl::Status StateStore::Impl::TakePaths(Undo &undo) {
  if (absl::Status status = RefuseOthers(); !status.ok())
    return status;
  if (absl::Status status = MakeDirectories(undo); !status.ok())
    return status;
  if (absl::Status status = OpenPaths(); !status.ok())
    return status;
  for (StatePath &path : paths)
    if (absl::Status status = LockPath(path, undo); !status.ok())
      return status;
  return absl::OkStatus();
}

/// Whether the manifest is still the one that was read. A process whose lock was removed may
/// have committed until its data files were locked here.
absl::Status StateStore::Impl::CheckUnchanged() const {
  absl::StatusOr<ReadManifests> now = ReadManifest(*paths[0].folder);
  if (!now.ok() && !absl::IsNotFound(now.status()))
    return now.status();
  if (!now.ok() ||
      (now->manifest.sequence <= manifest.sequence && now->manifest.state == manifest.state))
    return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      paths[0].directory,
      " was changed by another process while this one opened it: run the same command again"));
}

/// What Create and Open have in common, once the manifest is known.
absl::Status StateStore::Impl::Begin(const Program &program, Undo &undo) {
  computation = program.computation;
  if (absl::Status status = FindPaths(undo); !status.ok())
    return status;
  if (absl::Status status = CheckPlaces(); !status.ok())
    return status;
  LayOut(program);
  if (absl::Status status = CheckSpace(); !status.ok())
    return status;
  if (absl::Status status = OpenData(); !status.ok())
    return status;
  if (absl::Status status = CheckUnchanged(); !status.ok())
    return status;
  // Everything is known to be right: from here on something is changed.
  if (absl::Status status = MarkLocks(); !status.ok())
    return status;
  if (absl::Status status = WriteManifests(); !status.ok())
    return status;
  return MakeData(undo);
}

static absl::Status AlreadyThere(const std::string &home) {
  return absl::AlreadyExistsError(absl::StrFormat(
      "%s holds a training state already: resume it, or choose another directory", home));
}

absl::StatusOr<std::unique_ptr<StateStore>>
StateStore::Create(FileSystem &disk, const Program &program,
                   const std::vector<std::string> &directories, int64_t keep,
                   const OpenOptions &options) {
  absl::StatusOr<std::unique_ptr<Impl>> impl = Impl::Make(disk, program, directories, keep);
  if (!impl.ok())
    return impl.status();
  Impl &state = **impl;
  state.options = options;
  const std::string home = state.paths[0].directory;
  absl::StatusOr<ReadManifests> read = ReadManifest(disk, home);
  if (!read.ok() && !absl::IsNotFound(read.status()))
    return read.status();
  if (read.ok() && !read->manifest.commits.empty())
    return AlreadyThere(home);
  if (read.ok())
    state.manifest.state = read->manifest.state;
  Undo undo(disk);
  if (absl::Status status = state.TakePaths(undo); !status.ok())
    return status;
  read = ReadManifest(*state.paths[0].folder); // now that nobody writes it
  if (!read.ok() && !absl::IsNotFound(read.status()))
    return read.status();
  if (read.ok() && !read->manifest.commits.empty())
    return AlreadyThere(home);
  if (read.ok()) {
    // Of one that was cut short before its first commit.
    state.manifest = std::move(read->manifest);
  } else {
    state.manifest.state = absl::StrFormat("%016x%016x", disk.Unique(), disk.Unique());
    undo.AddFile(state.paths[0].folder, kManifest);
    undo.AddFile(state.paths[0].folder, kManifestCopy);
  }
  state.manifest.model = program.model.name;
  state.manifest.computation = program.computation;
  state.manifest.parameters = ParametersOf(program);
  if (absl::Status status = state.Begin(program, undo); !status.ok())
    return status;
  if (absl::Status status = state.FillPools(); !status.ok())
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
  state.options = options;
  const std::string home = state.paths[0].directory;
  absl::StatusOr<ReadManifests> read = ReadManifest(disk, home);
  if (absl::IsNotFound(read.status()) || (read.ok() && read->manifest.commits.empty()))
    return absl::NotFoundError(
        absl::StrFormat("%s holds no training state: start one without resuming", home));
  if (!read.ok())
    return read.status();
  state.manifest.state = read->manifest.state;
  Undo undo(disk);
  if (absl::Status status = state.TakePaths(undo); !status.ok())
    return status;
  read = ReadManifest(*state.paths[0].folder); // now that nobody writes it
  if (!read.ok())
    return read.status();
  state.manifest = std::move(read->manifest);
  if (!read->note.empty())
    state.notes.push_back(
        absl::StrCat(read->note, "; the other one is whole, and both are written anew from it"));
  std::vector<SavedCommit> &commits = state.manifest.commits;
  if (commits.empty())
    return absl::NotFoundError(absl::StrCat(home, " holds no commit"));
  size_t chosen = commits.size() - 1;
  if (at) {
    std::vector<int64_t> steps;
    for (chosen = 0; chosen < commits.size() && commits[chosen].record.step != *at; ++chosen)
      steps.push_back(commits[chosen].record.step);
    if (chosen == commits.size())
      return absl::NotFoundError(
          absl::StrFormat("%s has no commit of step %d: it keeps those of %s", home, *at,
                          absl::StrJoin(steps, ", ")));
    for (size_t later = chosen + 1; later < commits.size(); ++later)
      state.notes.push_back(absl::StrFormat("the commit of step %d goes when the next is made",
                                            commits[later].record.step));
  }
  if (absl::Status status = state.CheckReadable(commits[chosen]); !status.ok())
    return status;
  if (absl::Status status = state.CheckContinues(program, commits[chosen]); !status.ok())
    return status;
  if (ComputationOf(state.manifest, commits[chosen]).version == 0 &&
      (state.manifest.version < kManifestVersion || program.computation.version > 0))
    state.notes.push_back("the state does not say what its program computes: only parameters and "
                          "storages were compared; the next commit will say it");
  if (absl::Status status = state.Begin(program, undo); !status.ok())
    return status;
  state.Adopt(commits[chosen]);
  if (absl::Status status = state.FillPools(); !status.ok())
    return status;
  undo.Keep();
  return std::unique_ptr<StateStore>(new StateStore(*std::move(impl)));
}

StateStore::StateStore(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
StateStore::~StateStore() = default;

/// What the commit holds is what chunks contain now.
void StateStore::Impl::Adopt(const SavedCommit &commit) {
  opened = commit.record;
  began = true;
  for (const SavedTable &saved : commit.tables) {
    for (const SavedChunk &chunk : saved.chunks)
      checksums[chunk.extent] = chunk.checksum;
    for (Table &table : tables) {
      if (!table.persistent || table.storage.name != saved.storage.name ||
          !SameShape(table.storage, saved.storage))
        continue;
      for (size_t i = 0; i < saved.chunks.size(); ++i)
        table.current[i] = saved.chunks[i].extent;
      table.named.assign(table.named.size(), 1);
    }
  }
}

const SavedCommit *StateStore::Impl::Opened() const {
  for (const SavedCommit &commit : manifest.commits)
    if (commit.record.step == opened.step)
      return &commit;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Committing
//===----------------------------------------------------------------------===//

absl::StatusOr<std::vector<SavedTable>> StateStore::Impl::TablesNow() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<SavedTable> saved;
  for (const Table &table : tables) {
    if (!table.persistent)
      continue;
    SavedTable &to = saved.emplace_back();
    to.storage = table.storage;
    to.chunks.reserve(table.current.size());
    for (size_t i = 0; i < table.current.size(); ++i) {
      auto sum = checksums.find(table.current[i]);
      if (sum == checksums.end())
        return absl::InternalError(
            absl::StrFormat("cannot commit: entry %d chunk %d of %s was never written",
                            int64_t(i) / table.storage.chunks, int64_t(i) % table.storage.chunks,
                            table.storage.name));
      to.chunks.push_back({table.current[i], sum->second});
    }
  }
  return saved;
}

absl::Status StateStore::Commit(const CommitRecord &record) {
  // After a failed one it is not known which manifest a crash would leave, so
  // nothing that either names may be written over.
  if (!impl->failed.ok())
    return impl->failed;
  if (record.step < 0)
    return absl::InvalidArgumentError(absl::StrCat("cannot commit step ", record.step));
  if (absl::Status status = CheckRecord(record); !status.ok())
    return status;
  absl::StatusOr<std::vector<SavedTable>> tables = impl->TablesNow();
  if (!tables.ok())
    return tables.status();
  for (StatePath &path : impl->paths)
    if (path.given)
      if (absl::Status status = path.data->Sync(); !status.ok())
        return impl->failed = status;
  // Those after the one that this process is at are of a past that was left; one
  // of the same step is replaced.
  std::vector<SavedCommit> &commits = impl->manifest.commits, kept, dropped;
  auto stays = [&](const SavedCommit &commit) {
    return impl->began && commit.record.step <= impl->opened.step &&
           commit.record.step != record.step;
  };
  for (SavedCommit &commit : commits)
    (stays(commit) ? kept : dropped).push_back(std::move(commit));
  commits = std::move(kept);
  // The manifest names the computation of the last commit, and of those that differ.
  for (SavedCommit &commit : commits) {
    Computation made = ComputationOf(impl->manifest, commit);
    commit.computation.reset();
    if (made.version != impl->computation.version || made.text != impl->computation.text)
      commit.computation = std::move(made);
  }
  commits.push_back({record, *std::move(tables), {}, {}});
  impl->manifest.version = kManifestVersion;
  impl->manifest.computation = impl->computation;
  int64_t extra = std::max<int64_t>(int64_t(commits.size()) - impl->keep, 0);
  std::move(commits.begin(), commits.begin() + extra, std::back_inserter(dropped));
  commits.erase(commits.begin(), commits.begin() + extra);
  if (absl::Status status = impl->WriteManifests(); !status.ok())
    return impl->failed = status;
  impl->opened = record;
  impl->began = true;
  for (Table &table : impl->tables)
    if (table.persistent)
      table.named.assign(table.named.size(), 1);
  impl->GiveBack(dropped);
  return absl::OkStatus();
}

/// Extents that only dropped commits named. What several commits name is one chunk
/// that was not written between them (CheckPlaces), so chunks are compared in pairs.
void StateStore::Impl::GiveBack(const std::vector<SavedCommit> &dropped) {
  std::vector<std::pair<Extent, int64_t>> gone; // with its bytes
  for (const SavedCommit &commit : dropped)
    for (const SavedTable &table : commit.tables) {
      std::vector<const SavedTable *> kept;
      for (const SavedCommit &other : manifest.commits)
        if (const SavedTable *same = FindTable(other, table.storage.name);
            same && SameShape(same->storage, table.storage))
          kept.push_back(same);
      for (size_t i = 0; i < table.chunks.size(); ++i)
        if (std::none_of(kept.begin(), kept.end(), [&](const SavedTable *other) {
              return other->chunks[i].extent == table.chunks[i].extent;
            }))
          gone.push_back({table.chunks[i].extent, table.storage.chunk_bytes});
    }
  // Each once, also where several commits named it.
  std::sort(gone.begin(), gone.end(), [](const auto &a, const auto &b) {
    return std::tie(a.first.file, a.first.offset) < std::tie(b.first.file, b.first.offset);
  });
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto &[extent, bytes] : gone) {
    checksums.erase(extent);
    paths[size_t(extent.file)].pool.Give(extent.offset, bytes);
  }
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

FileSystem &StateStore::Disk() const { return impl->disk; }
const std::vector<IoFile> &StateStore::Files() const { return impl->files; }
const std::vector<IoLink> &StateStore::Links() const { return impl->links; }
const CommitRecord &StateStore::Committed() const { return impl->opened; }
const std::string &StateStore::Identity() const { return impl->manifest.state; }
const Computation &StateStore::SavedComputation() const { return impl->manifest.computation; }
const std::string &StateStore::ComputationChange() const { return impl->change; }
std::vector<std::string> StateStore::Notes() const { return impl->notes; }
const std::string &StateStore::Directory() const { return impl->paths[0].directory; }

std::vector<int64_t> StateStore::BytesByPath() const {
  std::vector<int64_t> bytes;
  for (const StatePath &path : impl->paths)
    bytes.push_back(path.bytes);
  return bytes;
}

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
