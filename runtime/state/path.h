//===- path.h - One directory of a state ------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A directory of a state holds a lock and a data file. The head of the data file says to which
// state and to which of its paths the directory belongs.
//
// Every file is reached through the open directory. So a directory that is renamed or replaced
// during a run stays whole, and IsCurrent notices it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_PATH_H
#define BOA_RUNTIME_STATE_PATH_H

#include "runtime/io/file_system.h"
#include "runtime/state/manifest.h"
#include "runtime/state/undo.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// A data file as an opening finds it.
struct FoundData {
  DataHead head;
  int64_t bytes = 0;
};

/// The data file in the directory, or nothing. FailedPrecondition if the name is no file;
/// otherwise as ParseHead.
absl::StatusOr<std::optional<FoundData>> FindData(Directory &);
/// The same by name. A directory that does not exist has no data file.
absl::StatusOr<std::optional<FoundData>> FindData(FileSystem &, const std::string &directory);

/// The refusal of a directory whose data file has this head.
absl::Status OfAnother(const std::string &directory, const DataHead &);

/// One directory, its lock and its data file.
///
/// Ownership: the descriptors of all three close with the object, and that releases the locks.
/// Transfers use the data file's descriptor, so their backend must end first.
/// Threads: one at a time. Errors name the directory or the file; after one the object is only
/// destroyed.
class StatePath {
public:
  /// `real`: the absolute name without links, if it is known.
  explicit StatePath(std::string directory, std::string real = "")
      : name(std::move(directory)), real_name(std::move(real)) {}

  const std::string &directory() const { return name; } // as it was given
  const std::string &real() const { return real_name; } // since Open
  const std::string &id() const { return identity; }    // since Identify
  std::string DataPath() const { return name + "/data"; }
  /// The size of the data file at Identify; 0: there was none.
  int64_t found_bytes() const { return found; }
  const std::shared_ptr<Directory> &folder() const { return open; }
  OpenFile &data() const { return *file; }

  /// Opens the directory, and asks for its real name if that is not known.
  absl::Status Open(FileSystem &);
  absl::StatusOr<std::optional<FoundData>> Find() const { return FindData(*open); }
  void Identify(std::string id, int64_t bytes) {
    identity = std::move(id);
    found = bytes;
  }

  /// Takes the lock. Unavailable, with the holder's process, if another one has it;
  /// AlreadyExists if the file of that name is no lock of a trainer.
  absl::Status Lock(Undo &);
  /// Locks the commit of the step, in the home of a state, until the file is closed. A process that
  /// reads the commit shares the lock, and trainers then keep the commit. A trainer that drops a
  /// commit does not share it. Unavailable if another lock stands against it. NotFound if there is
  /// no lock file.
  absl::StatusOr<std::unique_ptr<OpenFile>> LockCommit(int64_t step, bool shared) const;
  /// Why Lock has locked the file alone, and not its bytes for ranks and commits; ok: it has both.
  const absl::Status &BytesLocked() const { return bytes_locked; }
  /// Whether LockCommit means anything: not where the file system takes it for Lock, which this
  /// process has.
  bool CanLockCommits() const;
  /// InUse if another process has the lock now. Changes nothing.
  absl::Status CheckFree() const;
  /// The refusal of a directory whose lock another process has.
  absl::Status InUse() const;
  /// Writes this process's number into the lock, for others that find it held.
  absl::Status MarkLock();

  /// Opens the data file. AlreadyExists if its head names another state or path.
  absl::Status OpenData(const std::string &state, bool write);
  /// Makes the data file, with its head, then opens it to write.
  absl::Status MakeData(const std::string &state, const std::string &home, Undo &);
  /// Locks the data file. Waits up to a minute for the writes of a process that died. Cancelled
  /// if `interrupted` says so; notes a wait that lasted.
  absl::Status LockData(FileSystem &, const std::function<bool()> &interrupted,
                        std::vector<std::string> &notes);

  /// Whether the names still lead to the open directory and to its open data file.
  absl::StatusOr<bool> IsCurrent() const;

private:
  absl::StatusOr<std::unique_ptr<OpenFile>> TakeLock(absl::Status &of_bytes) const;

  std::string name, real_name, identity;
  int64_t found = 0;
  std::shared_ptr<Directory> open;
  std::unique_ptr<OpenFile> lock, file;
  absl::Status bytes_locked;
};

/// " of the machine HOST" if another one used the path last; else "".
std::string OfHost(FileSystem &, const SavedPath &);

/// The status with advice for a directory that cannot be written.
absl::Status Unwritable(const absl::Status &);

} // namespace boa

#endif // BOA_RUNTIME_STATE_PATH_H
