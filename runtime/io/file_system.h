//===- file_system.h - The file system below a state ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The state directory reaches disks only through this interface. So a simulated disk that
// fails can replace the real one (simulated_disk.h). The promises are those of POSIX and no more:
//
//   - written bytes and the file's size are durable after Sync of the file;
//   - a name made, replaced or removed is durable after SyncDirectory;
//   - Rename replaces atomically; without a sync nothing is known of its order.
//
// Errors are values that name the path. FailedPrecondition is of a name that stands for no file: a
// link, a directory, a device. No error of the system has that code, or DataLoss. Links are never
// followed in the last part of a path. Thread safe but for calls on one file.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_IO_FILE_SYSTEM_H
#define BOA_RUNTIME_IO_FILE_SYSTEM_H

#include "runtime/io/io.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// Permissions of files that are made: for everybody to read, or for the owner alone. Who may open
/// a file may also lock it.
constexpr int kReadByAll = 0644, kOwnerOnly = 0600;

/// Bytes of the largest file that ReadSmallFile reads, and ReplaceFile writes.
constexpr int64_t kMostSmallBytes = int64_t(1) << 30;

/// An open file; closed with its owner.
class OpenFile {
public:
  virtual ~OpenFile() = default;
  /// For IoFile::fd. Of the file system that opened it.
  virtual int descriptor() const = 0;
  virtual const std::string &path() const = 0;
  virtual absl::StatusOr<int64_t> Size() const = 0;
  virtual absl::StatusOr<int> Permissions() const { return kOwnerOnly; }
  /// All of the bytes or an error: DataLoss if the file ends before. A file that
  /// was opened `direct` takes multiples of 4096 in all three arguments.
  virtual absl::Status Read(int64_t offset, void *data, int64_t bytes) const = 0;
  virtual absl::Status Write(int64_t offset, const void *data, int64_t bytes) = 0;
  /// Makes the file at least this long, with its space on the disk reserved.
  /// ResourceExhausted: the disk is too full.
  virtual absl::Status Reserve(int64_t bytes) = 0;
  virtual absl::Status Sync() = 0;
  /// Locks the file. The lock ends when the file is closed or its process has died, and its last
  /// transfer has ended. Unavailable if another process holds it.
  virtual absl::Status Lock() = 0;
  /// Locks bytes, which may be beyond the end, until the file is closed or its process has died.
  /// It stands against other locks of these bytes alone, and several may be `shared`. Any other
  /// needs a file that is open to write. Unavailable if another lock stands against it; on some
  /// network file systems that is also Lock, of any descriptor.
  virtual absl::Status LockBytes(int64_t offset, int64_t bytes, bool shared) = 0;
  /// Empty, or why the bytes go through the page cache in spite of `direct`.
  virtual std::string Degraded() const { return ""; }
};

struct OpenMode {
  bool write = false;
  bool create = false;          // if it is not there
  bool exclusive = false;       // with create: an error if it is there
  bool direct = false;          // past the page cache, where the file system can
  int permissions = kReadByAll; // of a file that is made
  bool exact = false;           // these, in spite of the umask
};

/// The kind of file that a name stands for. Links are not followed.
enum class PathKind { nothing, file, directory, other };

/// The device of a directory. Paths of one device share its space.
struct DeviceSpace {
  uint64_t device = 0;
  int64_t free_bytes = 0;
};

/// An open directory. It stays the same one, wherever its path leads later. Names
/// are those of its entries: they have no slash.
class Directory {
public:
  virtual ~Directory() = default;
  virtual const std::string &path() const = 0; // as it was opened
  /// Whether the path still leads to this directory.
  virtual absl::StatusOr<bool> IsCurrent() const = 0;
  /// Whether the name still stands for the open file.
  virtual absl::StatusOr<bool> Names(const std::string &name, const OpenFile &) const = 0;

  // As those of FileSystem.
  virtual absl::StatusOr<std::unique_ptr<OpenFile>> Open(const std::string &name, OpenMode) = 0;
  virtual absl::StatusOr<std::unique_ptr<OpenFile>> Lock(const std::string &name) = 0;
  virtual absl::StatusOr<PathKind> Kind(const std::string &name) = 0;
  virtual absl::Status Rename(const std::string &from, const std::string &to) = 0;
  virtual absl::Status Unlink(const std::string &name) = 0;
  virtual absl::Status Sync() = 0;
  /// The names of all that stands there, in any order.
  virtual absl::StatusOr<std::vector<std::string>> List() = 0;
};

class FileSystem {
public:
  virtual ~FileSystem() = default;
  /// NotFound if the directory does not exist. A link to a directory is followed.
  virtual absl::StatusOr<std::shared_ptr<Directory>> OpenDirectory(const std::string &path) = 0;
  /// NotFound where it does not exist.
  virtual absl::StatusOr<std::unique_ptr<OpenFile>> Open(const std::string &path, OpenMode) = 0;
  /// The lock file at `path`, made for the owner alone if need be. It is held until it is closed or
  /// the process dies. Unavailable if another process holds it.
  virtual absl::StatusOr<std::unique_ptr<OpenFile>> Lock(const std::string &path) = 0;
  virtual absl::StatusOr<PathKind> Kind(const std::string &path) = 0;
  /// Absolute and without links: the same for all names of a directory.
  virtual absl::StatusOr<std::string> RealPath(const std::string &path) = 0;
  /// AlreadyExists if there is anything of that name.
  virtual absl::Status MakeDirectory(const std::string &path) = 0;
  virtual absl::Status RemoveDirectory(const std::string &path) = 0;
  virtual absl::Status Rename(const std::string &from, const std::string &to) = 0;
  virtual absl::Status Unlink(const std::string &path) = 0;
  virtual absl::Status SyncDirectory(const std::string &path) = 0;
  virtual absl::StatusOr<DeviceSpace> Space(const std::string &directory) = 0;

  /// The name of the machine.
  virtual std::string Host();
  /// A number for identities. No other call gives it, on any machine.
  virtual uint64_t Unique();
  /// Lets time pass.
  virtual void Wait(std::chrono::nanoseconds);

  /// Transfers to and from files that this file system opened (io.h).
  virtual absl::StatusOr<std::unique_ptr<IoBackend>> CreateIo(std::vector<IoFile> files,
                                                              std::vector<IoLink> links,
                                                              void *arena, int64_t arena_bytes,
                                                              const IoOptions &) = 0;
};

/// The real one.
FileSystem &SystemFiles();

/// The path up to its last slash; "." if it has no slash.
std::string ParentOf(const std::string &path);

/// The whole of a file of at most kMostSmallBytes.
absl::StatusOr<std::string> ReadSmallFile(FileSystem &, const std::string &path);
absl::StatusOr<std::string> ReadSmallFile(Directory &, const std::string &name);

/// The permissions of a file; nothing if it is not there, or is nothing that could keep them.
absl::StatusOr<std::optional<int>> PermissionsOf(Directory &, const std::string &name);

/// Makes a file of the directory, or replaces one, by a rename. Its contents are durable when this
/// returns, but its name only after a Sync of the directory. `exact`: its permissions in spite of
/// the umask; else they are `permissions`.
absl::Status PutFile(Directory &, const std::string &name, absl::string_view contents,
                     std::optional<int> exact, int permissions);

/// Replaces a file of the directory, and keeps its permissions. After a crash at any instant it has
/// the old or the new contents. The new ones are durable when this returns. Contents that could
/// not be read again are refused. `permissions`: of a file that is not there yet.
absl::Status ReplaceFile(Directory &, const std::string &name, absl::string_view contents,
                         int permissions = kReadByAll);
absl::Status ReplaceFile(FileSystem &, const std::string &directory, const std::string &name,
                         absl::string_view contents);

} // namespace boa

#endif // BOA_RUNTIME_IO_FILE_SYSTEM_H
