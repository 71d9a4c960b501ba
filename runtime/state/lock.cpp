//===- lock.cpp - One trainer on a state ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Locks are flock on DIR/lock, in the directory of every path; the kernel drops
// them with the process. The file stays: its contents mark the directory as
// ours.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/impl.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/file.h>
#include <sys/stat.h>

namespace boa {
namespace {

constexpr char kLockMark[] = "boa trainer, process ";

absl::Status InUseError(const std::string &directory) {
  auto text = ReadSmallFile(directory + "/lock");
  std::string holder = "another process";
  if (text.ok() && text->rfind(kLockMark, 0) == 0)
    holder = "process " +
             text->substr(std::strlen(kLockMark), text->find('\n') - std::strlen(kLockMark));
  return absl::UnavailableError(
      absl::StrFormat("%s is in use by %s: wait until it ends, or stop it", directory, holder));
}

/// The lock file, held. A Create that fails removes its lock file, so what was
/// locked may have lost its name in between: then another try.
absl::StatusOr<Descriptor> HoldLockFile(const std::string &directory) {
  std::string path = directory + "/lock";
  while (true) {
    Descriptor file(OpenRetrying(path, O_RDWR | O_CREAT));
    if (file.get() < 0)
      return Unwritable(ErrnoError("open", path));
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        return InUseError(directory);
      return ErrnoError("lock", path);
    }
    struct stat held, named;
    if (fstat(file.get(), &held) != 0)
      return ErrnoError("query", path);
    if (stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino)
      return file;
  }
}

absl::StatusOr<Lock> LockDirectory(const std::string &directory) {
  std::string path = directory + "/lock";
  absl::StatusOr<Descriptor> file = HoldLockFile(directory);
  if (!file.ok())
    return file.status();
  Lock lock;
  lock.file = *std::move(file);
  int fd = lock.file.get();
  char mark[sizeof(kLockMark)] = {};
  ssize_t count = pread(fd, mark, sizeof(mark) - 1, 0);
  if (count != 0 && std::strcmp(mark, kLockMark) != 0)
    return absl::AlreadyExistsError(
        absl::StrCat(path, " is not the lock of a trainer: choose another directory"));
  lock.was_ours = count > 0;
  if (ftruncate(fd, 0) != 0)
    return ErrnoError("write", path);
  if (absl::Status status = WriteAll(fd, absl::StrCat(kLockMark, getpid(), "\n"), path);
      !status.ok())
    return status;
  return lock;
}

} // namespace

/// Locks each directory once, even if it is given for several paths.
absl::Status StateStore::Impl::TakeLocks(Undo &undo) {
  std::map<std::pair<dev_t, ino_t>, bool> seen;
  for (const std::string &directory : directories) {
    struct stat info;
    if (stat(directory.c_str(), &info) != 0)
      return ErrnoError("find the state directory", directory);
    auto known = seen.find({info.st_dev, info.st_ino});
    if (known != seen.end()) {
      locks.push_back({Descriptor(), known->second});
      continue;
    }
    bool existed = PathExists(directory + "/lock");
    absl::StatusOr<Lock> lock = LockDirectory(directory);
    if (!lock.ok())
      return lock.status();
    if (!existed)
      undo.AddFile(directory + "/lock");
    seen[{info.st_dev, info.st_ino}] = lock->was_ours;
    locks.push_back(*std::move(lock));
  }
  return absl::OkStatus();
}

} // namespace boa
