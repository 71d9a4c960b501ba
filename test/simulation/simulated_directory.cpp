//===- simulated_directory.cpp - Open directories of a simulated disk -----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/simulation/simulated_impl.h"

#include <cerrno>

namespace boa {

using simulated::Error;
using simulated::Handle;
using simulated::InodeRef;
using simulated::Place;
using simulated::Where;

namespace {

/// Of one process: after that has died, all calls fail.
class SimulatedDirectory : public Directory {
public:
  SimulatedDirectory(SimulatedDisk::Impl &disk, InodeRef inode, std::string path)
      : disk(disk), inode(std::move(inode)), name(std::move(path)), born(disk.deaths) {}

  const std::string &path() const override { return name; }
  absl::StatusOr<bool> IsCurrent() const override {
    if (int error = Begin("query", name))
      return Error(error, "query", name);
    return disk.Find(name) == inode;
  }
  absl::StatusOr<bool> Names(const std::string &entry, const OpenFile &file) const override {
    if (int error = Begin("query", file.path()))
      return Error(error, "query", file.path());
    Handle *handle = disk.FindHandle(file.descriptor());
    if (!handle)
      return Error(EBADF, "query", file.path());
    return disk.Locate(At(entry)).inode == handle->inode;
  }
  absl::StatusOr<std::unique_ptr<OpenFile>> Open(const std::string &entry, OpenMode mode) override {
    return Alive() ? disk.Open(At(entry), mode) : Error(EBADF, "open", At(entry).shown);
  }
  absl::StatusOr<std::unique_ptr<OpenFile>> Lock(const std::string &entry) override {
    return Alive() ? disk.Lock(At(entry)) : Error(EBADF, "lock", At(entry).shown);
  }
  absl::StatusOr<PathKind> Kind(const std::string &entry) override {
    return Alive() ? disk.Kind(At(entry)) : Error(EBADF, "query", At(entry).shown);
  }
  absl::Status Rename(const std::string &from, const std::string &to) override {
    return Alive() ? disk.Rename(At(from), At(to)) : Error(EBADF, "rename", At(from).shown);
  }
  absl::Status Unlink(const std::string &entry) override {
    return Alive() ? disk.Unlink(At(entry)) : Error(EBADF, "remove", At(entry).shown);
  }
  absl::Status Sync() override {
    if (int error = Begin("sync directory", name))
      return Error(error, "sync directory", name);
    return disk.SyncNames(inode, name);
  }
  absl::StatusOr<std::vector<std::string>> List() override {
    if (int error = Begin("list directory", name))
      return Error(error, "list directory", name);
    std::vector<std::string> names;
    for (const auto &[entry, of] : inode->entries)
      names.push_back(entry);
    return names;
  }

private:
  bool Alive() const { return disk.deaths == born; }
  int Begin(const char *what, const std::string &shown) const {
    return Alive() ? disk.Begin(what, shown, 0) : EBADF;
  }
  Where At(const std::string &entry) const {
    return {inode, entry, absl::StrCat(name, "/", entry)};
  }

  SimulatedDisk::Impl &disk;
  const InodeRef inode;
  const std::string name;
  const int64_t born;
};

} // namespace

absl::StatusOr<std::shared_ptr<Directory>> SimulatedDisk::OpenDirectory(const std::string &path) {
  int error = impl->Begin("open directory", path, 0);
  Place place = impl->Locate(path);
  if (error == 0 && (place.error != 0 || !place.inode || !place.inode->directory))
    error = ENOENT; // nor where a part of the path is a file
  if (error != 0)
    return Error(error, "open directory", path);
  return std::make_shared<SimulatedDirectory>(*impl, place.inode, path);
}

absl::Status SimulatedDisk::SyncDirectory(const std::string &path) {
  absl::StatusOr<std::shared_ptr<Directory>> directory = OpenDirectory(path);
  return directory.ok() ? (*directory)->Sync() : directory.status();
}

} // namespace boa
