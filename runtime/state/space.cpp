//===- space.cpp - The data files of a state ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file is made under its final name only when it says whose it is, and all of
// its space is reserved before the first step.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/impl.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <map>

namespace boa {

absl::Status Unwritable(const absl::Status &status) {
  if (status.ok())
    return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(),
                                   "; name another directory with --state or in the machine's "
                                   "ssd, or permit writing to this one"));
}

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
    Need &need = needs[space->device];
    if (need.directory.empty())
      need.directory = paths[i].directory;
    need.needed += std::max<int64_t>(bytes[i] - paths[i].bytes, 0);
    need.free = space->free_bytes;
    if (bytes[i] >= kMostFileBytes)
      return absl::ResourceExhaustedError(absl::StrFormat(
          "the state needs more than %d TiB in %s, and a file holds no more: keep fewer commits",
          kMostFileBytes >> 40, paths[i].directory));
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

/// A killed process may still have writes under way. The lock of its data file lasts until
/// they have landed; kLock, which has no transfers, is free at once.
absl::Status StateStore::Impl::LockData(StatePath &path) {
  constexpr std::chrono::milliseconds kPoll(10), kTold(1000), kLongest(60000);
  for (std::chrono::milliseconds waited(0);; waited += kPoll) {
    absl::Status status = path.data->Lock();
    if (status.ok() && waited >= kTold)
      notes.push_back(absl::StrFormat("%s: waited %d s for the last writes of an ended process",
                                      path.directory, waited.count() / 1000));
    if (!absl::IsUnavailable(status))
      return status;
    if (options.interrupted && options.interrupted())
      return absl::CancelledError(
          absl::StrFormat("interrupted while writes of an ended process to %s had not landed: the "
                          "state is as it was",
                          path.DataPath()));
    if (waited == kLongest)
      return absl::UnavailableError(absl::StrFormat(
          "%s is in use by another process, or writes of an ended one have not landed in %d s: end "
          "that process, or wait for the disk, then try again",
          path.DataPath(), kLongest.count() / 1000));
    disk.Wait(kPoll);
  }
}

/// Opens a data file for as long as the state is open. The head is that of this file,
/// whatever stood under the name before.
absl::Status StateStore::Impl::OpenData(StatePath &path) {
  OpenMode mode;
  mode.write = path.given;
  mode.direct = true;
  absl::StatusOr<std::unique_ptr<OpenFile>> data = path.folder->Open(kData, mode);
  if (!data.ok())
    return data.status();
  path.data = *std::move(data);
  absl::StatusOr<DataHead> head = ReadHead(*path.data, kStateBlock);
  if (!head.ok())
    return head.status();
  if (head->state != manifest.state || head->path != path.id)
    return OfAnother(path.directory, *head);
  return path.given ? LockData(path) : absl::OkStatus(); // this process writes to no other
}

/// Opens the data files that exist. Nothing is changed before their last writes have landed.
absl::Status StateStore::Impl::OpenData() {
  for (StatePath &path : paths)
    if (path.bytes > 0)
      if (absl::Status status = OpenData(path); !status.ok())
        return status;
  return absl::OkStatus();
}

/// Makes what is not there yet, and reserves the space of all. The manifest names
/// the new ones already: a data file is never without an owner.
absl::Status StateStore::Impl::MakeData(Undo &undo) {
  std::vector<int64_t> needed = BytesNeeded();
  for (size_t i = 0; i < paths.size(); ++i) {
    StatePath &path = paths[i];
    if (path.bytes == 0) {
      undo.AddFile(path.folder, kData);
      absl::Status status =
          ReplaceFile(*path.folder, kData, FormatHead({manifest.state, path.id, manifest.home}));
      if (!status.ok())
        return Unwritable(status);
      if (status = OpenData(path); !status.ok())
        return status;
    }
    path.bytes = path.bytes / kStateBlock * kStateBlock;
    if (path.given) {
      // Whoever made the file may have died before its name was durable.
      if (absl::Status status = path.folder->Sync(); !status.ok())
        return status;
      // All of it: a file that was copied has holes where nothing stands.
      path.bytes = std::max(path.bytes, needed[i]);
      if (absl::Status status = path.data->Reserve(path.bytes); !status.ok())
        return status;
    }
    if (std::string degraded = path.data->Degraded(); !degraded.empty())
      notes.push_back(absl::StrCat(path.directory, ": ", degraded));
    files.push_back({path.data->descriptor(), path.DataPath(), int32_t(i)});
  }
  return absl::OkStatus();
}

} // namespace boa
