//===- manifest.h - The manifest of a state ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The manifest names the model, its computation, the paths, and for each commit that is
// kept the place and the checksum of every chunk. One line of JSON and one line with its
// checksum. A data file begins with a head of the same form, which never changes.
//
// Version 3 has a field that no trainer fills yet: tokenizer. Version 2 lacks it and
// everything else that is marked with "3" below. It is read, and written as version 2
// until the first commit.
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

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// Everything on SSD is in whole blocks; the first of a data file is its head.
constexpr int64_t kStateBlock = BOA_BLOCK_BYTES;

/// Limits of a manifest.
constexpr size_t kMostPaths = 256;
constexpr int64_t kManifestBytesOfChunk = 28;
constexpr int64_t kMostFileBytes = int64_t(1) << 52;
constexpr size_t kMostPlan = size_t(1) << 20; // bytes
// The compiler cuts a group into chunks of two million elements, of four bytes at most.
constexpr int64_t kMostChunkBytes = int64_t(8) << 20;
constexpr int64_t kMostStoredElements = int64_t(1) << 36; // of a parameter, or of its part
constexpr int32_t kManifestVersion = 3, kOldestManifestVersion = 2;

struct SavedPath {
  std::string id;        // of the path, as in its head
  std::string directory; // where it stood last, absolute
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

struct SavedTable {
  SavedStorage storage;
  std::vector<SavedChunk> chunks; // by entry, then chunk
};

struct SavedCommit {
  CommitRecord record; // 3: plan, environment and samples
  std::vector<SavedTable> tables;
  std::vector<SavedStorage> absent; // 3: without chunks; they read as zero, whatever the shape
  std::optional<Computation> computation; // 3: where it is not that of the last commit
};

/// How the commit has a parameter: in parts, or as a whole.
Parts PartsOf(const SavedCommit &, const SavedParameter &);
/// The table of that name, or null.
const SavedTable *FindTable(const SavedCommit &, const std::string &name);
/// Whether the commit lacks that storage, which reads as zero.
bool IsAbsent(const SavedCommit &, const std::string &storage);

struct Manifest {
  int32_t version = kManifestVersion;
  std::string state;    // the identity
  std::string model;    // its name
  std::string home;     // where it stood last, absolute
  int64_t sequence = 0; // grows with each one that is written
  std::vector<SavedPath> paths;
  std::vector<SavedPath> former; // of which no commit names anything; may come back
  std::vector<SavedParameter> parameters;
  std::vector<SavedCommit> commits; // oldest first; none: its making was cut short
  Computation computation;          // 3: of the last commit
  std::string tokenizer;            // 3: the identity; empty: the tokens are bytes
  std::optional<BaseState> base;    // 3
};

/// Whether its weights are bf16. Then those that are trained have the lower halves of masters.
bool HasHalves(const SavedCommit &);
/// The name of a parameter's group in a state.
std::string GroupOf(const SavedParameter &);

/// The computation that made one of its commits.
const Computation &ComputationOf(const Manifest &, const SavedCommit &);

/// Which of the paths a commit names, by their index.
std::vector<bool> NamedPaths(const Manifest &, size_t paths);

/// The text of a manifest, in its version.
std::string FormatManifest(const Manifest &);

/// Fails, with `path` in the message, if the text is no manifest (FailedPrecondition), is of
/// another version (Unimplemented) or is damaged (DataLoss). Its result is consistent: tables
/// are complete, and places are aligned and on known paths.
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
