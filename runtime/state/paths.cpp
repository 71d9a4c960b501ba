//===- paths.cpp - The directories of a state -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whose a directory is, who uses it, and the space that it gives. A data file is
// taken only if its head has this state's identity and that of one of its paths;
// everything else is refused and left as it is. The lock is held from before the
// first look until the process ends.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/impl.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <map>
#include <unistd.h>

namespace boa {
namespace {

constexpr char kLockMark[] = "boa trainer, process ";
constexpr size_t kLockBytes = 40; // padded, so that a new one covers the old

absl::Status Unwritable(const absl::Status &status) {
  if (status.ok())
    return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(),
                                   "; name another directory with --state or in the machine's "
                                   "ssd, or permit writing to this one"));
}

/// How many of the bytes each path takes, in parts.
std::vector<double> StripeWeights(const Machine &machine, size_t paths) {
  bool reads = machine.ssd.size() >= paths, writes = reads;
  for (size_t path = 0; path < paths && path < machine.ssd.size(); ++path) {
    reads &= machine.ssd[path].read > 0;
    writes &= machine.ssd[path].write > 0;
  }
  std::vector<double> weights(paths, 1);
  for (size_t path = 0; path < paths && (reads || writes); ++path) {
    double time = 0; // to read and write one byte
    if (reads)
      time += 1 / double(machine.ssd[path].read);
    if (writes)
      time += 1 / double(machine.ssd[path].write);
    weights[path] = 1 / time;
  }
  return weights;
}

std::string ParentOf(const std::string &path) {
  size_t slash = path.find_last_of('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// The head of the data file in a directory; nothing: there is no such file.
absl::StatusOr<std::optional<DataHead>> HeadOf(FileSystem &disk, const std::string &path) {
  absl::StatusOr<PathKind> kind = disk.Kind(path);
  if (!kind.ok())
    return kind.status();
  if (*kind == PathKind::nothing)
    return std::nullopt;
  absl::Status foreign = absl::AlreadyExistsError(
      absl::StrCat(path, " exists and is not of a training: move it away, or choose another "
                         "directory"));
  if (*kind != PathKind::file)
    return foreign;
  absl::StatusOr<std::unique_ptr<OpenFile>> file = disk.Open(path, {});
  if (!file.ok())
    return file.status();
  std::string block(kStateBlock, '\0');
  absl::StatusOr<int64_t> size = (*file)->Size();
  if (!size.ok())
    return size.status();
  if (*size < kStateBlock)
    return foreign;
  if (absl::Status status = (*file)->Read(0, block.data(), kStateBlock); !status.ok())
    return status;
  absl::StatusOr<DataHead> head = ParseHead(block, path);
  if (absl::IsFailedPrecondition(head.status()) && block.rfind("{\"format\"", 0) != 0)
    return foreign;
  if (!head.ok())
    return head.status();
  return *head;
}

} // namespace

/// In reverse, and durable before the next: a data file never stays behind without
/// the manifest that says whose it is.
Undo::~Undo() {
  for (auto path = files.rbegin(); path != files.rend(); ++path) {
    absl::Status status = disk.Unlink(*path);
    if (status.ok())
      status = disk.SyncDirectory(ParentOf(*path));
    if (!status.ok() && !absl::IsNotFound(status))
      return;
  }
  for (auto path = directories.rbegin(); path != directories.rend(); ++path)
    disk.RemoveDirectory(*path).IgnoreError();
}

absl::StatusOr<std::unique_ptr<StateStore::Impl>>
StateStore::Impl::Make(FileSystem &disk, const Program &program,
                       const std::vector<std::string> &directories, int64_t keep) {
  if (directories.empty())
    return absl::InvalidArgumentError("a state needs at least one directory");
  auto impl = std::make_unique<Impl>(disk);
  impl->keep = std::max<int64_t>(keep, 1);
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

/// With all their parents. One that is there may have been made by a process that
/// was killed before it synced it: so could the innermost of those.
absl::Status StateStore::Impl::MakeDirectories(Undo &undo) {
  for (const StatePath &path : paths) {
    std::string there;
    for (size_t end = path.directory.find('/', 1);; end = path.directory.find('/', end + 1)) {
      std::string part = path.directory.substr(0, end);
      absl::Status status = disk.MakeDirectory(part);
      if (status.ok()) {
        undo.AddDirectory(part);
        status = disk.SyncDirectory(ParentOf(part));
      } else if (absl::IsAlreadyExists(status)) {
        there = part;
        status = absl::OkStatus();
      }
      if (!status.ok())
        return Unwritable(status);
      if (end == std::string::npos)
        break;
    }
    // Whoever may not read the parent has not made it.
    absl::Status status = there.empty() ? absl::OkStatus() : disk.SyncDirectory(ParentOf(there));
    if (!status.ok() && !absl::IsPermissionDenied(status))
      return status;
  }
  return absl::OkStatus();
}

absl::Status StateStore::Impl::ResolvePaths() {
  std::map<std::string, std::string> seen;
  for (StatePath &path : paths) {
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

/// `undo`: removes a lock file that was not there before.
absl::Status StateStore::Impl::LockPath(StatePath &path, Undo *undo) {
  std::string name = path.directory + "/lock";
  absl::StatusOr<PathKind> before = disk.Kind(name);
  if (!before.ok())
    return before.status();
  absl::StatusOr<std::unique_ptr<OpenFile>> lock = disk.Lock(name);
  if (absl::IsUnavailable(lock.status())) {
    absl::StatusOr<std::string> text = ReadSmallFile(disk, name);
    std::string holder = "another process";
    absl::string_view rest = text.ok() ? absl::string_view(*text) : absl::string_view();
    if (absl::ConsumePrefix(&rest, kLockMark))
      holder = absl::StrCat("process ", rest.substr(0, rest.find_first_of(" \n")));
    return absl::UnavailableError(absl::StrFormat(
        "%s is in use by %s: wait until it ends, or stop it", path.directory, holder));
  }
  if (!lock.ok())
    return Unwritable(lock.status());
  absl::StatusOr<int64_t> size = (*lock)->Size();
  if (!size.ok())
    return size.status();
  std::string mark(std::min(*size, int64_t(sizeof(kLockMark) - 1)), '\0');
  if (absl::Status status = (*lock)->Read(0, mark.data(), int64_t(mark.size())); !status.ok())
    return status;
  // What a crash left of one may be empty, or zeros.
  if (mark != kLockMark && mark.find_first_not_of('\0') != std::string::npos)
    return absl::AlreadyExistsError(
        absl::StrCat(name, " is not the lock of a trainer: choose another directory"));
  if (undo && *before == PathKind::nothing)
    undo->AddFile(name);
  std::string text = absl::StrCat(kLockMark, getpid());
  text.resize(kLockBytes - 1, ' ');
  text += '\n';
  if (absl::Status status = (*lock)->Write(0, text.data(), int64_t(text.size())); !status.ok())
    return Unwritable(status);
  path.lock = *std::move(lock);
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Which path is which
//===----------------------------------------------------------------------===//

/// Gives each path its identity, finds those that are not given but still hold
/// something, and renumbers the places in the manifest. Changes nothing on disk.
absl::Status StateStore::Impl::FindPaths() {
  std::vector<int32_t> place(manifest.paths.size(), -1); // by index in the manifest
  for (size_t i = 0; i < paths.size(); ++i) {
    StatePath &path = paths[i];
    absl::StatusOr<std::optional<DataHead>> head = HeadOf(disk, path.DataPath());
    if (!head.ok())
      return head.status();
    if (!*head) {
      path.id = absl::StrFormat("%016x", disk.Unique());
      continue;
    }
    path.id = (*head)->path;
    auto saved = std::find_if(manifest.paths.begin(), manifest.paths.end(),
                              [&](const SavedPath &other) { return other.id == path.id; });
    if ((*head)->state != manifest.state || saved == manifest.paths.end())
      return absl::AlreadyExistsError(absl::StrFormat(
          "%s belongs to another training, which was begun in %s: name another directory; if that "
          "training is no more, remove the files `data` and `lock` there",
          path.directory, (*head)->home.empty() ? "a directory of a long name" : (*head)->home));
    int32_t &at = place[size_t(saved - manifest.paths.begin())];
    if (at >= 0)
      return absl::InvalidArgumentError(
          absl::StrFormat("%s and %s are copies of one path of the state: give one of them",
                          paths[size_t(at)].directory, path.directory));
    at = int32_t(i);
  }
  std::vector<bool> needed(manifest.paths.size());
  for (const SavedCommit &commit : manifest.commits)
    for (const SavedTable &table : commit.tables)
      for (const SavedChunk &chunk : table.chunks)
        needed[size_t(chunk.extent.file)] = true;
  for (size_t saved = 0; saved < needed.size(); ++saved)
    if (needed[saved] && place[saved] < 0) {
      if (absl::Status status = FindUngivenPath(saved); !status.ok())
        return status;
      place[saved] = int32_t(paths.size()) - 1;
    }
  if (absl::Status status = RefuseCopy(place); !status.ok())
    return status;
  for (SavedCommit &commit : manifest.commits)
    for (SavedTable &table : commit.tables)
      for (SavedChunk &chunk : table.chunks)
        chunk.extent.file = place[size_t(chunk.extent.file)];
  manifest.home = paths[0].real;
  // Those that are left are still known, so that they may be taken into use again.
  std::vector<SavedPath> known;
  for (const StatePath &path : paths)
    known.push_back({path.id, path.real});
  for (size_t saved = 0; saved < place.size() && known.size() < kMaxPaths; ++saved)
    if (place[saved] < 0)
      known.push_back(manifest.paths[saved]);
  manifest.paths = std::move(known);
  return absl::OkStatus();
}

/// One that the machine no longer names, where it stood last.
absl::Status StateStore::Impl::FindUngivenPath(size_t saved) {
  const SavedPath &wanted = manifest.paths[saved];
  StatePath path;
  path.directory = path.real = wanted.directory;
  path.id = wanted.id;
  path.given = false;
  absl::StatusOr<std::optional<DataHead>> head = HeadOf(disk, path.DataPath());
  if (!head.ok() || !*head || (*head)->state != manifest.state || (*head)->path != wanted.id)
    return absl::NotFoundError(
        absl::StrFormat("%s is missing, which holds a part of the state of %s%s: put it back, or "
                        "name the directory "
                        "in which it is now as an ssd path of the machine",
                        path.DataPath(), paths[0].directory,
                        head.ok() ? "" : absl::StrCat(" (", head.status().message(), ")")));
  if (absl::Status status = LockPath(path, nullptr); !status.ok())
    return status;
  notes.push_back(absl::StrFormat("%s is no longer among the ssd paths: its part of the state is "
                                  "read there, and written to the others",
                                  path.directory));
  paths.push_back(std::move(path));
  links.push_back({});
  return absl::OkStatus();
}

/// A home that was copied, not moved, would share the other paths with the first.
absl::Status StateStore::Impl::RefuseCopy(const std::vector<int32_t> &place) const {
  const std::string &home = paths[0].real;
  if (manifest.home == home)
    return absl::OkStatus();
  absl::StatusOr<ReadManifests> first = ReadManifest(disk, manifest.home);
  if (!first.ok() || first->manifest.state != manifest.state)
    return absl::OkStatus(); // moved
  for (size_t saved = 0; saved < place.size(); ++saved)
    if (place[saved] > 0 && paths[size_t(place[saved])].real == manifest.paths[saved].directory)
      return absl::FailedPreconditionError(absl::StrFormat(
          "%s is a copy of the state in %s and would write to %s, which belongs to that one: copy "
          "this directory too and name the copy in the machine's ssd, or resume the state in %s",
          paths[0].directory, manifest.home, paths[size_t(place[saved])].directory, manifest.home));
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Data files
//===----------------------------------------------------------------------===//

/// Checks each disk for all the paths that lie on it.
absl::Status StateStore::Impl::CheckSpace() const {
  struct Need {
    int64_t needed = 0, free = 0;
    std::string directory;
  };
  std::map<uint64_t, Need> needs;
  std::vector<int64_t> bytes = BytesNeeded();
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!paths[i].given)
      continue;
    absl::StatusOr<DeviceSpace> space = disk.Space(paths[i].directory);
    if (!space.ok())
      return space.status();
    int64_t there = 0;
    if (auto file = disk.Open(paths[i].DataPath(), {}); file.ok())
      there = (*file)->Size().value_or(0);
    Need &need = needs[space->device];
    if (need.directory.empty())
      need.directory = paths[i].directory;
    need.needed += std::max<int64_t>(bytes[i] - there, 0);
    need.free = space->free_bytes;
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

/// Makes what is not there yet, and reserves the space of all. The manifest names
/// the new ones already: a data file is never without an owner.
absl::Status StateStore::Impl::OpenData(Undo &undo) {
  std::vector<int64_t> needed = BytesNeeded();
  for (size_t i = 0; i < paths.size(); ++i) {
    StatePath &path = paths[i];
    absl::StatusOr<PathKind> kind = disk.Kind(path.DataPath());
    if (!kind.ok())
      return kind.status();
    if (*kind == PathKind::nothing) {
      undo.AddFile(path.DataPath());
      absl::Status status = ReplaceFile(disk, path.directory, "data",
                                        FormatHead({manifest.state, path.id, manifest.home}));
      if (!status.ok())
        return Unwritable(status);
    } else if (path.given) {
      // Whoever made it may have been killed before its name was durable.
      if (absl::Status status = disk.SyncDirectory(path.directory); !status.ok())
        return status;
    }
    OpenMode mode;
    mode.write = path.given;
    mode.direct = true;
    absl::StatusOr<std::unique_ptr<OpenFile>> data = disk.Open(path.DataPath(), mode);
    if (!data.ok())
      return data.status();
    path.data = *std::move(data);
    absl::StatusOr<int64_t> size = path.data->Size();
    if (!size.ok())
      return size.status();
    path.bytes = *size / kStateBlock * kStateBlock;
    if (path.given && path.bytes < needed[i]) {
      if (absl::Status status = path.data->Reserve(needed[i]); !status.ok())
        return status;
      path.bytes = needed[i];
    }
    if (std::string degraded = path.data->Degraded(); !degraded.empty())
      notes.push_back(absl::StrCat(path.directory, ": ", degraded));
    files.push_back({path.data->descriptor(), path.DataPath(), int32_t(i)});
  }
  return absl::OkStatus();
}

} // namespace boa
