//===- state.h - The state directory ----------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where each chunk stands on SSD, and how a training survives its trainer.
//
// A state belongs to a model and its optimizer: weights, the lower halves of their
// masters, moments. It does not belong to a schedule: the same state is
// continued in another order, with another delay, placement, number of
// micro-batches or of paths.
//
// Shadow paging: a chunk is never written over where a commit names it. Its next
// contents go to another extent of the pool; a commit makes what was written
// durable and then names it, by renaming a new manifest over the old. So at any
// instant the commits are whole on disk, and a commit copies nothing. An extent
// goes back to the pool when the last commit that names it is dropped.
//
//   HOME/manifest.json        what is committed; replaced atomically
//   HOME/manifest.copy.json   the same once more
//   PATH/data                 on each ssd path, of which HOME is the first: a block
//                             that says whose it is, then extents
//   PATH/lock                 held while a trainer runs
//
// Each state has an identity, in its manifest and at the head of every data file;
// each path has one too, so that paths may move and stand in any order. Files of
// another state are refused by name and never touched.
//
// Thread safety: Current and Next are called by the driver in program order;
// SetChecksum and Checksum from any thread; all else while nothing is under way.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_STATE_H
#define BOA_RUNTIME_STATE_STATE_H

#include "runtime/abi/program.h"
#include "runtime/io/file_system.h"
#include "runtime/io/io.h"
#include "runtime/state/extent.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// Extents on SSD of each chunk of a storage: of a persistent one, for every commit that is kept
/// and for the next one.
inline int64_t ExtentsOfChunk(bool persistent, int64_t keep) { return persistent ? keep + 1 : 1; }

/// No source has more sequences.
constexpr int64_t kMostSamples = int64_t(1) << 56;

/// What a commit says beside where the chunks are.
struct CommitRecord {
  int64_t step = 0;                               // steps done
  int64_t time = 0;                               // seconds since 1970
  std::map<std::string, std::string> extra;       // the trainer's own
  std::string plan;                               // of its steps, in words
  std::map<std::string, std::string> environment; // versions of kernels, driver and libraries
  std::map<std::string, int64_t> samples;         // sequences consumed, by source
};

/// A storage as a commit holds it.
struct SavedStorage {
  std::string name, role; // of program.h
  int64_t entries = 0;    // in a row, whatever their dimensions
  int32_t chunks = 1;     // of each
  int64_t chunk_bytes = 0;
};

/// Options for opening a state, set by the user or by the process.
struct OpenOptions {
  bool changed_model = false;        // a program of another computation may go on with it
  std::function<bool()> interrupted; // asked while it waits: whether to give up (Cancelled)
};

class StateStore {
public:
  /// Whether `directory` holds a manifest.
  static absl::StatusOr<bool> Exists(FileSystem &, const std::string &directory);

  /// The last commit of the state in `directory`, without a lock and without a change.
  /// Nothing where there is none, or where Open would mend a manifest. Fails as Open
  /// if it is damaged, or of another model or computation.
  static absl::StatusOr<std::optional<CommitRecord>>
  Peek(FileSystem &, const Program &, const std::string &directory, bool changed_model = false);

  /// A new state. `directories[i]` belongs to Machine.ssd[i] (at least one, no two
  /// the same); the first is its home. Fails, leaving nothing behind, if one of
  /// them holds files of another state or is in use, or if a disk is too full
  /// (saying how much is needed and free). Keeps `keep` commits.
  static absl::StatusOr<std::unique_ptr<StateStore>>
  Create(FileSystem &, const Program &, const std::vector<std::string> &directories,
         int64_t keep = 1, const OpenOptions & = {});

  /// An existing one, at the commit of step `at` or else the last. `directories`
  /// may be others than before: those that hold a part of this state are
  /// recognised, new ones are taken into use, and what stands on one that is not
  /// given is read there until a commit no longer names it. Fails, without a change, if it is
  /// in use, damaged, of another model, optimizer or computation (saying what differs), or
  /// lacks a part.
  static absl::StatusOr<std::unique_ptr<StateStore>>
  Open(FileSystem &, const Program &, const std::vector<std::string> &directories, int64_t keep = 1,
       std::optional<int64_t> at = std::nullopt, const OpenOptions & = {});

  ~StateStore();

  FileSystem &Disk() const;
  const std::vector<IoFile> &Files() const;
  const std::vector<IoLink> &Links() const;

  /// Where the chunk's newest contents are, in program order; nowhere: it was
  /// never written.
  Extent Current(int32_t storage, int64_t entry, int32_t chunk) const;
  /// Where its next contents go; from now on that is Current. An extent that no
  /// commit names is written over: earlier reads of it must have completed by
  /// then. Nowhere: the disk is full or a commit failed, and status() says so.
  Extent Next(int32_t storage, int64_t entry, int32_t chunk);
  absl::Status status() const;

  /// The checksum of what an extent holds: set when a write of it has completed,
  /// known until the next one has.
  void SetChecksum(const Extent &, uint64_t);
  std::optional<uint64_t> Checksum(const Extent &) const;

  /// Makes the current contents of persistent storages a commit, and drops those
  /// beyond the number to keep. All writes have completed. If it fails, the old or
  /// the new one is on disk: this process can write nothing more, and who opens the
  /// state anew finds one of them, whole.
  absl::Status Commit(const CommitRecord &);
  /// The commit that this process began from, or made last (step 0: none).
  const CommitRecord &Committed() const;
  /// Of no other state.
  const std::string &Identity() const;
  /// Of the program that made the last commit, as the state says it. Version 0: it does
  /// not say.
  const Computation &SavedComputation() const;
  /// How the program's computation differs from it, in words; "": it does not, or nobody knows.
  const std::string &ComputationChange() const;

  /// Storages of the opened commit whose chunks the program has in another form
  /// (weights f32 where they were in two halves, or the reverse); their bytes, for
  /// who converts them. `data` holds a chunk, aligned to 4096.
  std::vector<SavedStorage> Foreign() const;
  absl::Status ReadForeign(const std::string &name, int64_t entry, int32_t chunk, void *data);

  /// What a person should know of how it was opened: a damaged copy that was
  /// mended, a path that was taken into use or is still read, commits that a return
  /// to an earlier one will drop. One line each.
  std::vector<std::string> Notes() const;

  /// Bytes on each path, for the start table.
  std::vector<int64_t> BytesByPath() const;
  const std::string &Directory() const;

private:
  struct Impl;
  explicit StateStore(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl;
};

/// The error of a chunk whose bytes are not those that were written. `persistent`:
/// it is part of a state.
absl::Status DamagedChunk(const std::string &storage, int64_t entry, int32_t chunk,
                          const std::string &file, int64_t offset, bool persistent = true);

} // namespace boa

#endif // BOA_RUNTIME_STATE_STATE_H
