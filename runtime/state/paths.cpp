//===- paths.cpp - The directories of a state -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whose a directory is, who uses it, and the space that it gives. A data file is
// taken only if its head has this state's identity and that of one of its paths;
// everything else is refused and left as it is: that is looked for before anything
// is made or locked, and once more under the locks. The process's name is written
// into a lock only when all paths are known to be the state's.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/dealer.h"
#include "runtime/state/impl.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <map>
#include <set>
#include <unistd.h>

namespace boa {
namespace {

constexpr char kLockMark[] = "boa trainer, process ";
constexpr size_t kLockBytes = 40; // padded, so that a new one covers the old

std::string ParentOf(const std::string &path) {
  size_t slash = path.find_last_of('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

struct DataFile {
  DataHead head;
  int64_t bytes = 0;
};

/// The data file of a directory; nothing: there is none.
absl::StatusOr<std::optional<DataFile>> FindData(Directory &directory) {
  absl::StatusOr<PathKind> kind = directory.Kind(kData);
  if (!kind.ok())
    return kind.status();
  if (*kind == PathKind::nothing)
    return std::nullopt;
  if (*kind != PathKind::file)
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s/%s is not a file: move it away, or choose another directory", directory.path(), kData));
  absl::StatusOr<std::unique_ptr<OpenFile>> file = directory.Open(kData, {});
  if (!file.ok())
    return file.status();
  absl::StatusOr<int64_t> size = (*file)->Size();
  if (!size.ok())
    return size.status();
  absl::StatusOr<DataHead> head = ReadHead(**file, *size);
  if (!head.ok())
    return head.status();
  return DataFile{*head, *size};
}

absl::StatusOr<std::optional<DataFile>> FindData(FileSystem &disk, const std::string &directory) {
  absl::StatusOr<std::shared_ptr<Directory>> opened = disk.OpenDirectory(directory);
  if (absl::IsNotFound(opened.status()))
    return std::nullopt;
  return opened.ok() ? FindData(**opened) : opened.status();
}

} // namespace

absl::StatusOr<DataHead> ReadHead(const OpenFile &file, int64_t size) {
  alignas(kStateBlock) char block[kStateBlock];
  const int64_t bytes = std::min(size, kStateBlock);
  if (absl::Status status = file.Read(0, block, bytes); !status.ok())
    return status;
  absl::StatusOr<DataHead> head = ParseHead({block, size_t(bytes)}, file.path());
  if (absl::IsDataLoss(head.status()))
    return absl::DataLossError(
        absl::StrCat(head.status().message(), ": restore the state from a copy"));
  return head;
}

absl::Status OfAnother(const std::string &directory, const DataHead &head) {
  return absl::AlreadyExistsError(absl::StrFormat(
      "%s belongs to another training, which was begun in %s: name another directory; if that "
      "training is no more, remove the files `data` and `lock` there",
      directory, head.home.empty() ? "a directory of a long name" : head.home));
}

/// Latest first, each durably: what is left where one cannot be removed still has
/// its manifest, and so its owner.
Undo::~Undo() {
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    absl::Status status = file->first->Unlink(file->second);
    if (status.ok())
      status = file->first->Sync();
    if (!status.ok() && !absl::IsNotFound(status))
      return;
  }
  // One whose sync failed must not stay: no later sync would make its name durable.
  constexpr int kAttempts = 3;
  for (auto path = directories.rbegin(); path != directories.rend(); ++path)
    for (int i = 0; i < kAttempts && !disk.RemoveDirectory(*path).ok(); ++i)
      ;
}

absl::StatusOr<std::unique_ptr<StateStore::Impl>>
StateStore::Impl::Make(FileSystem &disk, const Program &program,
                       const std::vector<std::string> &directories, int64_t keep) {
  if (directories.empty())
    return absl::InvalidArgumentError("a state needs at least one directory");
  if (absl::Status status = CheckProgram(program); !status.ok())
    return status;
  auto impl = std::make_unique<Impl>(disk);
  impl->keep = std::clamp<int64_t>(keep, 1, kMostFileBytes);
  std::vector<double> weights = StripeWeights(program.machine, directories.size());
  for (size_t i = 0; i < directories.size(); ++i) {
    StatePath &path = impl->paths.emplace_back();
    path.directory = directories[i];
    while (path.directory.size() > 1 && path.directory.back() == '/')
      path.directory.pop_back();
    if (path.directory.empty())
      return absl::InvalidArgumentError("a state directory has an empty name");
    path.weight = weights[i];
    bool known = i < program.machine.ssd.size();
    impl->links.push_back(known ? IoLink{program.machine.ssd[i].read, program.machine.ssd[i].write}
                                : IoLink{});
  }
  return impl;
}

/// So that nothing of others is touched where it can be seen from outside.
absl::Status StateStore::Impl::RefuseOthers() const {
  for (const StatePath &path : paths) {
    absl::StatusOr<std::optional<DataFile>> data = FindData(disk, path.directory);
    if (!data.ok())
      return data.status();
    if (*data && (*data)->head.state != manifest.state)
      return OfAnother(path.directory, (*data)->head);
  }
  return absl::OkStatus();
}

/// With all their parents. Those that are there are synced too: whoever made them
/// may have died before that.
absl::Status StateStore::Impl::MakeDirectories(Undo &undo) {
  for (const StatePath &path : paths)
    for (size_t end = path.directory.find('/', 1);; end = path.directory.find('/', end + 1)) {
      std::string part = path.directory.substr(0, end);
      absl::Status status = disk.MakeDirectory(part);
      if (status.ok())
        undo.AddDirectory(part);
      const bool there = absl::IsAlreadyExists(status);
      if (status.ok() || there)
        status = disk.SyncDirectory(ParentOf(part));
      // Of one that we may not even read we made nothing.
      if (there && absl::IsPermissionDenied(status))
        status = absl::OkStatus();
      if (!status.ok())
        return Unwritable(status);
      if (end == std::string::npos)
        break;
    }
  return absl::OkStatus();
}

absl::Status StateStore::Impl::OpenPaths() {
  std::map<std::string, std::string> seen;
  for (StatePath &path : paths) {
    auto folder = disk.OpenDirectory(path.directory);
    if (!folder.ok())
      return folder.status();
    path.folder = *std::move(folder);
    absl::StatusOr<std::string> real = disk.RealPath(path.directory);
    if (!real.ok())
      return real.status();
    path.real = *real;
    auto [other, fresh] = seen.insert({path.real, path.directory});
    if (!fresh)
      return absl::InvalidArgumentError(
          absl::StrFormat("%s and %s are one directory: give each ssd path its own", other->second,
                          path.directory));
  }
  return absl::OkStatus();
}

/// Whether names still lead to the directories and data files that are open. One that is
/// neither given nor named by a commit may go.
absl::Status StateStore::Impl::CheckPaths() const {
  std::vector<bool> needed(paths.size());
  for (const SavedCommit &commit : manifest.commits)
    for (const SavedTable &table : commit.tables)
      for (const SavedChunk &chunk : table.chunks)
        needed[size_t(chunk.extent.file)] = true;
  for (size_t i = 0; i < paths.size(); ++i) {
    const StatePath &path = paths[i];
    if (!path.given && !needed[i])
      continue;
    absl::StatusOr<bool> same = path.folder->IsCurrent();
    if (same.ok() && *same && path.data)
      same = path.folder->Names(kData, *path.data);
    if (!same.ok())
      return same.status();
    if (!*same)
      return absl::FailedPreconditionError(absl::StrFormat(
          "%s was moved or replaced while this process used it: what was committed there is whole; "
          "move it back to %s, or give its new place with --state or in the machine's ssd",
          path.directory, path.real));
  }
  return absl::OkStatus();
}

absl::Status StateStore::Impl::LockPath(StatePath &path, Undo &undo) {
  absl::StatusOr<PathKind> before = path.folder->Kind(kLock);
  if (!before.ok())
    return before.status();
  absl::StatusOr<std::unique_ptr<OpenFile>> lock = path.folder->Lock(kLock);
  if (absl::IsUnavailable(lock.status())) {
    absl::StatusOr<std::string> text = ReadSmallFile(*path.folder, kLock);
    std::string holder = "another process";
    absl::string_view rest = text.ok() ? absl::string_view(*text) : absl::string_view();
    if (absl::ConsumePrefix(&rest, kLockMark))
      holder = absl::StrCat("process ", rest.substr(0, rest.find_first_of(" \n")));
    return absl::UnavailableError(absl::StrFormat(
        "%s is in use by %s: wait until it ends, or stop it", path.directory, holder));
  }
  if (!lock.ok())
    return Unwritable(lock.status());
  if (*before == PathKind::nothing)
    undo.AddFile(path.folder, kLock);
  absl::StatusOr<int64_t> size = (*lock)->Size();
  if (!size.ok())
    return size.status();
  std::string mark(std::min(*size, int64_t(sizeof(kLockMark) - 1)), '\0');
  if (absl::Status status = (*lock)->Read(0, mark.data(), int64_t(mark.size())); !status.ok())
    return status;
  // What a crash left of one may be its beginning, or zeros. Beside a data file it is
  // the data file that says whose the directory is.
  absl::StatusOr<PathKind> data = path.folder->Kind(kData);
  if (!absl::StartsWith(kLockMark, mark) && mark.find_first_not_of('\0') != std::string::npos &&
      !(data.ok() && *data == PathKind::file))
    return absl::AlreadyExistsError(absl::StrCat(
        path.directory, "/", kLock, " is not the lock of a trainer: choose another directory"));
  path.lock = *std::move(lock);
  return absl::OkStatus();
}

/// For whoever finds them in use.
absl::Status StateStore::Impl::MarkLocks() {
  std::string text = absl::StrCat(kLockMark, getpid());
  text.resize(kLockBytes - 1, ' ');
  text += '\n';
  for (StatePath &path : paths)
    if (absl::Status status = path.lock->Write(0, text.data(), int64_t(text.size())); !status.ok())
      return Unwritable(status);
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Which path is which
//===----------------------------------------------------------------------===//

/// Gives each path its identity, finds those that are not given but still hold
/// something, and renumbers the places in the manifest. Changes nothing on disk
/// but for locks.
absl::Status StateStore::Impl::FindPaths(Undo &undo) {
  std::vector<SavedPath> known = manifest.paths;
  known.insert(known.end(), manifest.former.begin(), manifest.former.end());
  std::vector<int32_t> place(known.size(), -1); // by index in `known`
  for (size_t i = 0; i < paths.size(); ++i) {
    StatePath &path = paths[i];
    absl::StatusOr<std::optional<DataFile>> data = FindData(*path.folder);
    if (!data.ok())
      return data.status();
    if (!*data) {
      path.id = absl::StrFormat("%016x", disk.Unique());
      if (!manifest.commits.empty())
        notes.push_back(absl::StrCat(path.directory, " is taken into use"));
      continue;
    }
    const DataHead &head = (*data)->head;
    path.id = head.path;
    path.bytes = (*data)->bytes;
    auto saved = std::find_if(known.begin(), known.end(),
                              [&](const SavedPath &other) { return other.id == path.id; });
    if (head.state != manifest.state || saved == known.end())
      return OfAnother(path.directory, head);
    int32_t &at = place[size_t(saved - known.begin())];
    if (at >= 0)
      return absl::InvalidArgumentError(
          absl::StrFormat("%s and %s are copies of one path of the state: give one of them",
                          paths[size_t(at)].directory, path.directory));
    at = int32_t(i);
  }
  std::vector<bool> needed(known.size());
  for (const SavedCommit &commit : manifest.commits)
    for (const SavedTable &table : commit.tables)
      for (const SavedChunk &chunk : table.chunks)
        needed[size_t(chunk.extent.file)] = true;
  for (size_t saved = 0; saved < needed.size(); ++saved)
    if (needed[saved] && place[saved] < 0) {
      if (absl::Status status = FindUngivenPath(known[saved], undo); !status.ok())
        return status;
      place[saved] = int32_t(paths.size()) - 1;
    }
  if (paths.size() > kMostPaths)
    return absl::InvalidArgumentError(
        absl::StrFormat("the state would stand in %d directories, and %d is the most: give fewer "
                        "new ones at a time",
                        paths.size(), kMostPaths));
  if (absl::Status status = RefuseCopy(known, place); !status.ok())
    return status;
  for (SavedCommit &commit : manifest.commits)
    for (SavedTable &table : commit.tables)
      for (SavedChunk &chunk : table.chunks)
        chunk.extent.file = place[size_t(chunk.extent.file)];
  // A copy, or what may be one, has no claim to what stands elsewhere.
  const bool at_home = manifest.home == paths[0].real;
  manifest.home = paths[0].real;
  manifest.paths.clear();
  manifest.former.clear();
  std::set<std::string> given;
  for (const StatePath &path : paths) {
    manifest.paths.push_back({path.id, path.real});
    given.insert(path.real);
  }
  for (size_t saved = 0; saved < known.size(); ++saved)
    if (at_home && place[saved] < 0 && given.count(known[saved].directory) == 0 &&
        manifest.former.size() < kMostPaths)
      manifest.former.push_back(known[saved]);
  return absl::OkStatus();
}

/// One that the machine no longer names, where it stood last.
absl::Status StateStore::Impl::FindUngivenPath(const SavedPath &wanted, Undo &undo) {
  StatePath path;
  path.directory = path.real = wanted.directory;
  path.id = wanted.id;
  path.given = false;
  auto folder = disk.OpenDirectory(path.directory);
  absl::StatusOr<std::optional<DataFile>> data = folder.ok() ? FindData(**folder) : folder.status();
  if (!data.ok() || !*data || (*data)->head.state != manifest.state ||
      (*data)->head.path != wanted.id)
    return absl::NotFoundError(
        absl::StrFormat("%s is missing, which holds a part of the state of %s%s: put it back, or "
                        "name the directory "
                        "in which it is now as an ssd path of the machine",
                        path.DataPath(), paths[0].directory,
                        data.ok() ? "" : absl::StrCat(" (", data.status().message(), ")")));
  path.folder = *std::move(folder);
  path.bytes = (*data)->bytes;
  if (absl::Status status = LockPath(path, undo); !status.ok())
    return status;
  notes.push_back(absl::StrFormat("%s is no longer among the ssd paths: its part of the state is "
                                  "read there, and written to the others",
                                  path.directory));
  paths.push_back(std::move(path));
  links.push_back({});
  return absl::OkStatus();
}

/// The parts of a state and of its copy have the same identities: that they are not
/// mixed is told from where each stood last.
absl::Status StateStore::Impl::RefuseCopy(const std::vector<SavedPath> &known,
                                          const std::vector<int32_t> &place) const {
  const std::string &home = paths[0].real;
  bool copied = false;
  if (manifest.home != home) {
    absl::StatusOr<ReadManifests> first = ReadManifest(disk, manifest.home);
    copied = first.ok() && first->manifest.state == manifest.state; // else moved
  }
  for (size_t saved = 0; saved < place.size(); ++saved) {
    if (place[saved] <= 0)
      continue;
    const StatePath &path = paths[size_t(place[saved])];
    const std::string &before = known[saved].directory;
    if (copied && path.real == before)
      return absl::FailedPreconditionError(absl::StrFormat(
          "%s is a copy of the state in %s and would write to %s, which belongs to that one: copy "
          "this directory too and name the copy in the machine's ssd, or resume the state in %s",
          paths[0].directory, manifest.home, path.directory, manifest.home));
    if (copied || path.real == before)
      continue;
    absl::StatusOr<std::optional<DataFile>> other = FindData(disk, before);
    if (other.ok() && *other && (*other)->head.state == manifest.state &&
        (*other)->head.path == path.id)
      return absl::FailedPreconditionError(
          absl::StrFormat("%s holds a part of the state of %s, and %s too, where it stood last: "
                          "one is a copy; name "
                          "%s, or if it was moved remove the files `data` and `lock` there",
                          path.directory, paths[0].directory, before, before));
  }
  return absl::OkStatus();
}

} // namespace boa
