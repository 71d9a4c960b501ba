//===- impl.h - The parts of the state directory ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What state.cpp and the files state_*.cpp share; nobody else includes it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_IMPL_H
#define BOA_RUNTIME_STATE_IMPL_H

#include "runtime/state/durable_file.h"
#include "runtime/state/checksum.h"
#include "runtime/state/state.h"

#include "nlohmann/json.hpp"

#include <mutex>

namespace boa {

/// Where the chunks of one storage stand. Empty if it has no place on SSD.
struct StorageLayout {
  std::string name;
  bool persistent = false;
  int32_t chunks = 1;
  int64_t entries = 0, chunk_bytes = 0;
  std::vector<Extent> extents; // extent 0
  std::vector<uint8_t> current, committed;

  size_t Index(int64_t entry, int32_t chunk) const { return size_t(entry * chunks + chunk); }
};

/// Indices of a path's files in StateStore::Files.
inline int32_t DataFile(size_t path) { return int32_t(path * 2); }
inline int32_t ScratchFile(size_t path) { return int32_t(path * 2 + 1); }

/// A held lock file. One directory given for several paths is locked once: the
/// others have no descriptor.
struct Lock {
  Descriptor file;
  bool was_ours = false; // the directory held a lock file of a trainer before
};

std::string ManifestPath(const std::string &directory);
/// An error of writing to a state directory, with what to do.
absl::Status Unwritable(const absl::Status &);
/// What a program must have in common with the one that made a state.
nlohmann::json Fingerprint(const Program &);
/// How many of the bytes each path takes, in parts.
std::vector<double> StripeWeights(const Machine &, size_t paths);
/// Deals chunks to the paths (state_layout.cpp).
class Dealer;

struct StateStore::Impl {
  std::vector<std::string> directories;
  nlohmann::json fingerprint;
  std::string program_name;
  std::vector<double> weights;

  std::vector<StorageLayout> storages;
  std::vector<int64_t> half_bytes; // by path: of a data file
  std::vector<int64_t> file_bytes; // by file
  std::vector<IoFile> files;
  std::vector<IoLink> links;
  std::vector<Lock> locks;
  std::vector<Descriptor> descriptors;

  CommitRecord committed;
  absl::Status failed;      // of a commit: the next must not follow
  mutable std::mutex mutex; // guards the checksums
  std::map<std::pair<int32_t, int64_t>, uint64_t> checksums; // by extent

  static absl::StatusOr<std::unique_ptr<Impl>> Make(const Program &,
                                                    const std::vector<std::string> &directories);
  absl::Status TakeLocks(Undo &);
  void LayOut(const Program &);
  void PlaceChunks(const Storage &, StorageLayout &, Dealer &);
  void NameFiles();

  absl::Status CheckUnused() const;
  absl::Status CheckSpace() const;
  absl::Status MakeFile(size_t file);
  absl::Status OpenFile(size_t file);

  absl::Status ReadManifest(const Program &);
  absl::Status ReadWeights(const nlohmann::json &);
  absl::Status ReadRecord(const nlohmann::json &);
  absl::Status ReadChunks(const nlohmann::json &);
  std::string WriteManifest(const CommitRecord &) const;
  nlohmann::json WriteChunks() const;
  absl::Status Damaged(absl::string_view what) const;
};

} // namespace boa

#endif // BOA_RUNTIME_STATE_IMPL_H
