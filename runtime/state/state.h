//===- state.h - The state directory ----------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The places of all chunks on SSD, and the commits from which a training resumes.
//
// A state belongs to a model and its optimizer: weights, the lower halves of their
// masters, moments. It does not belong to a schedule. So a run may go on with it in another
// order, with another delay, placement, number of micro-batches or of paths.
//
// Shadow paging: an extent that a commit names is never written over. The next contents of its
// chunk go to another extent. A commit makes these extents durable, then names them: it renames
// a new manifest over the old one. So at any instant the commits are whole on disk, and a
// commit copies nothing. An extent is free again when the last commit that names it is dropped.
//
//   HOME/manifest.json        the commits; replaced atomically
//   HOME/manifest.copy.json   the same
//   PATH/data                 a block with the identities of state and path, then extents
//   PATH/lock                 held while a trainer runs
//
// Each ssd path is a PATH, and HOME is the first of them.
//
// A state has an identity, in its manifest and at the head of every data file. Each path has
// one too, so that paths may move and be given in any order. Files of another state are refused
// by name and never touched.
//
// Other processes may read a commit while a trainer runs (OpenToRead, commit_reader.h).
//
// A StateStore is composed of paths.h, extents.h, commits.h and manifest_files.h.
//
// Thread safety: the driver calls Current and Next in program order. SetChecksum and Checksum
// may come from any thread. All other calls need that no transfer is under way.
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

/// The number of extents of each chunk of a storage. A persistent chunk has one for every commit
/// that is kept, and one for the next. All commits share the one extent of a frozen chunk.
inline bool IsShared(const Storage &storage) { return !storage.persistent || IsFrozen(storage); }
inline int64_t ExtentsOfChunk(bool shared, int64_t keep) { return shared ? 1 : keep + 1; }

/// The facts of a commit beside its chunks.
struct CommitRecord {
  int64_t step = 0;                                    // steps done
  int64_t time = 0;                                    // seconds since 1970
  std::map<std::string, std::string> extra;            // the trainer's own
  std::string plan = {};                               // of its steps, in words
  std::map<std::string, std::string> environment = {}; // versions of kernels, driver and libraries
  std::map<std::string, int64_t> samples = {};         // sequences consumed, by source
  std::optional<double> validation_loss = {};          // of an evaluation after this step; finite
  std::string validated_on = {}; // losses of equal texts can be compared; empty: there is none
};

/// A plan that the compiler chose, as a block of a spec, and all that the spec's own block gave.
/// Both are empty if none was chosen.
struct ChosenPlan {
  std::string block, given;
};

// Where `extra` has them.
constexpr char kPlanBlock[] = "plan", kPlanGiven[] = "plan_given", kAdapters[] = "adapters",
               kAdapterDropout[] = "adapter_dropout";

/// The plan that a commit holds; none if its steps were under no chosen one.
std::optional<ChosenPlan> PlanOf(const CommitRecord &);

/// A storage as a commit holds it.
struct SavedStorage {
  std::string name, role; // of program.h
  int64_t entries = 0;    // in a row, whatever their dimensions
  int32_t chunks = 1;     // of each
  int64_t chunk_bytes = 0;
};

struct SavedCommit;    // manifest.h
struct SavedParameter; //
struct SavedTable;     //

/// The commit of another state whose weights a training began with.
struct BaseState {
  std::string state; // the identity
  int64_t step = 0;
  std::string hash;      // of its computation; may be empty
  std::string directory; // where it stood then, absolute
};

/// Options for opening a state, set by the user or by the process.
struct OpenOptions {
  bool changed_model = false;         // a program of another computation may go on with it
  std::function<bool()> interrupted;  // asked while it waits: whether to give up (Cancelled)
  std::optional<BaseState> base = {}; // of a new state
  int64_t spare_bytes = 0; // of each disk, that the state leaves free when it grows for readers
};

class StateStore {
public:
  /// Whether `directory` holds a manifest.
  static absl::StatusOr<bool> Exists(FileSystem &, const std::string &directory);

  /// Unavailable, with its process, if another process uses a state in one of these directories.
  /// Changes nothing; a directory that cannot be looked into counts as free.
  static absl::Status CheckFree(FileSystem &, const std::vector<std::string> &directories);

  /// The last commit of the state in `directory`. Takes no lock and changes nothing. Nothing if
  /// there is no commit, or if Open would mend a manifest. Fails as Open if the state is damaged,
  /// or of another model or computation.
  static absl::StatusOr<std::optional<CommitRecord>>
  Peek(FileSystem &, const Program &, const std::string &directory, bool changed_model = false);

  /// A new state, which keeps `keep` commits. `directories[i]` belongs to Machine.ssd[i]; the
  /// first is its home. There is at least one, and no two are the same. Fails if one of them
  /// holds files of another state or is in use, or if a disk is too full. Then it leaves nothing
  /// behind.
  static absl::StatusOr<std::unique_ptr<StateStore>>
  Create(FileSystem &, const Program &, const std::vector<std::string> &directories,
         int64_t keep = 1, const OpenOptions & = {});

  /// An existing state, at the commit of step `at`, or else at the last one. `directories` may be
  /// others than before. A directory with a part of this state is recognised, and a new one is
  /// taken into use. A part on a path that is not given is read there until no commit names it.
  ///
  /// Fails if the state is in use, is damaged or lacks a part, or if it is of another model,
  /// optimizer or computation. Then it changes nothing.
  static absl::StatusOr<std::unique_ptr<StateStore>>
  Open(FileSystem &, const Program &, const std::vector<std::string> &directories, int64_t keep = 1,
       std::optional<int64_t> at = std::nullopt, const OpenOptions & = {});

  /// The commit of step `at`, or else the last one, also while a trainer runs (CommitReader). Takes
  /// no write and no commit. Null if only Open can: the program has scratch on SSD, or a storage
  /// there with other chunks than the commit. Also null if a state on several paths was moved.
  static absl::StatusOr<std::unique_ptr<StateStore>>
  OpenToRead(FileSystem &, const Program &, const std::string &directory,
             std::optional<int64_t> at = std::nullopt, const OpenOptions & = {});
  /// Aborted if it is open to read, and a trainer has dropped the commit.
  absl::Status CheckKept() const;

  ~StateStore();

  FileSystem &Disk() const;
  const std::vector<IoFile> &Files() const;
  const std::vector<IoLink> &Links() const;

  /// The extent of the chunk's newest contents, in program order. Nowhere if the chunk was never
  /// written.
  Extent Current(int32_t storage, int64_t entry, int32_t chunk) const;
  /// The extent of its next contents, which is Current from now on. An extent that no commit
  /// names is written over, so earlier reads of it must complete before. Nowhere if the disk is
  /// full or a commit failed; status() has the error.
  Extent Next(int32_t storage, int64_t entry, int32_t chunk);
  absl::Status status() const;

  /// The checksum of an extent's contents. The writer sets it when a write completes, and it is
  /// known until the next write does.
  void SetChecksum(const Extent &, uint64_t);
  std::optional<uint64_t> Checksum(const Extent &) const;

  /// Makes the current contents of persistent storages a commit, and drops the oldest beyond the
  /// number to keep, but for the best one (Commits::DropOldest) and those that are read, for which
  /// the files grow if the disks have the space. All writes have completed. After a failure the old
  /// or the new commit is on disk, whole, and the next process opens it. This process can write
  /// nothing more.
  absl::Status Commit(const CommitRecord &);
  /// The commit that this process began from, or made last (step 0: none).
  const CommitRecord &Committed() const;
  /// No other state has it.
  const std::string &Identity() const;
  /// The computation that made the last commit. Version 0 if the manifest does not name it.
  const Computation &SavedComputation() const;
  /// The change from it to the program's computation, in words. "" if there is none, or if it is
  /// unknown.
  const std::string &ComputationChange() const;

  /// Whether a storage of the program has the chunks of the opened commit. Otherwise its chunks
  /// are nowhere, and whoever restores the commit fills them from Opened, by parameter. Those of
  /// the optimizer's states that stay nowhere are absent.
  bool Stands(int32_t storage) const;
  /// The opened commit, until the next; null if there is none. Its parameters, with their places.
  const SavedCommit *Opened() const;
  const std::vector<SavedParameter> &OpenedParameters() const;
  /// Reads a chunk of one of its tables, `index` by entry, then chunk. DataLoss if its checksum
  /// does not match. `data` is aligned to 4096.
  absl::Status ReadOpened(const SavedTable &, size_t index, void *data) const;

  /// Messages of the opening for the user, one line each. They report a damaged manifest that was
  /// mended, a path that was taken into use or is still read, and commits that the next will drop.
  std::vector<std::string> Notes() const;

  /// Bytes on each path, for the start table.
  std::vector<int64_t> BytesByPath() const;
  const std::string &Directory() const;

private:
  struct Impl;
  explicit StateStore(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl;
};

/// The error of a chunk whose checksum does not match. `persistent`: it is part of a commit.
absl::Status DamagedChunk(const std::string &storage, int64_t entry, int32_t chunk,
                          const std::string &file, int64_t offset, bool persistent = true);

} // namespace boa

#endif // BOA_RUNTIME_STATE_STATE_H
