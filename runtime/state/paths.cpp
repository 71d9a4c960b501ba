//===- paths.cpp - The directories of a state -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/paths.h"

#include "runtime/abi/program.h"
#include "runtime/state/manifest_files.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <map>
#include <set>

namespace boa {

absl::StatusOr<StatePaths> StatePaths::Make(FileSystem &disk,
                                            const std::vector<std::string> &directories) {
  if (directories.empty())
    return absl::InvalidArgumentError("a state needs at least one directory");
  StatePaths made(disk);
  for (std::string directory : directories) {
    while (directory.size() > 1 && directory.back() == '/')
      directory.pop_back();
    if (directory.empty())
      return absl::InvalidArgumentError("a state directory has an empty name");
    made.paths.emplace_back(std::move(directory));
  }
  made.given_count = directories.size();
  return made;
}

//===----------------------------------------------------------------------===//
// Directories and locks
//===----------------------------------------------------------------------===//

absl::Status StatePaths::Take(const std::string &state, Undo &undo) {
  if (absl::Status status = RefuseOthers(state); !status.ok())
    return status;
  if (absl::Status status = MakeDirectories(undo); !status.ok())
    return status;
  if (absl::Status status = OpenDirectories(); !status.ok())
    return status;
  for (StatePath &path : paths)
    if (absl::Status status = path.Lock(undo); !status.ok())
      return status;
  return absl::OkStatus();
}

/// Looks from outside, so that nothing of others is touched.
absl::Status StatePaths::RefuseOthers(const std::string &state) const {
  for (const StatePath &path : paths) {
    absl::StatusOr<std::optional<FoundData>> data = FindData(disk, path.directory());
    if (!data.ok())
      return data.status();
    if (*data && (*data)->head.state != state)
      return OfAnother(path.directory(), (*data)->head);
  }
  return absl::OkStatus();
}

/// With all their parents. Syncs the names of existing ones too: the process that made them may
/// have died before its sync.
absl::Status StatePaths::MakeDirectories(Undo &undo) const {
  for (const StatePath &path : paths)
    for (size_t end = path.directory().find('/', 1);; end = path.directory().find('/', end + 1)) {
      std::string part = path.directory().substr(0, end);
      absl::Status status = disk.MakeDirectory(part);
      if (status.ok())
        undo.AddDirectory(part);
      const bool there = absl::IsAlreadyExists(status);
      if (status.ok() || there)
        status = disk.SyncDirectory(ParentOf(part));
      // We made nothing in a directory that we may not even read.
      if (there && absl::IsPermissionDenied(status))
        status = absl::OkStatus();
      if (!status.ok())
        return Unwritable(status);
      if (end == std::string::npos)
        break;
    }
  return absl::OkStatus();
}

absl::Status StatePaths::OpenDirectories() {
  std::map<std::string, std::string> seen;
  for (StatePath &path : paths) {
    if (absl::Status status = path.Open(disk); !status.ok())
      return status;
    auto [other, fresh] = seen.insert({path.real(), path.directory()});
    if (!fresh)
      return absl::InvalidArgumentError(
          absl::StrFormat("%s and %s are one directory: give each ssd path its own", other->second,
                          path.directory()));
  }
  return absl::OkStatus();
}

absl::Status StatePaths::MarkLocks() {
  for (StatePath &path : paths)
    if (absl::Status status = path.MarkLock(); !status.ok())
      return status;
  return absl::OkStatus();
}

absl::Status StatePaths::CheckNames(const Manifest &manifest) const {
  const std::vector<bool> named = NamedPaths(manifest, paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    const StatePath &path = paths[i];
    if (i >= given_count && !named[i])
      continue;
    absl::StatusOr<bool> same = path.IsCurrent();
    if (!same.ok())
      return same.status();
    if (!*same)
      return absl::FailedPreconditionError(
          absl::StrFormat("%s was moved or replaced while this process used it: the commits there "
                          "are whole; move it back to %s, or give its new place with --state or in "
                          "the machine's ssd",
                          path.directory(), path.real()));
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Which path is which
//===----------------------------------------------------------------------===//

/// Whether frozen weights of the commit have chunks, which stay where they are.
static bool HasFrozen(const SavedCommit &commit) {
  return std::any_of(commit.tables.begin(), commit.tables.end(),
                     [](const SavedTable &table) { return IsFrozenStorage(table.storage.name); });
}

absl::Status StatePaths::Identify(Manifest &manifest, Undo &undo, std::vector<std::string> &notes) {
  const std::vector<SavedPath> known = manifest.paths;
  std::vector<int32_t> place(known.size(), -1); // by index in `known`
  for (size_t i = 0; i < paths.size(); ++i) {
    StatePath &path = paths[i];
    absl::StatusOr<std::optional<FoundData>> data = path.Find();
    if (!data.ok())
      return data.status();
    if (!*data) {
      path.Identify(absl::StrFormat("%016x", disk.Unique()), 0);
      if (!manifest.commits.empty())
        notes.push_back(absl::StrCat(path.directory(), " is taken into use"));
      continue;
    }
    const DataHead &head = (*data)->head;
    path.Identify(head.path, (*data)->bytes);
    auto saved = std::find_if(known.begin(), known.end(),
                              [&](const SavedPath &other) { return other.id == head.path; });
    if (head.state != manifest.state || saved == known.end())
      return OfAnother(path.directory(), head);
    int32_t &at = place[size_t(saved - known.begin())];
    if (at >= 0)
      return absl::InvalidArgumentError(
          absl::StrFormat("%s and %s are copies of one path of the state: give one of them",
                          paths[size_t(at)].directory(), path.directory()));
    at = int32_t(i);
  }
  const std::vector<bool> named = NamedPaths(manifest, known.size());
  for (size_t saved = 0; saved < known.size(); ++saved)
    if (named[saved] && place[saved] < 0) {
      if (absl::Status status = FindUngiven(known[saved], manifest.state, undo, notes);
          !status.ok())
        return status;
      place[saved] = int32_t(paths.size()) - 1;
      if (std::any_of(manifest.commits.begin(), manifest.commits.end(), HasFrozen))
        notes.back() += "; frozen weights stay there, so the state goes on to need it";
    }
  if (paths.size() > kMostPaths)
    return absl::InvalidArgumentError(
        absl::StrFormat("the state would be in %d directories, and %d is the most: give fewer new "
                        "ones at a time",
                        paths.size(), kMostPaths));
  if (absl::Status status = RefuseCopy(manifest, known, place); !status.ok())
    return status;
  for (SavedCommit &commit : manifest.commits) {
    for (int32_t &path : commit.paths)
      path = place[size_t(path)];
    for (SavedPart &part : commit.parts)
      part.path = place[size_t(part.path)];
  }
  // A copy has no claim to the paths of the original. Away from home this may be a copy.
  const bool at_home = manifest.home == home().real();
  manifest.home = home().real();
  manifest.paths.clear();
  std::set<std::string> used;
  for (const StatePath &path : paths) {
    manifest.paths.push_back({path.id(), disk.Host(), path.real()});
    used.insert(path.real());
  }
  // What no commit names may come back. One that cannot be read may name it.
  const bool knows_all = std::all_of(manifest.commits.begin(), manifest.commits.end(),
                                     [](const SavedCommit &commit) { return commit.fault.ok(); });
  for (size_t saved = 0; saved < known.size(); ++saved)
    if ((!knows_all || (at_home && used.count(known[saved].directory) == 0)) && place[saved] < 0 &&
        manifest.paths.size() < 2 * kMostPaths)
      manifest.paths.push_back(known[saved]);
  return absl::OkStatus();
}

/// Adds a path that the machine no longer names, from its last place.
absl::Status StatePaths::FindUngiven(const SavedPath &wanted, const std::string &state, Undo &undo,
                                     std::vector<std::string> &notes) {
  StatePath path(wanted.directory, wanted.directory);
  absl::Status opened = path.Open(disk);
  absl::StatusOr<std::optional<FoundData>> data = std::nullopt;
  data = opened.ok() ? path.Find() : opened;
  if (!data.ok() || !*data || (*data)->head.state != state || (*data)->head.path != wanted.id)
    return absl::NotFoundError(absl::StrFormat(
        "%s%s is missing, and a part of the state of %s is in it%s: put it back, or "
        "name its new directory as an ssd path of the machine",
        path.DataPath(), OfHost(disk, wanted), home().directory(),
        data.ok() ? "" : absl::StrCat(" (", data.status().message(), ")")));
  path.Identify(wanted.id, (*data)->bytes);
  if (absl::Status status = path.Lock(undo); !status.ok())
    return status;
  notes.push_back(absl::StrFormat("%s is no longer among the ssd paths: its part of the state is "
                                  "read there, and written to the others",
                                  path.directory()));
  paths.push_back(std::move(path));
  return absl::OkStatus();
}

/// The parts of a state and of its copy have the same identities. The last places of the parts
/// tell which is which, so that they are not mixed.
absl::Status StatePaths::RefuseCopy(const Manifest &manifest, const std::vector<SavedPath> &known,
                                    const std::vector<int32_t> &place) const {
  bool copied = false;
  if (manifest.home != home().real()) {
    absl::StatusOr<ReadManifests> first = ReadRoot(disk, manifest.home);
    copied = first.ok() && first->manifest.state == manifest.state; // else moved
  }
  for (size_t saved = 0; saved < place.size(); ++saved) {
    if (place[saved] <= 0)
      continue;
    const StatePath &path = paths[size_t(place[saved])];
    const std::string &before = known[saved].directory;
    if (copied && path.real() == before)
      return absl::FailedPreconditionError(absl::StrFormat(
          "%s is a copy of the state in %s, and %s belongs to the original: copy "
          "that directory too and name the copy in the machine's ssd, or resume the state in %s",
          home().directory(), manifest.home, path.directory(), manifest.home));
    if (copied || path.real() == before)
      continue;
    absl::StatusOr<std::optional<FoundData>> other = FindData(disk, before);
    if (other.ok() && *other && (*other)->head.state == manifest.state &&
        (*other)->head.path == path.id())
      return absl::FailedPreconditionError(
          absl::StrFormat("%s and %s hold the same part of the state of %s, so one is a copy: name "
                          "%s, its last place; if it was moved from there, remove the files `data` "
                          "and `lock` there",
                          path.directory(), before, home().directory(), before));
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Data files
//===----------------------------------------------------------------------===//

/// Checks each disk for all the paths that lie on it.
absl::Status StatePaths::CheckSpace(const std::vector<int64_t> &bytes,
                                    const std::vector<int64_t> &now, int64_t spare) const {
  struct Need {
    int64_t needed = 0, free = 0;
    std::string directory;
  };
  std::map<uint64_t, Need> needs;
  for (size_t i = 0; i < given_count; ++i) {
    const StatePath &path = paths[i];
    absl::StatusOr<DeviceSpace> space = disk.Space(path.directory());
    if (!space.ok())
      return space.status();
    Need &need = needs[space->device];
    if (need.directory.empty()) {
      need.directory = path.directory();
      need.needed = spare;
    }
    need.needed += std::max<int64_t>(bytes[i] - now[i], 0);
    need.free = space->free_bytes;
    if (bytes[i] >= kMostFileBytes)
      return absl::ResourceExhaustedError(absl::StrFormat(
          "the state needs more than %d TiB in %s, and a file holds no more: keep fewer commits",
          kMostFileBytes >> 40, path.directory()));
  }
  for (const auto &[device, need] : needs)
    if (need.needed > need.free)
      return absl::ResourceExhaustedError(absl::StrFormat(
          "the disk of %s is too full: the state needs %d MiB and %d MiB are free; free %d MiB or "
          "name another directory",
          need.directory, need.needed >> 20, need.free >> 20,
          ((need.needed - need.free) >> 20) + 1));
  return absl::OkStatus();
}

absl::Status StatePaths::OpenData(const std::string &state,
                                  const std::function<bool()> &interrupted,
                                  std::vector<std::string> &notes) {
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].found_bytes() == 0)
      continue;
    const bool write = i < given_count;
    if (absl::Status status = paths[i].OpenData(state, write); !status.ok())
      return status;
    if (!write)
      continue;
    if (absl::Status status = paths[i].LockData(disk, interrupted, notes); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

/// Says which files of a path others may open: those that an older version made, or that a user
/// shares. Who may read a file may also lock it, and so keep commits alive or a trainer out.
static absl::Status NoteOfPermissions(const StatePath &path, std::vector<std::string> &notes) {
  std::vector<std::string> names;
  for (const char *name : {"lock", "data", kManifest, kManifestCopy}) {
    absl::StatusOr<std::unique_ptr<OpenFile>> file = path.folder()->Open(name, {});
    if (absl::IsNotFound(file.status())) // but for the home, no path has a manifest
      continue;
    if (!file.ok())
      return file.status();
    absl::StatusOr<int> permissions = (*file)->Permissions();
    if (!permissions.ok())
      return permissions.status();
    if ((*permissions & 077) != 0)
      names.push_back(name);
  }
  if (!names.empty())
    notes.push_back(absl::StrFormat("%s: other users may open %s, and can then hold its commits or "
                                    "keep a training out; `chmod go=` forbids it",
                                    path.directory(), absl::StrJoin(names, ", ")));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>>
StatePaths::MakeData(const Manifest &manifest, const std::vector<int64_t> &bytes, Undo &undo,
                     const std::function<bool()> &interrupted, std::vector<std::string> &notes) {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < paths.size(); ++i) {
    StatePath &path = paths[i];
    if (path.found_bytes() == 0) {
      if (absl::Status status = path.MakeData(manifest.state, manifest.home, undo); !status.ok())
        return status;
      if (absl::Status status = path.LockData(disk, interrupted, notes); !status.ok())
        return status;
    }
    int64_t &size = sizes.emplace_back(path.found_bytes() / kStateBlock * kStateBlock);
    if (i < given_count) {
      // The process that made the file may have died before its name was durable.
      if (absl::Status status = path.folder()->Sync(); !status.ok())
        return status;
      // Reserves all of it: a file that was copied has holes where nothing stands.
      size = std::max(size, bytes[i]);
      if (absl::Status status = path.data().Reserve(size); !status.ok())
        return status;
    }
    if (absl::Status status = NoteOfPermissions(path, notes); !status.ok())
      return status;
    if (const absl::Status &bytes = path.BytesLocked(); !bytes.ok() && !absl::IsUnavailable(bytes))
      notes.push_back(absl::StrCat(
          path.directory(),
          ": no process can read a commit while this training runs: ", bytes.message()));
    if (std::string degraded = path.data().Degraded(); !degraded.empty())
      notes.push_back(absl::StrCat(path.directory(), ": ", degraded));
  }
  return sizes;
}

absl::Status StatePaths::SyncData() const {
  for (size_t i = 0; i < given_count; ++i)
    if (absl::Status status = paths[i].data().Sync(); !status.ok())
      return status;
  return absl::OkStatus();
}

} // namespace boa
