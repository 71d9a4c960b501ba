//===- extents.h - Where each chunk stands ----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chunks are dealt to the given paths in proportion to their bandwidth. A chunk is written to
// the path of the deal, and read from the extent in the manifest. So a path that is added or
// taken away needs no copying: a step writes every chunk. Frozen weights, which no step writes,
// stay where they are.
//
// A persistent chunk has at most one extent more than commits are kept. The chunks of an entry
// on one path take neighbouring extents, so that they move in large transfers. A chunk of
// scratch that lives on an SSD has one extent, at the end of the file.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_EXTENTS_H
#define BOA_RUNTIME_STATE_EXTENTS_H

#include "runtime/state/manifest.h"
#include "runtime/state/pool.h"
#include "runtime/support/mutex.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace boa {

/// The extents of a program's chunks and the free space of the data files. It touches no disk.
/// The order of the calls is Claim, Adopt if there is a commit, Begin; then all others.
///
/// Ownership: it owns everything it knows; `grow` is called while it exists.
/// Threads: SetChecksum and Checksum from any; all others one at a time.
/// Errors: Claim finds a damaged manifest. Next and Begin fail with the error of `grow`, and
/// Contents if a chunk was never written. None of them changes where a chunk stands.
class Extents {
public:
  /// Makes a data file this long. Called when no free range is large enough.
  using Grow = std::function<absl::Status(int32_t file, int64_t bytes)>;

  /// `files`: the number of given paths, to which chunks are dealt.
  Extents(const Program &, size_t files, Grow grow);

  /// The size of the data file of each given path, if `keep` commits are kept. Those that were
  /// claimed are among them until there are more. `stands`: by storage, whether its chunks are
  /// those of the opened commit (models.h); empty: there is none.
  std::vector<int64_t> BytesNeeded(int64_t keep, const std::vector<bool> &stands = {}) const;

  /// Takes the extents that the commits name; if one cannot be read, all of the files. `files`:
  /// name and size of each data file. DataLoss if an extent is beyond its file, or if two chunks
  /// share a byte.
  struct File {
    std::string path;
    int64_t bytes = 0;
  };
  absl::Status Claim(const std::vector<SavedCommit> &, const std::vector<File> &files);
  /// The chunks of storages that stand hold this commit, whose tables they share from now on.
  void Adopt(const SavedCommit &, const std::vector<bool> &stands);
  /// Everything else in files of these sizes is free. Scratch takes its extents of it.
  absl::Status Begin(const std::vector<int64_t> &bytes);

  /// Makes the files at least as long. Their new part is free. ResourceExhausted: a disk is too
  /// full.
  absl::Status GrowFiles(const std::vector<int64_t> &bytes);

  Extent Current(int32_t storage, int64_t entry, int32_t chunk) const;
  /// The extent for the next contents, which is the current one from now on. It is the same
  /// extent as long as no commit names it.
  absl::StatusOr<Extent> Next(int32_t storage, int64_t entry, int32_t chunk);

  void SetChecksum(const Extent &, uint64_t);
  std::optional<uint64_t> Checksum(const Extent &) const;

  /// A commit of the persistent storages as they are now, without its record. Chunk tables of the
  /// last commit in which nothing changed are in it again; the others are new. A state of the
  /// optimizer of which no chunk was ever written is absent.
  absl::StatusOr<SavedCommit> Contents() const;
  /// The last of `kept`, of Contents, is durable: no Next returns its extents. Extents that only
  /// `dropped` commits named become free.
  void Committed(const std::vector<SavedCommit> &kept, const std::vector<SavedCommit> &dropped);

  /// The size of each data file.
  std::vector<int64_t> Bytes() const;

private:
  /// A storage of the program. Vectors are by entry, then chunk; empty if it has no extents.
  struct Table {
    SavedStorage storage;
    bool persistent = false;
    bool zero_at_first = false;  // until a chunk is written
    bool shared = false;         // no commit has contents of its own
    std::vector<int32_t> file;   // the chunk is dealt to it; -1: none, the chunk lives in memory
    std::vector<Extent> current; // newest contents
    std::vector<int64_t> spare;  // offset in `file`, taken with a neighbour's; 0: none
    std::vector<uint8_t> named;  // persistent: whether a commit names `current`
    std::vector<std::shared_ptr<ChunkTable>> committed; // of the commit that names them

    size_t Index(int64_t entry, int32_t chunk) const {
      return size_t(entry * storage.chunks + chunk);
    }
  };
  struct Space {
    Pool free;
    int64_t bytes = 0;   // of the file; nothing beyond is free or taken
    int64_t claimed = 0; // bytes that commits named at the opening
    int64_t frozen = 0;  // of these, by storages that all commits share
    int64_t held = 0;    // nothing before this is free: a commit that cannot be read may name it
  };

  absl::StatusOr<int64_t> TakeOne(int32_t file, int64_t bytes);
  absl::Status GrowFile(int32_t file, int64_t bytes);
  absl::Status TakeRun(Table &, int64_t entry, int32_t file);
  static void MarkNamed(Table &, const SavedTable *);
  absl::Status AddTables(const Table &, SavedTable &) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  const Grow grow;
  const size_t given;        // paths
  std::vector<Table> tables; // by storage of the program
  std::vector<Space> spaces; // by path
  int64_t claimed_commits = 0;
  mutable Mutex mutex;
  std::unordered_map<Extent, uint64_t, ExtentHash> checksums ABSL_GUARDED_BY(mutex);
};

} // namespace boa

#endif // BOA_RUNTIME_STATE_EXTENTS_H
