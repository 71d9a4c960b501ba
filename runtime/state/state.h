//===- state.h - The state directory -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where each chunk stands on SSD, and how a trainer survives its death.
//
// Shadow paging: every chunk of a persistent storage has two extents. Writes go
// to the one that the last commit does not name; a commit makes what was written
// durable and then names it, by renaming a new manifest over the old. So at any
// instant the last commit is whole on disk, and a commit copies nothing.
// Chunks of other storages have one extent, in a scratch file.
//
//   DIR/manifest.json   what is committed; replaced atomically
//   DIR/lock            held while a trainer runs
//   DIR/data.0          persistent chunks of the first ssd path; the other paths
//                       have data.1, ... in their own directories
//   DIR/scratch.0       chunks that do not outlive a run
//
// Not thread safe: Next and Current are called by the driver in program order;
// checksums (SetChecksum, Checksum) may come from other threads.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_H
#define BOA_RUNTIME_STATE_H

#include "runtime/io/io.h"
#include "runtime/program.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boa {

struct Extent {
  int32_t file = 0; // index into StateStore::Files
  int64_t offset = 0;
};

/// What a commit says beside where the chunks are.
struct CommitRecord {
  int64_t step = 0;                         // steps done
  int64_t pending = 0;                      // step whose delayed updates are outstanding; 0: none
  std::map<int64_t, double> clip_factors;   // by step
  std::map<std::string, std::string> extra; // the trainer's own
};

class StateStore {
public:
  /// Whether `directory` holds a manifest.
  static bool Exists(const std::string &directory);

  /// A new state directory: makes the directories and data files and reserves
  /// their space. `directories[i]` belongs to Machine.ssd[i] (at least one).
  /// Fails if there is one already, if another trainer holds it, or if the disk
  /// is too full (saying how much is needed and free), leaving nothing behind.
  static absl::StatusOr<std::unique_ptr<StateStore>>
  Create(const Program &, const std::vector<std::string> &directories);

  /// The last commit of an existing one. Fails if it is in use, truncated,
  /// foreign, of another program (saying what differs), or lacks a file.
  static absl::StatusOr<std::unique_ptr<StateStore>>
  Open(const Program &, const std::vector<std::string> &directories);

  ~StateStore();

  const std::vector<IoFile> &Files() const;
  const std::vector<IoLink> &Links() const;

  /// Where the chunk's newest contents are, in program order.
  Extent Current(int32_t storage, int64_t entry, int32_t chunk) const;
  /// Where its next contents go; from now on that is Current.
  Extent Next(int32_t storage, int64_t entry, int32_t chunk);

  /// The checksum (checksum.h) of what an extent holds: set when a write of it has
  /// completed, known until the next one has.
  void SetChecksum(const Extent &, uint64_t);
  std::optional<uint64_t> Checksum(const Extent &) const;

  /// Makes the current contents the committed ones. All writes have completed.
  absl::Status Commit(const CommitRecord &);
  /// The last commit's record (step 0 before the first).
  const CommitRecord &Committed() const;

  /// Bytes on each path, for the start table.
  std::vector<int64_t> BytesByPath() const;
  const std::string &Directory() const;

private:
  struct Impl;
  explicit StateStore(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl;
};

} // namespace boa

#endif // BOA_RUNTIME_STATE_H
