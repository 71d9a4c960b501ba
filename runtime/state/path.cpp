//===- path.cpp - One directory of a state --------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/path.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <unistd.h>

namespace boa {
namespace {

constexpr char kData[] = "data", kLock[] = "lock";
constexpr char kLockMark[] = "boa trainer, process ";
constexpr size_t kLockBytes = 40; // padded, so that a new one covers the old
// Bytes of the lock: one for the job and one for each of its ranks, which this process takes
// together, since it is the only rank.
constexpr int64_t kJobByte = 0, kJobBytes = int64_t(1) << 31;
// One for each commit, by its step.
constexpr int64_t kFirstCommitByte = int64_t(1) << 32;

/// The identities at the head of a data file of `size` bytes.
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

} // namespace

absl::StatusOr<std::optional<FoundData>> FindData(Directory &directory) {
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
  return FoundData{*head, *size};
}

absl::StatusOr<std::optional<FoundData>> FindData(FileSystem &disk, const std::string &directory) {
  absl::StatusOr<std::shared_ptr<Directory>> opened = disk.OpenDirectory(directory);
  if (absl::IsNotFound(opened.status()))
    return std::nullopt;
  return opened.ok() ? FindData(**opened) : opened.status();
}

absl::Status OfAnother(const std::string &directory, const DataHead &head) {
  return absl::AlreadyExistsError(absl::StrFormat(
      "%s belongs to another training, which was begun in %s: name another directory; if that "
      "training no longer exists, remove the files `data` and `lock` there",
      directory, head.home.empty() ? "a directory with a long name" : head.home));
}

std::string OfHost(FileSystem &disk, const SavedPath &path) {
  return path.host == disk.Host() ? "" : absl::StrCat(" of the machine ", path.host);
}

absl::Status Unwritable(const absl::Status &status) {
  if (status.ok())
    return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(),
                                   "; name another directory with --state or in the machine's "
                                   "ssd, or permit writing to this one"));
}

absl::Status StatePath::Open(FileSystem &disk) {
  absl::StatusOr<std::shared_ptr<Directory>> opened = disk.OpenDirectory(name);
  if (!opened.ok())
    return opened.status();
  open = *std::move(opened);
  if (!real_name.empty())
    return absl::OkStatus();
  absl::StatusOr<std::string> real = disk.RealPath(name);
  if (!real.ok())
    return real.status();
  real_name = *std::move(real);
  return absl::OkStatus();
}

absl::StatusOr<bool> StatePath::IsCurrent() const {
  absl::StatusOr<bool> same = open->IsCurrent();
  if (same.ok() && *same && file)
    same = open->Names(kData, *file);
  return same;
}

//===----------------------------------------------------------------------===//
// The lock
//===----------------------------------------------------------------------===//

absl::StatusOr<std::unique_ptr<OpenFile>> StatePath::TakeLock(absl::Status &of_bytes) const {
  absl::StatusOr<std::unique_ptr<OpenFile>> locked = open->Lock(kLock);
  if (!locked.ok())
    return locked;
  // Ranks of a job that has lost others may go on to use the state. Some file systems take this for
  // the lock of the file, and some have no locks of bytes.
  of_bytes = (*locked)->LockBytes(kJobByte, kJobBytes, /*shared=*/false);
  if (absl::IsUnavailable(of_bytes) && CanLockCommits())
    return of_bytes;
  return locked;
}

absl::Status StatePath::Lock(Undo &undo) {
  absl::StatusOr<PathKind> before = open->Kind(kLock);
  if (!before.ok())
    return before.status();
  absl::StatusOr<std::unique_ptr<OpenFile>> locked = TakeLock(bytes_locked);
  if (absl::IsUnavailable(locked.status()))
    return InUse();
  if (!locked.ok())
    return Unwritable(locked.status());
  if (*before == PathKind::nothing)
    undo.AddFile(open, kLock);
  absl::StatusOr<int64_t> size = (*locked)->Size();
  if (!size.ok())
    return size.status();
  std::string mark(std::min(*size, int64_t(sizeof(kLockMark) - 1)), '\0');
  if (absl::Status status = (*locked)->Read(0, mark.data(), int64_t(mark.size())); !status.ok())
    return status;
  // A crash may leave the beginning of a mark, or zeros. If there is a data file, its head says
  // whose the directory is.
  absl::StatusOr<PathKind> data = open->Kind(kData);
  if (!absl::StartsWith(kLockMark, mark) && mark.find_first_not_of('\0') != std::string::npos &&
      !(data.ok() && *data == PathKind::file))
    return absl::AlreadyExistsError(
        absl::StrCat(name, "/", kLock, " is not the lock of a trainer: choose another directory"));
  lock = *std::move(locked);
  return absl::OkStatus();
}

absl::Status StatePath::CheckFree() const {
  absl::StatusOr<PathKind> kind = open->Kind(kLock);
  absl::Status of_bytes;
  const bool is_held =
      kind.ok() && *kind == PathKind::file && absl::IsUnavailable(TakeLock(of_bytes).status());
  return is_held ? InUse() : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OpenFile>> StatePath::LockCommit(int64_t step, bool shared) const {
  OpenMode mode;
  mode.write = !shared;
  absl::StatusOr<std::unique_ptr<OpenFile>> opened = open->Open(kLock, mode);
  if (opened.ok())
    if (absl::Status status = (*opened)->LockBytes(kFirstCommitByte + step, 1, shared);
        !status.ok())
      return status;
  return opened;
}

bool StatePath::CanLockCommits() const {
  // No commit has this one.
  return !absl::IsUnavailable(LockCommit(/*step=*/-1, /*shared=*/false).status());
}

absl::Status StatePath::InUse() const {
  absl::StatusOr<std::string> text = ReadSmallFile(*open, kLock);
  std::string holder = "another process";
  absl::string_view rest = text.ok() ? absl::string_view(*text) : absl::string_view();
  if (absl::ConsumePrefix(&rest, kLockMark)) {
    const absl::string_view number = rest.substr(0, rest.find_first_of(" \n"));
    // One that has ended here holds no lock. It may run on another machine of the file system.
    int process = 0;
    const bool runs = absl::SimpleAtoi(number, &process) && process > 0 &&
                      (kill(process, 0) == 0 || errno == EPERM);
    holder = runs ? absl::StrCat("process ", number)
                  : absl::StrCat("another process (`fuser ", name, "/", kLock, "` names it)");
  }
  return absl::UnavailableError(
      absl::StrFormat("%s is in use by %s: wait until it ends, or stop it", name, holder));
}

absl::Status StatePath::MarkLock() {
  std::string text = absl::StrCat(kLockMark, getpid());
  text.resize(kLockBytes - 1, ' ');
  text += '\n';
  return Unwritable(lock->Write(0, text.data(), int64_t(text.size())));
}

//===----------------------------------------------------------------------===//
// The data file
//===----------------------------------------------------------------------===//

absl::Status StatePath::OpenData(const std::string &state, bool write) {
  OpenMode mode;
  mode.write = write;
  mode.direct = true;
  absl::StatusOr<std::unique_ptr<OpenFile>> opened = open->Open(kData, mode);
  if (!opened.ok())
    return opened.status();
  file = *std::move(opened);
  // This is the head of the open file, whatever the name stood for before.
  absl::StatusOr<DataHead> head = ReadHead(*file, kStateBlock);
  if (!head.ok())
    return head.status();
  if (head->state != state || head->path != identity)
    return OfAnother(name, *head);
  return absl::OkStatus();
}

/// The file gets its name only when its head is durable.
absl::Status StatePath::MakeData(const std::string &state, const std::string &home, Undo &undo) {
  undo.AddFile(open, kData);
  absl::Status status = ReplaceFile(*open, kData, FormatHead({state, identity, home}), kOwnerOnly);
  return status.ok() ? OpenData(state, /*write=*/true) : Unwritable(status);
}

/// A killed process may still have writes under way. The lock of its data file lasts until
/// they have landed. The lock file has no transfers and is free at once.
absl::Status StatePath::LockData(FileSystem &disk, const std::function<bool()> &interrupted,
                                 std::vector<std::string> &notes) {
  constexpr std::chrono::milliseconds kPoll(10), kTold(1000), kLongest(60000);
  for (std::chrono::milliseconds waited(0);; waited += kPoll) {
    absl::Status status = file->Lock();
    if (status.ok() && waited >= kTold)
      notes.push_back(absl::StrFormat("%s: waited %d s for the last writes of an ended process",
                                      name, waited.count() / 1000));
    if (!absl::IsUnavailable(status))
      return status;
    if (interrupted && interrupted())
      return absl::CancelledError(
          absl::StrFormat("interrupted while writes of an ended process to %s were under way: the "
                          "state did not change",
                          DataPath()));
    if (waited == kLongest)
      return absl::UnavailableError(absl::StrFormat(
          "%s is in use by another process, or writes of an ended one have not landed in %d s: end "
          "that process, or wait for the disk, then try again",
          DataPath(), kLongest.count() / 1000));
    disk.Wait(kPoll);
  }
}

} // namespace boa
