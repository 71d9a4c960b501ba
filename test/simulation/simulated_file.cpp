//===- simulated_file.cpp - Files of a simulated disk ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/simulation/simulated_impl.h"

#include "absl/strings/str_format.h"

#include <algorithm>
#include <cerrno>

namespace boa {

using simulated::ByteLock;
using simulated::Error;
using simulated::Handle;
using simulated::Inode;
using simulated::kPageBytes;
using simulated::Place;
using simulated::Where;

namespace {

class SimulatedFile : public OpenFile {
public:
  SimulatedFile(SimulatedDisk::Impl &disk, int fd, std::string path)
      : disk(disk), fd(fd), name(std::move(path)) {}
  ~SimulatedFile() override {
    if (Handle *handle = Find()) {
      if (handle->inode->lock_holder == fd)
        handle->inode->lock_holder = -1;
      std::vector<ByteLock> &locks = handle->inode->byte_locks;
      locks.erase(std::remove_if(locks.begin(), locks.end(),
                                 [&](const ByteLock &lock) { return lock.fd == fd; }),
                  locks.end());
      disk.handles.erase(fd);
    }
  }
  int descriptor() const override { return fd; }
  const std::string &path() const override { return name; }

  absl::StatusOr<int64_t> Size() const override {
    Handle *handle = Find();
    if (int error = disk.Begin("query", name, handle ? handle->inode->device : 0))
      return Error(error, "query", name);
    handle = Find();
    return handle ? absl::StatusOr<int64_t>(handle->inode->size) : Error(EBADF, "query", name);
  }

  absl::Status Read(int64_t offset, void *data, int64_t bytes) const override {
    if (bytes == 0)
      return absl::OkStatus();
    int64_t moved = disk.Move(fd, name, false, offset, bytes, static_cast<char *>(data), true);
    if (moved < 0)
      return Error(int(-moved), absl::StrFormat("read %d bytes at offset %d of", bytes, offset),
                   name);
    if (moved < bytes)
      return absl::DataLossError(
          absl::StrFormat("%s ends before offset %d: it is truncated", name, offset + bytes));
    return absl::OkStatus();
  }

  absl::Status Write(int64_t offset, const void *data, int64_t bytes) override {
    if (bytes == 0)
      return absl::OkStatus();
    int64_t moved = disk.Move(fd, name, true, offset, bytes,
                              const_cast<char *>(static_cast<const char *>(data)), true);
    if (moved < 0)
      return Error(int(-moved), absl::StrFormat("write %d bytes at offset %d of", bytes, offset),
                   name);
    return absl::OkStatus();
  }

  absl::Status Reserve(int64_t bytes) override;
  absl::Status Sync() override;
  /// Like the locks of the operating system, not an operation of the disk.
  absl::Status Lock() override {
    Handle *handle = Find();
    if (!handle)
      return Error(EBADF, "lock", name);
    if (handle->inode->lock_holder >= 0 && handle->inode->lock_holder != fd)
      return Error(EWOULDBLOCK, "lock", name);
    handle->inode->lock_holder = fd;
    return absl::OkStatus();
  }
  absl::Status LockBytes(int64_t offset, int64_t bytes, bool shared) override {
    Handle *handle = Find();
    if (!handle || (!shared && !handle->mode.write))
      return Error(EBADF, "lock", name);
    for (const ByteLock &lock : handle->inode->byte_locks)
      if (lock.fd != fd && lock.offset < offset + bytes && offset < lock.offset + lock.bytes &&
          !(lock.shared && shared))
        return Error(EWOULDBLOCK, "lock", name);
    handle->inode->byte_locks.push_back({fd, offset, bytes, shared});
    return absl::OkStatus();
  }

private:
  Handle *Find() const { return disk.FindHandle(fd); }

  SimulatedDisk::Impl &disk;
  const int fd;
  const std::string name;
};

absl::Status SimulatedFile::Reserve(int64_t bytes) {
  Handle *handle = Find();
  const size_t device = handle ? handle->inode->device : 0;
  int error = disk.Begin("reserve", name, device);
  handle = Find();
  if (error == 0 && (!handle || !handle->mode.write))
    error = EBADF;
  if (error == 0 && disk.Strikes(Fault::io_error, device, name))
    error = EIO;
  if (error == 0 &&
      (disk.Strikes(Fault::no_space, device, name) || !disk.HasSpace(*handle->inode, 0, bytes)))
    error = ENOSPC;
  if (error != 0)
    return absl::ErrnoToStatus(error,
                               absl::StrFormat("cannot reserve %s (%d bytes, where %d are free)",
                                               name, bytes, disk.FreePages(device) * kPageBytes));
  handle->inode->reserved = std::max(handle->inode->reserved, bytes);
  handle->inode->Grow(bytes);
  return absl::OkStatus();
}

absl::Status SimulatedFile::Sync() {
  Handle *handle = Find();
  const size_t device = handle ? handle->inode->device : 0;
  if (int error = disk.Begin("sync", name, device))
    return Error(error, "sync", name);
  handle = Find();
  if (!handle)
    return Error(EBADF, "sync", name);
  if (disk.Strikes(Fault::failed_sync, device, name)) {
    handle->inode->FailSync(disk.random);
    return Error(EIO, "sync", name);
  }
  handle->inode->Sync();
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<std::unique_ptr<OpenFile>> SimulatedDisk::Impl::Open(const Where &where,
                                                                    OpenMode mode) {
  const std::string &path = where.shown;
  const char *what = mode.create ? "create" : "open";
  Place place = Locate(where);
  const size_t device = place.directory ? place.directory->device : 0;
  if (int error = Begin(what, path, device))
    return Error(error, what, path);
  place = Locate(where);
  int error = place.error;
  if (error == 0 && Strikes(Fault::io_error, device, path))
    error = EIO;
  else if (error == 0 && place.inode && mode.create && mode.exclusive)
    error = EEXIST;
  else if (error == 0 && !place.inode && !mode.create)
    error = ENOENT;
  else if (error == 0 && !place.inode && Strikes(Fault::no_space, device, path))
    error = ENOSPC;
  if (error != 0)
    return Error(error, what, path);
  if (place.inode && place.inode->directory)
    return absl::FailedPreconditionError(
        absl::StrCat("cannot open ", path, ": it is not a regular file"));
  if (!place.inode) {
    place.inode = std::make_shared<Inode>();
    place.inode->device = device;
    ChangeNames({{place.directory, place.name, place.inode}});
  }
  const int fd = next_descriptor++;
  handles[fd] = {place.inode, path, mode};
  return std::make_unique<SimulatedFile>(*this, fd, path);
}

absl::StatusOr<std::unique_ptr<OpenFile>> SimulatedDisk::Open(const std::string &path,
                                                              OpenMode mode) {
  return impl->Open({nullptr, path, path}, mode);
}

absl::StatusOr<std::unique_ptr<OpenFile>> SimulatedDisk::Impl::Lock(const Where &where) {
  absl::StatusOr<std::unique_ptr<OpenFile>> file = Open(where, {/*write=*/true, /*create=*/true});
  if (!file.ok())
    return file;
  absl::Status status = (*file)->Lock();
  return status.ok() ? std::move(file) : status;
}

absl::StatusOr<std::unique_ptr<OpenFile>> SimulatedDisk::Lock(const std::string &path) {
  return impl->Lock({nullptr, path, path});
}

} // namespace boa
