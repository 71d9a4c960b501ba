//===- models.cpp - Which programs a state is for -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/models.h"

#include "runtime/state/computation.h"
#include "runtime/state/sealed.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <set>
#include <vector>

namespace boa {

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

absl::Status CheckProgram(const Program &program) {
  std::vector<std::string> written = {program.model.name};
  for (const Storage &storage : program.storages)
    written.push_back(storage.name);
  for (const SavedParameter &parameter : ParametersOf(program))
    written.push_back(parameter.name);
  for (const std::string &name : written)
    if (name.size() > kMostText)
      return absl::InvalidArgumentError(
          absl::StrFormat("program descriptor: the name `%s...` has %d bytes: a state can hold %d",
                          name.substr(0, 40), name.size(), kMostText));
  std::set<std::string> names;
  for (const Storage &storage : program.storages) {
    if (!storage.persistent && !storage.LivesOn(Home::ssd))
      continue;
    if (!names.insert(storage.name).second)
      return absl::InvalidArgumentError(
          absl::StrFormat("program descriptor: two storages `%s`", storage.name));
    int64_t chunks = std::max(storage.chunks, 1);
    if (storage.entry_count() < 1 || storage.bytes < 1 || storage.bytes % (chunks * kStateBlock))
      return absl::InvalidArgumentError(
          absl::StrFormat("program descriptor: storage `%s` has %d entries of %d bytes in %d "
                          "chunks: expected whole "
                          "blocks of %d bytes",
                          storage.name, storage.entry_count(), storage.bytes, chunks, kStateBlock));
  }
  return absl::OkStatus();
}

absl::Status CheckReadable(const std::string &home, const Manifest &manifest,
                           const SavedCommit &commit) {
  std::string part;
  if (!commit.absent.empty())
    part = absl::StrFormat("lacks the chunks of %s, which are zero", commit.absent[0].name);
  else if (!manifest.tokenizer.empty())
    part = absl::StrFormat("has tokens of the tokenizer %s", manifest.tokenizer);
  if (part.empty())
    return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrFormat("%s was made by a newer Boa: it %s. This trainer cannot read that; use the "
                      "one that made it",
                      home, part));
}

static absl::Status CheckModel(const std::string &home, const Manifest &manifest,
                               const SavedCommit &commit, const Program &program) {
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
    const SavedStorage wanted = SavedStorageOf(storage);
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
  // Only all of the weights together may be in another form.
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

absl::StatusOr<std::string> CheckContinues(const std::string &home, const Manifest &manifest,
                                           const SavedCommit &commit, const Program &program,
                                           bool changed_model) {
  return CheckComputation(absl::StrCat("`", home, "`"), ComputationOf(manifest, commit),
                          program.computation, changed_model,
                          CheckModel(home, manifest, commit, program));
}

} // namespace boa
