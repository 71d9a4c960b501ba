//===- manifest.h - The manifest of a state ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The manifest is the root of a state. It names the paths and the commits that are kept, and is
// rewritten by each commit. Everything else stands in files that never change and are named by the
// hash of their text (saved_commit.h). All of them are one line of JSON and one line with its
// checksum. A data file begins with a head of the same form, which never changes either.
//
// A storage is named ROLE.GROUP, and its entries hold the parameters GROUP.*: each at its
// offset, in elements. Weights of two bytes are the upper halves of their masters.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_MANIFEST_H
#define BOA_RUNTIME_STATE_MANIFEST_H

#include "runtime/abi/abi.h"
#include "runtime/abi/parts.h"
#include "runtime/state/state.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boa {

/// Everything on SSD is in whole blocks; the first of a data file is its head.
constexpr int64_t kStateBlock = BOA_BLOCK_BYTES;

/// Limits of a manifest.
constexpr size_t kMostPaths = 256; // of a commit; the manifest may know as many former ones
constexpr int64_t kMostCommits = int64_t(1) << 20;
constexpr int64_t kMostFileBytes = int64_t(1) << 52;
constexpr size_t kMostPlan = size_t(1) << 20; // bytes
// The compiler cuts a group into chunks of two million elements, of four bytes at most.
constexpr int64_t kMostChunkBytes = int64_t(8) << 20;
constexpr int64_t kMostStoredElements = int64_t(1) << 36; // of a parameter, or of its part
constexpr int64_t kMostStep = int64_t(1) << 62;
constexpr int32_t kManifestVersion = 4; // of all sealed files of a state
/// A table has at most so many chunks. So a commit writes again what changed, and little beside it.
constexpr int64_t kMostTableChunks = int64_t(1) << 14;

struct SavedPath {
  std::string id;        // of the path, as in its head
  std::string host;      // the machine that used it last
  std::string directory; // where it stood there, absolute
};

/// A parameter, and where it stands in its group's entries.
struct SavedParameter {
  std::string name; // group.parameter
  int64_t offset = 0;
  std::vector<int64_t> shape;
  int64_t split = -1; // the entries are its parts along this dimension, each of that shape
};
bool operator==(const SavedParameter &, const SavedParameter &);

/// The storage of a program as a commit holds it.
SavedStorage SavedStorageOf(const Storage &);
/// Whether both have the same chunks, whatever their names and contents.
bool SameShape(const SavedStorage &, const SavedStorage &);

/// The place of a chunk of a commit, and the checksum of its contents.
struct SavedChunk {
  Extent extent; // file: index into Manifest::paths
  uint64_t checksum = 0;
};

/// A file of chunk tables, and the path in whose directory it stands.
struct SavedPart {
  int32_t path = 0; // index into Manifest::paths
  std::string sum;
};

/// Chunks first, first + step, ... of a storage, where they stand. It is immutable, and shared by
/// all commits that have the same chunks. The step is 1, but where ranks own every so many chunks.
struct ChunkTable {
  std::string storage;
  int64_t chunk_bytes = 0;
  int64_t first = 0, step = 1; // by entry, then chunk
  std::vector<SavedChunk> chunks;
  SavedPart part;    // that holds it; without a sum until a commit writes it
  int32_t index = 0; // there

  /// The index of its last chunk in the storage.
  int64_t Last() const { return first + (int64_t(chunks.size()) - 1) * step; }
  /// The chunk of that index in the storage, or null.
  const SavedChunk *Find(int64_t chunk) const {
    const int64_t at = (chunk - first) / step;
    const bool has = chunk >= first && (chunk - first) % step == 0 && at < int64_t(chunks.size());
    return has ? &chunks[size_t(at)] : nullptr;
  }
};

struct SavedTable {
  SavedStorage storage;
  /// They have each chunk once. Empty until the parts of the commit are loaded.
  std::vector<std::shared_ptr<ChunkTable>> tables;
  std::vector<std::pair<int32_t, int32_t>>
      places; // the same, by part of the commit and index there

  /// `index` by entry, then chunk.
  const SavedChunk &Chunk(size_t index) const;
};

/// What commits of one program have in common.
struct SavedModel {
  std::vector<SavedParameter> parameters;
  Computation computation;
  std::string sum; // names its file; empty: not written yet
};

struct SavedCommit {
  CommitRecord record;
  std::string sum;    // names its file; empty: not written yet
  int64_t shards = 1; // the equal groups of micro-batches whose sums a tree adds
  std::shared_ptr<const SavedModel> model;
  std::vector<int32_t> paths; // on which its chunks stand, by index into Manifest::paths
  std::vector<SavedPart> parts;
  std::vector<SavedTable> tables;
  std::vector<SavedStorage> absent; // without chunks; they read as zero, whatever the shape
  /// Of its files: DataLoss if some are lost. Then it has its step and its sum alone.
  absl::Status fault;
};

/// How the commit has a parameter: in parts, or as a whole.
Parts PartsOf(const SavedCommit &, const SavedParameter &);
/// The table of that name, or null.
const SavedTable *FindTable(const SavedCommit &, const std::string &name);
/// Whether the commit lacks that storage, which reads as zero.
bool IsAbsent(const SavedCommit &, const std::string &storage);

struct Manifest {
  std::string state;    // the identity
  std::string model;    // its name
  std::string home;     // where it stood last, absolute
  int64_t sequence = 0; // grows with each one that is written
  /// Those that a commit names or that were given last; then others, which may come back.
  std::vector<SavedPath> paths;
  std::vector<SavedCommit> commits; // oldest first; none: its making was cut short
  std::string tokenizer;            // the identity; empty: the tokens are bytes
  std::optional<BaseState> base;
};

/// Whether its weights are bf16. Then those that are trained have the lower halves of masters.
bool HasHalves(const SavedCommit &);
/// Whether a storage of that name has frozen weights, which all commits share.
bool IsFrozenStorage(const std::string &name);
/// The name of a parameter's group in a state.
std::string GroupOf(const SavedParameter &);

/// Which of the paths a commit names, by their index.
std::vector<bool> NamedPaths(const Manifest &, size_t paths);

/// The text of a manifest. It names commits by their steps and sums.
std::string FormatManifest(const Manifest &);

/// The manifest, with the steps and sums of its commits alone. Fails, with `path` in the message,
/// if the text is no manifest (FailedPrecondition), is of another version (Unimplemented) or is
/// damaged (DataLoss).
absl::StatusOr<Manifest> ParseManifest(absl::string_view text, const std::string &path);

/// The first block of a data file.
struct DataHead {
  std::string state, path; // identities
  std::string home;        // of the state when the file was made, absolute
};

/// kStateBlock bytes.
std::string FormatHead(const DataHead &);
absl::StatusOr<DataHead> ParseHead(absl::string_view block, const std::string &path);

/// The parameters of a program, as a manifest lists them.
std::vector<SavedParameter> ParametersOf(const Program &);

} // namespace boa

#endif // BOA_RUNTIME_STATE_MANIFEST_H
