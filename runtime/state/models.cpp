//===- models.cpp - Which programs a state is for -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state belongs to a model, told by its parameters and where they stand, and to
// an optimizer, told by its persistent storages; and to a computation. Master weights may be in one
// storage or in two halves.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/impl.h"

#include "runtime/state/checksum.h"
#include "runtime/state/computation.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>

namespace boa {

bool SameShape(const SavedStorage &a, const SavedStorage &b) {
  return a.entries == b.entries && a.chunks == b.chunks && a.chunk_bytes == b.chunk_bytes;
}

const SavedTable *FindTable(const SavedCommit &commit, const std::string &name) {
  for (const SavedTable &table : commit.tables)
    if (table.storage.name == name)
      return &table;
  return nullptr;
}

namespace {

/// Master weights are in one storage (f32) or in two halves, and the one becomes
/// the other without a loss.
bool IsMaster(const SavedStorage &storage) {
  return storage.role == "weights" || storage.role == "master";
}

absl::Status Another(const std::string &home, const std::string &why) {
  return absl::FailedPreconditionError(
      absl::StrFormat("%s is the state of another model or optimizer: %s", home, why));
}

std::string Describe(const SavedParameter &parameter) {
  return absl::StrFormat("%s: [%s] at %d", parameter.name, absl::StrJoin(parameter.shape, ", "),
                         parameter.offset);
}

std::string Describe(const SavedStorage &storage) {
  return absl::StrFormat("%d entries of %d chunks of %d bytes", storage.entries, storage.chunks,
                         storage.chunk_bytes);
}

} // namespace

/// Whether it has nothing that only a later trainer can read.
absl::Status StateStore::Impl::CheckReadable(const SavedCommit &commit) const {
  std::string part;
  if (manifest.base)
    part = absl::StrFormat("holds the differences from the state in %s", manifest.base->directory);
  else if (!commit.absent.empty())
    part = absl::StrFormat("lacks the chunks of %s, which are zero", commit.absent[0].name);
  else if (!manifest.tokenizer.empty())
    part = absl::StrFormat("has tokens of the tokenizer %s", manifest.tokenizer);
  if (part.empty())
    return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrFormat("%s was made by a newer Boa: it %s. This trainer cannot read that; use the "
                      "one that made it",
                      paths[0].directory, part));
}

absl::Status StateStore::Impl::CheckModel(const Program &program, const SavedCommit &commit) const {
  const std::string &home = paths[0].directory;
  std::vector<SavedParameter> ours = ParametersOf(program);
  const std::vector<SavedParameter> &theirs = manifest.parameters;
  for (size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i)
    if (i >= ours.size() || i >= theirs.size() || !(ours[i] == theirs[i]))
      return Another(
          home, absl::StrFormat("the program has %s, the state has %s",
                                i < ours.size() ? Describe(ours[i]) : "no more parameters",
                                i < theirs.size() ? Describe(theirs[i]) : "no more parameters"));
  std::vector<std::string> known;
  for (const Storage &storage : program.storages) {
    if (!storage.persistent)
      continue;
    known.push_back(storage.name);
    SavedStorage wanted{storage.name, storage.role, storage.entry_count(),
                        std::max(storage.chunks, 1), storage.bytes / std::max(storage.chunks, 1)};
    const SavedTable *table = FindTable(commit, storage.name);
    if (table && SameShape(table->storage, wanted))
      continue;
    bool other_form = table ? IsMaster(wanted) && table->storage.entries == wanted.entries &&
                                  table->storage.chunks == wanted.chunks
                            : wanted.role == "master";
    if (!other_form)
      return Another(home, absl::StrFormat("%s has %s in the program and %s in the state",
                                           storage.name, Describe(wanted),
                                           table ? Describe(table->storage) : "nothing"));
  }
  for (const SavedTable &table : commit.tables)
    if (!IsMaster(table.storage) &&
        std::find(known.begin(), known.end(), table.storage.name) == known.end())
      return Another(home, absl::StrFormat("the program has no storage %s", table.storage.name));
  // What is in another form must be all of it.
  int64_t ours_bytes = 0, their_bytes = 0;
  for (const Storage &storage : program.storages)
    if (storage.persistent && (storage.role == "weights" || storage.role == "master"))
      ours_bytes += storage.entry_count() * storage.bytes;
  for (const SavedTable &table : commit.tables)
    if (IsMaster(table.storage))
      their_bytes += int64_t(table.chunks.size()) * table.storage.chunk_bytes;
  if (ours_bytes != their_bytes)
    return Another(home,
                   absl::StrFormat("its weights take %d bytes in the state and %d in the program",
                                   their_bytes, ours_bytes));
  return absl::OkStatus();
}

/// Fails unless the program may continue from the commit. Sets `change`.
absl::Status StateStore::Impl::CheckContinues(const Program &program, const SavedCommit &commit) {
  absl::StatusOr<std::string> said =
      CheckComputation(absl::StrCat("`", paths[0].directory, "`"), ComputationOf(manifest, commit),
                       program.computation, options.changed_model, CheckModel(program, commit));
  if (!said.ok())
    return said.status();
  change = *std::move(said);
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Weights in another form
//===----------------------------------------------------------------------===//

std::vector<SavedStorage> StateStore::Foreign() const {
  std::vector<SavedStorage> foreign;
  const SavedCommit *commit = impl->Opened();
  for (size_t i = 0; commit && i < commit->tables.size(); ++i) {
    const SavedStorage &storage = commit->tables[i].storage;
    bool known = std::any_of(impl->tables.begin(), impl->tables.end(), [&](const Table &table) {
      return table.persistent && table.storage.name == storage.name &&
             SameShape(table.storage, storage);
    });
    if (!known)
      foreign.push_back(storage);
  }
  return foreign;
}

absl::Status StateStore::ReadForeign(const std::string &name, int64_t entry, int32_t chunk,
                                     void *data) {
  const SavedCommit *commit = impl->Opened();
  const SavedTable *table = commit ? FindTable(*commit, name) : nullptr;
  if (!table || entry < 0 || entry >= table->storage.entries || chunk < 0 ||
      chunk >= table->storage.chunks)
    return absl::NotFoundError(absl::StrCat("the state has no chunk ", chunk, " of ", name));
  const SavedChunk &saved = table->chunks[size_t(entry * table->storage.chunks + chunk)];
  const StatePath &path = impl->paths[size_t(saved.extent.file)];
  int64_t bytes = table->storage.chunk_bytes;
  if (absl::Status status = path.data->Read(saved.extent.offset, data, bytes); !status.ok())
    return status;
  if (boa::Checksum(data, bytes) == saved.checksum)
    return absl::OkStatus();
  return DamagedChunk(table->storage.name, entry, chunk, path.DataPath(), saved.extent.offset);
}

} // namespace boa
