//===- simulated_disk.cpp - Names on a simulated disk ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/simulation/simulated_impl.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <cerrno>

namespace boa {

using simulated::Error;
using simulated::Inode;
using simulated::InodeRef;
using simulated::kPageBytes;
using simulated::LateWrite;
using simulated::NameChange;
using simulated::Place;
using simulated::Where;

namespace {

/// The parts of a path. There are no links, so ".." is what stands before it.
std::vector<std::string> Split(const std::string &path) {
  std::vector<std::string> parts;
  for (absl::string_view part : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (part == "..") {
      if (!parts.empty())
        parts.pop_back();
    } else if (part != ".") {
      parts.emplace_back(part);
    }
  }
  return parts;
}

/// All that is under a directory, in order of names.
void Walk(const InodeRef &directory, const std::string &path,
          const std::function<void(const std::string &, Inode &)> &visit) {
  for (const auto &[name, inode] : directory->entries) {
    visit(path + "/" + name, *inode);
    if (inode->directory)
      Walk(inode, path + "/" + name, visit);
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// Impl
//===----------------------------------------------------------------------===//

SimulatedDisk::Impl::Impl(uint64_t seed) : random(seed), root(std::make_shared<Inode>()) {
  root->directory = true;
  devices.push_back({std::numeric_limits<int64_t>::max(), std::chrono::microseconds(50), {}});
}

Place SimulatedDisk::Impl::Locate(const std::string &path, const InodeRef &from) const {
  std::vector<std::string> parts = Split(path);
  Place place{nullptr, from ? from : root, "", 0};
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!place.inode || !place.inode->directory)
      return {nullptr, nullptr, "", place.inode ? ENOTDIR : ENOENT};
    place.directory = place.inode;
    place.name = parts[i];
    auto found = place.directory->entries.find(parts[i]);
    place.inode = found == place.directory->entries.end() ? nullptr : found->second;
  }
  return place;
}

InodeRef SimulatedDisk::Impl::Find(const std::string &path) const { return Locate(path).inode; }

void SimulatedDisk::Impl::ChangeNames(std::vector<NameChange::Entry> entries) {
  for (const NameChange::Entry &entry : entries) {
    if (entry.now)
      entry.directory->entries[entry.name] = entry.now;
    else
      entry.directory->entries.erase(entry.name);
  }
  unsynced_names.push_back({std::move(entries)});
}

/// With all changes that have a directory in common with these: one that moves a
/// name from one directory to another is never half done.
absl::Status SimulatedDisk::Impl::SyncNames(const InodeRef &directory, const std::string &path) {
  std::set<Inode *> concerned{directory.get()};
  for (auto change = unsynced_names.rbegin(); change != unsynced_names.rend(); ++change)
    if (change->Concerns(concerned))
      for (const NameChange::Entry &entry : change->entries)
        concerned.insert(entry.directory.get());
  const bool fails = Strikes(Fault::failed_sync, directory->device, path);
  std::vector<NameChange> others;
  for (NameChange &change : unsynced_names) {
    if (!change.Concerns(concerned))
      others.push_back(std::move(change));
    else if (!fails || random.Chance(0.5))
      change.Apply();
  }
  unsynced_names = std::move(others);
  return fails ? Error(EIO, "sync directory", path) : absl::OkStatus();
}

void SimulatedDisk::Impl::LosePower() {
  for (const NameChange &change : unsynced_names)
    if (random.Chance(0.5))
      change.Apply();
  unsynced_names.clear();
  std::function<void(Inode &)> settle = [&](Inode &inode) {
    if (!inode.directory)
      return inode.LosePower(random);
    inode.entries = inode.durable_entries;
    for (auto &[name, entry] : inode.entries)
      settle(*entry);
  };
  settle(*root);
}

void SimulatedDisk::Impl::Die(Fault how) {
  if (dead)
    return;
  ++counts[how];
  Log(FaultName(how));
  for (simulated::InFlight *backend : backends)
    backend->Die();
  dead = true;
  ++deaths;
  handles.clear();
  if (how == Fault::power_loss) {
    LandLateWrites(/*all=*/true);
    LosePower();
  }
  ForEachFile([&](const std::string &, Inode &inode) {
    if (std::none_of(late_writes.begin(), late_writes.end(),
                     [&](const LateWrite &write) { return write.fd == inode.lock_holder; }))
      inode.lock_holder = -1;
    inode.byte_locks.clear();
  });
}

void SimulatedDisk::Impl::ForEachFile(
    const std::function<void(const std::string &, Inode &)> &visit) const {
  Walk(root, "", [&](const std::string &path, Inode &inode) {
    if (!inode.directory)
      visit(path, inode);
  });
}

//===----------------------------------------------------------------------===//
// SimulatedDisk
//===----------------------------------------------------------------------===//

SimulatedDisk::SimulatedDisk(uint64_t seed) : impl(std::make_unique<Impl>(seed)) {}
SimulatedDisk::~SimulatedDisk() = default;

SimulatedDisk::SimulatedDisk(const SimulatedDisk &other, uint64_t seed) : SimulatedDisk(seed) {
  impl->devices = other.impl->devices;
  std::map<InodeRef, InodeRef> copies; // pages are shared until they are written
  std::function<InodeRef(const InodeRef &)> copy = [&](const InodeRef &inode) {
    InodeRef &made = copies[inode];
    if (!made) {
      made = std::make_shared<Inode>(*inode);
      for (auto *entries : {&made->entries, &made->durable_entries})
        for (auto &[name, entry] : *entries)
          entry = copy(entry);
    }
    return copies[inode];
  };
  impl->root = copy(other.impl->root);
  for (NameChange change : other.impl->unsynced_names) {
    for (NameChange::Entry &entry : change.entries)
      entry = {copy(entry.directory), entry.name, entry.now ? copy(entry.now) : nullptr};
    impl->unsynced_names.push_back(std::move(change));
  }
}

void SimulatedDisk::AddDevice(const std::string &directory, int64_t bytes,
                              std::chrono::nanoseconds latency) {
  Place place = impl->Locate(directory);
  auto inode = std::make_shared<Inode>();
  inode->directory = true;
  inode->device = impl->devices.size();
  impl->devices.push_back({bytes, latency, {}});
  place.directory->entries[place.name] = place.directory->durable_entries[place.name] = inode;
}

void SimulatedDisk::SetSpace(const std::string &path, int64_t bytes) {
  impl->devices[impl->Find(path)->device].bytes = bytes;
}

void SimulatedDisk::SetRates(const FaultRates &rates) {
  for (simulated::Device &device : impl->devices)
    device.rates = rates;
  if (rates[Fault::lasting_error] == 0)
    impl->ForEachFile([](const std::string &, Inode &inode) { inode.failing.clear(); });
}

void SimulatedDisk::SetRates(const std::string &path, const FaultRates &rates) {
  const size_t device = impl->Find(path)->device;
  impl->devices[device].rates = rates;
  if (rates[Fault::lasting_error] == 0)
    impl->ForEachFile([&](const std::string &, Inode &inode) {
      if (inode.device == device)
        inode.failing.clear();
    });
}

void SimulatedDisk::DieAt(int64_t operation, Fault how) {
  impl->die_at = operation > 0 ? impl->operations + operation : 0;
  impl->die_how = how;
}

void SimulatedDisk::PowerLoss() { impl->Die(Fault::power_loss); }
void SimulatedDisk::Kill() { impl->Die(Fault::kill); }
bool SimulatedDisk::Dead() const { return impl->dead; }
void SimulatedDisk::Restart() { impl->dead = false; }

const FaultCounts &SimulatedDisk::Counts() const { return impl->counts; }
int64_t SimulatedDisk::Operations() const { return impl->operations; }
std::chrono::nanoseconds SimulatedDisk::Now() const { return impl->now.time_since_epoch(); }
void SimulatedDisk::SetLog(std::function<void(const std::string &)> log) {
  impl->log = std::move(log);
}

std::set<std::string> SimulatedDisk::Damaged() const {
  std::set<std::string> paths;
  impl->ForEachFile([&](const std::string &path, Inode &inode) {
    if (!inode.damaged.empty())
      paths.insert(path);
  });
  return paths;
}

std::vector<std::string> SimulatedDisk::Files() const {
  std::vector<std::string> paths;
  impl->ForEachFile([&](const std::string &path, Inode &) { paths.push_back(path); });
  return paths;
}

absl::Status SimulatedDisk::Flip(const std::string &path, int64_t offset, uint8_t mask) {
  InodeRef inode = impl->Find(path);
  if (!inode || inode->directory || offset < 0 || offset >= inode->size)
    return absl::InvalidArgumentError(absl::StrFormat("no byte %d in %s", offset, path));
  impl->Log("flip of ", int(mask), " at offset ", offset, " of ", path);
  for (simulated::Contents *contents : {&inode->now, &inode->durable})
    contents->Flip(offset, mask);
  inode->MarkDamaged(offset, 1);
  inode->durable_damaged.insert(offset / kPageBytes);
  return absl::OkStatus();
}

absl::StatusOr<PathKind> SimulatedDisk::Impl::Kind(const Where &where) {
  if (int error = Begin("query", where.shown, 0))
    return Error(error, "query", where.shown);
  InodeRef inode = Locate(where).inode;
  return !inode ? PathKind::nothing : inode->directory ? PathKind::directory : PathKind::file;
}

absl::StatusOr<PathKind> SimulatedDisk::Kind(const std::string &path) {
  return impl->Kind({nullptr, path, path});
}

absl::StatusOr<std::string> SimulatedDisk::RealPath(const std::string &path) {
  int error = impl->Begin("find", path, 0);
  Place place = impl->Locate(path);
  if (error == 0)
    error = place.error != 0 ? place.error : place.inode ? 0 : ENOENT;
  if (error != 0)
    return Error(error, "find", path);
  return "/" + absl::StrJoin(Split(path), "/");
}

absl::Status SimulatedDisk::MakeDirectory(const std::string &path) {
  int error = impl->Begin("make directory", path, 0);
  Place place = impl->Locate(path);
  if (error == 0)
    error = place.error != 0 ? place.error : place.inode ? EEXIST : 0;
  if (error == 0 && impl->Strikes(Fault::io_error, place.directory->device, path))
    error = EIO;
  if (error == 0 && impl->Strikes(Fault::no_space, place.directory->device, path))
    error = ENOSPC;
  if (error != 0)
    return Error(error, "make directory", path);
  auto inode = std::make_shared<Inode>();
  inode->directory = true;
  inode->device = place.directory->device;
  impl->ChangeNames({{place.directory, place.name, inode}});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::RemoveDirectory(const std::string &path) {
  int error = impl->Begin("remove directory", path, 0);
  Place place = impl->Locate(path);
  if (error == 0)
    error = place.error != 0                                            ? place.error
            : !place.inode                                              ? ENOENT
            : !place.inode->directory                                   ? ENOTDIR
            : !place.inode->entries.empty()                             ? ENOTEMPTY
            : !place.directory                                          ? EBUSY
            : place.inode->device != place.directory->device            ? EBUSY
            : impl->Strikes(Fault::io_error, place.inode->device, path) ? EIO
                                                                        : 0;
  if (error != 0)
    return Error(error, "remove directory", path);
  impl->ChangeNames({{place.directory, place.name, nullptr}});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Impl::Rename(const Where &from, const Where &to) {
  int error = Begin("rename", from.shown, 0);
  Place source = Locate(from), target = Locate(to);
  if (error == 0)
    error = source.error ? source.error : target.error;
  if (error == 0)
    error = !source.inode                                               ? ENOENT
            : !source.directory || !target.directory                    ? EBUSY
            : source.directory->device != target.directory->device      ? EXDEV
            : source.inode->device != source.directory->device          ? EBUSY
            : !target.inode                                             ? 0
            : target.inode->directory && !source.inode->directory       ? EISDIR
            : !target.inode->directory && source.inode->directory       ? ENOTDIR
            : target.inode->directory && !target.inode->entries.empty() ? ENOTEMPTY
                                                                        : 0;
  if (error == 0 && Strikes(Fault::io_error, source.directory->device, to.shown))
    error = EIO;
  if (error != 0)
    return Error(error, absl::StrCat("rename ", from.shown, " to"), to.shown);
  if (source.inode != target.inode)
    ChangeNames(
        {{source.directory, source.name, nullptr}, {target.directory, target.name, source.inode}});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Rename(const std::string &from, const std::string &to) {
  return impl->Rename({nullptr, from, from}, {nullptr, to, to});
}

absl::Status SimulatedDisk::Impl::Unlink(const Where &where) {
  int error = Begin("remove", where.shown, 0);
  Place place = Locate(where);
  if (error == 0)
    error = place.error != 0                                             ? place.error
            : !place.inode                                               ? ENOENT
            : place.inode->directory                                     ? EISDIR
            : Strikes(Fault::io_error, place.inode->device, where.shown) ? EIO
                                                                         : 0;
  if (error != 0)
    return Error(error, "remove", where.shown);
  ChangeNames({{place.directory, place.name, nullptr}});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Unlink(const std::string &path) {
  return impl->Unlink({nullptr, path, path});
}

uint64_t SimulatedDisk::Unique() { return impl->random.Next(); }
void SimulatedDisk::Wait(std::chrono::nanoseconds time) {
  impl->now += time;
  impl->LandLateWrites(/*all=*/false);
}

absl::StatusOr<DeviceSpace> SimulatedDisk::Space(const std::string &directory) {
  int error = impl->Begin("query the free space of", directory, 0);
  Place place = impl->Locate(directory);
  if (error == 0)
    error = place.error != 0 ? place.error : place.inode ? 0 : ENOENT;
  if (error != 0)
    return Error(error, "query the free space of", directory);
  return DeviceSpace{place.inode->device + 1, impl->FreePages(place.inode->device) * kPageBytes};
}

} // namespace boa
