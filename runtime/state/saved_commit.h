//===- saved_commit.h - The files of a commit -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The texts of the files that never change:
//
//   commit.SUM.json   the record of a commit; it names a model and parts
//   model.SUM.json    the parameters and the computation of a program
//   part.SUM.json     chunk tables: places and checksums
//
// SUM is the hash of the text. A commit names everything by it, so commits share what did not
// change. Each is sealed, with the version of the manifest.
//
// Formatting and parsing are pure, from any thread. Parsing fails like ParseManifest. What it
// allocates is a multiple of the text.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_SAVED_COMMIT_H
#define BOA_RUNTIME_STATE_SAVED_COMMIT_H

#include "runtime/state/manifest.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <memory>
#include <string>
#include <vector>

namespace boa {

constexpr char kCommitFile[] = "commit", kModelFile[] = "model", kPartFile[] = "part";

/// KIND.SUM.json, or KIND.SUM.copy.json of the second copy.
std::string SealedName(absl::string_view kind, absl::string_view sum, bool copy = false);
/// Whether the name has this form, or that of such a file that is being written.
bool IsSealedName(absl::string_view name);

/// `paths`: Manifest::paths, by whose identities the texts name them.
std::string FormatCommit(const SavedCommit &, const std::vector<SavedPath> &paths);
std::string FormatModel(const SavedModel &);
std::string FormatPart(const std::vector<std::shared_ptr<ChunkTable>> &,
                       const std::vector<SavedPath> &paths);

/// A commit without its model and its chunk tables. `model`: the sum of the model.
absl::StatusOr<SavedCommit> ParseCommit(absl::string_view text, const std::string &file,
                                        const std::vector<SavedPath> &paths, std::string &model);
absl::StatusOr<SavedModel> ParseModel(absl::string_view text, const std::string &file);
/// Null for a table with chunks on a path that the state does not know.
absl::StatusOr<std::vector<std::shared_ptr<ChunkTable>>>
ParsePart(absl::string_view text, const std::string &file, const std::vector<SavedPath> &paths);

/// The model of a program, with its sum.
std::shared_ptr<const SavedModel> ModelOf(const Program &);

/// Whether the elements of all its parameters, in all entries, are fewer than its files can hold.
/// So their sums are numbers.
bool IsCountable(const SavedCommit &);

/// Whether the tables of a storage have each of its chunks once, and no others.
bool IsTiled(const SavedTable &);

} // namespace boa

#endif // BOA_RUNTIME_STATE_SAVED_COMMIT_H
