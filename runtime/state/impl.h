//===- impl.h - The parts of the state directory ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the files of this folder share; nobody else includes it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_IMPL_H
#define BOA_RUNTIME_STATE_IMPL_H

#include "runtime/state/manifest.h"
#include "runtime/state/pool.h"
#include "runtime/state/state.h"

#include <memory>
#include <mutex>
#include <unordered_map>

namespace boa {

/// A directory that holds a part of the state.
struct StatePath {
  std::string directory; // as it was given
  std::string real;      // absolute, without links
  std::string id;
  bool given = true;                 // else: read only, until no commit names it
  double weight = 1;                 // share of the bytes
  std::shared_ptr<Directory> folder; // through which all files of the path are reached
  std::unique_ptr<OpenFile> lock, data;
  int64_t bytes = 0;                              // of the data file; 0: there is none yet
  std::vector<std::pair<int64_t, int64_t>> taken; // what commits name, until `pool` is filled
  Pool pool;

  std::string DataPath() const { return directory + "/data"; }
};

/// Where the chunks of one storage of the program stand. By index: entry, then
/// chunk. Empty if it has no place on SSD.
struct Table {
  SavedStorage storage;
  bool persistent = false;
  std::vector<int32_t> path;   // that the chunk is dealt to; -1: none, it lives in memory
  std::vector<Extent> current; // newest contents
  std::vector<Extent> spare;   // taken from the pool together with a neighbour's
  std::vector<uint8_t> named;  // persistent: whether a commit names `current`

  size_t Index(int64_t entry, int32_t chunk) const {
    return size_t(entry * storage.chunks + chunk);
  }
};

struct ExtentHash {
  size_t operator()(const Extent &extent) const {
    return size_t(extent.offset / kStateBlock) * 0x9e3779b97f4a7c15 + size_t(extent.file);
  }
};

/// What was made so far; removed again unless it is kept.
class Undo {
public:
  explicit Undo(FileSystem &disk) : disk(disk) {}
  ~Undo();
  void AddFile(std::shared_ptr<Directory> directory, std::string name) {
    files.push_back({std::move(directory), std::move(name)});
  }
  void AddDirectory(std::string path) { directories.push_back(std::move(path)); }
  void Keep() {
    files.clear();
    directories.clear();
  }

private:
  FileSystem &disk;
  std::vector<std::pair<std::shared_ptr<Directory>, std::string>> files;
  std::vector<std::string> directories;
};

constexpr char kManifest[] = "manifest.json", kManifestCopy[] = "manifest.copy.json";
constexpr char kData[] = "data", kLock[] = "lock";

/// Both manifests of a home, and what they say together.
struct ReadManifests {
  Manifest manifest; // the newer of those that are whole
  std::string note;  // what was wrong with the other
};
absl::StatusOr<ReadManifests> ReadManifest(Directory &home);
absl::StatusOr<ReadManifests> ReadManifest(FileSystem &, const std::string &home);

/// The identities at the head of a data file.
absl::StatusOr<DataHead> ReadHead(const OpenFile &, int64_t size);
absl::Status OfAnother(const std::string &directory, const DataHead &);

/// The same chunks, whatever is in them.
bool SameShape(const SavedStorage &, const SavedStorage &);
/// The table of that name, or null.
const SavedTable *FindTable(const SavedCommit &, const std::string &name);

/// With what can be done where a directory cannot be written.
absl::Status Unwritable(const absl::Status &);

struct StateStore::Impl {
  explicit Impl(FileSystem &disk) : disk(disk) {}

  FileSystem &disk;
  std::vector<StatePath> paths; // those given, in their order, then others
  std::vector<IoFile> files;    // by path: its data file
  std::vector<IoLink> links;
  std::vector<Table> tables; // by storage of the program
  Manifest manifest;         // as last written; extents by index into `paths`
  uint64_t written = 0;      // checksum of its text; 0: this process has written none
  Computation computation;   // of the program
  std::string change;        // from the state's computation to it, in words
  OpenOptions options;       // of Create or Open
  CommitRecord opened;       // the commit that this process is at, if it
  bool began = false;        // has one
  int64_t keep = 1;
  std::vector<std::string> notes;
  absl::Status failed; // of a commit or of the pool: nothing may follow
  mutable std::mutex mutex;
  std::unordered_map<Extent, uint64_t, ExtentHash> checksums; // under mutex

  // paths.cpp
  static absl::StatusOr<std::unique_ptr<Impl>>
  Make(FileSystem &, const Program &, const std::vector<std::string> &directories, int64_t keep);
  absl::Status RefuseOthers() const;
  absl::Status MakeDirectories(Undo &);
  absl::Status OpenPaths();
  absl::Status CheckPaths() const;
  absl::Status LockPath(StatePath &, Undo &);
  absl::Status MarkLocks();
  absl::Status FindPaths(Undo &);
  absl::Status FindUngivenPath(const SavedPath &, Undo &);
  absl::Status RefuseCopy(const std::vector<SavedPath> &known,
                          const std::vector<int32_t> &place) const;

  // space.cpp
  absl::Status CheckSpace() const;
  absl::Status LockData(StatePath &);
  absl::Status OpenData(StatePath &);
  absl::Status OpenData();
  absl::Status MakeData(Undo &);

  // layout.cpp
  static absl::Status CheckProgram(const Program &);
  void LayOut(const Program &);
  absl::Status CheckPlaces();
  std::vector<int64_t> BytesNeeded() const;
  absl::Status FillPools();
  absl::Status TakeRun(Table &, int64_t entry, int32_t path);
  absl::StatusOr<int64_t> TakeOne(StatePath &, int64_t bytes);

  // models.cpp
  absl::Status CheckReadable(const SavedCommit &) const;
  absl::Status CheckModel(const Program &, const SavedCommit &) const;
  absl::Status CheckContinues(const Program &, const SavedCommit &);

  // state.cpp
  absl::Status TakePaths(Undo &);
  absl::Status Begin(const Program &, Undo &);
  void Adopt(const SavedCommit &);
  absl::Status CheckUnchanged() const;
  absl::Status CheckManifests() const;
  absl::Status WriteManifests();
  absl::StatusOr<std::vector<SavedTable>> TablesNow() const;
  const SavedCommit *Opened() const;
  void GiveBack(const std::vector<SavedCommit> &dropped);
};

} // namespace boa

#endif // BOA_RUNTIME_STATE_IMPL_H
