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
#include "absl/strings/strip.h"

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

/// The same where the weights are those of the program, but stand in other places or have other
/// storages beside them.
absl::Status AnotherLayout(const std::string &home, const std::string &why) {
  return Another(home,
                 absl::StrCat(why, "; --from ", home, " begins a new training with its weights"));
}

std::string Describe(const SavedParameter &parameter) {
  return absl::StrFormat("[%s]", absl::StrJoin(parameter.shape, ", "));
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
  for (const SavedStorage &storage : commit.absent)
    if (IsMaster(storage))
      part = absl::StrFormat("lacks the chunks of %s, which are zero", storage.name);
  if (part.empty() && !manifest.tokenizer.empty())
    part = absl::StrFormat("has tokens of the tokenizer %s", manifest.tokenizer);
  if (part.empty())
    return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrFormat("%s was made by a newer Boa: it %s. This trainer cannot read that; use the "
                      "one that made it",
                      home, part));
}

/// The same parameters, of the same shapes, at the same places.
static absl::Status CheckParameters(const std::string &home,
                                    const std::vector<SavedParameter> &ours,
                                    const std::vector<SavedParameter> &theirs) {
  auto find = [](const std::vector<SavedParameter> &among, const std::string &name) {
    return std::find_if(among.begin(), among.end(),
                        [&](const SavedParameter &other) { return other.name == name; });
  };
  for (const SavedParameter &parameter : ours) {
    auto other = find(theirs, parameter.name);
    const std::string name(UserName(parameter.name));
    const bool frozen = IsFrozen(parameter.name);
    if (other == theirs.end() && find(theirs, frozen ? name : kFrozenPrefix + name) != theirs.end())
      return AnotherLayout(home, absl::StrFormat("%s is %s in the program and %s in the state",
                                                 name, frozen ? "frozen" : "trained",
                                                 frozen ? "trained" : "frozen"));
    if (other == theirs.end())
      return Another(home, absl::StrFormat("the state has no parameter %s", parameter.name));
    if (other->shape != parameter.shape)
      return Another(home, absl::StrFormat("%s is %s in the program and %s in the state",
                                           parameter.name, Describe(parameter), Describe(*other)));
  }
  for (const SavedParameter &parameter : theirs)
    if (find(ours, parameter.name) == ours.end())
      return Another(home, absl::StrFormat("the program has no parameter %s", parameter.name));
  for (const SavedParameter &parameter : ours)
    if (const SavedParameter &other = *find(theirs, parameter.name);
        other.offset != parameter.offset)
      return AnotherLayout(home,
                           absl::StrFormat("%s stands at %d in the program and at %d in the state",
                                           parameter.name, parameter.offset, other.offset));
  return absl::OkStatus();
}

static absl::Status CheckModel(const std::string &home, const Manifest &manifest,
                               const SavedCommit &commit, const Program &program) {
  if (absl::Status status = CheckParameters(home, ParametersOf(program), manifest.parameters);
      !status.ok())
    return status;
  std::vector<std::string> known;
  const std::vector<bool> states = StatesOfOptimizer(program);
  for (size_t s = 0; s < program.storages.size(); ++s) {
    const Storage &storage = program.storages[s];
    if (!storage.persistent)
      continue;
    known.push_back(storage.name);
    const SavedStorage wanted = SavedStorageOf(storage);
    const SavedTable *table = FindTable(commit, storage.name);
    if (table && SameShape(table->storage, wanted))
      continue;
    // Zeros fit any chunks. Before the first step the states of any optimizer are zero.
    if (states[s] && !table && (commit.record.step == 0 || IsAbsent(commit, storage.name)))
      continue;
    // Weights that are frozen have no master, which the other form would need.
    bool other_form = table ? IsMaster(wanted) && !IsFrozen(storage) &&
                                  table->storage.entries == wanted.entries &&
                                  table->storage.chunks == wanted.chunks
                            : wanted.role == "master";
    const std::string why =
        absl::StrFormat("%s has %s in the program and %s in the state", storage.name,
                        Describe(wanted), table ? Describe(table->storage) : "nothing");
    if (!other_form && table && IsFrozen(storage))
      return AnotherLayout(
          home, absl::StrFormat(
                    "the frozen weights of %s are of another type or size in the state",
                    absl::StripPrefix(storage.name, absl::StrCat("weights.", kFrozenPrefix))));
    if (!other_form)
      return table && table->storage.entries != wanted.entries ? Another(home, why)
                                                               : AnotherLayout(home, why);
  }
  for (const SavedTable &table : commit.tables)
    if (!IsMaster(table.storage) &&
        std::find(known.begin(), known.end(), table.storage.name) == known.end())
      return AnotherLayout(home,
                           absl::StrFormat("the program has no storage %s", table.storage.name));
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
