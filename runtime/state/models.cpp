//===- models.cpp - Which programs a state is for -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/models.h"

#include "runtime/io/file_system.h"
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

/// The same where the weights are those of the program, but stand in other places or have other
/// storages beside them.
absl::Status AnotherLayout(const std::string &home, const std::string &why) {
  return Another(home,
                 absl::StrCat(why, "; --from ", home, " begins a new training with its weights"));
}

std::string Describe(const SavedStorage &storage) {
  return absl::StrFormat("%d entries of %d chunks of %d bytes", storage.entries, storage.chunks,
                         storage.chunk_bytes);
}

//===----------------------------------------------------------------------===//
// Parameters and storages of a program and of a commit
//===----------------------------------------------------------------------===//

/// Finds what of a commit a program goes on with. Each check names the parameter or the storage
/// that does not fit.
class Matching {
public:
  Matching(const std::string &home, const SavedCommit &commit, const Program &program)
      : home(home), commit(commit), parameters(commit.model->parameters), program(program),
        narrow(HasHalves(commit)) {}

  absl::Status Match(Continuation &);

private:
  /// The parameters of a group of the program, in its order; null: the state has no such one.
  using Found = std::vector<const SavedParameter *>;

  absl::StatusOr<Found> FindParameters(const Group &, Continuation &) const;
  absl::Status CheckWeights(const Group &, const Found &) const;
  absl::Status CheckStates(const Group &, const Found &, const Continuation &) const;
  bool IsSameLayout(const Group &, const Found &) const;
  absl::Status CheckOthers(const Continuation &) const;
  absl::Status Differs(const Storage &, const SavedTable *) const;
  const SavedTable *TableOf(const std::string &role, const SavedParameter &parameter) const {
    return FindTable(commit, absl::StrCat(role, ".", GroupOf(parameter)));
  }

  const std::string &home;
  const SavedCommit &commit;
  const std::vector<SavedParameter> &parameters; // of the commit
  const Program &program;
  const bool narrow; // the commit's weights are bf16
};

absl::Status Matching::Differs(const Storage &storage, const SavedTable *table) const {
  const SavedStorage wanted = SavedStorageOf(storage);
  const std::string why =
      absl::StrFormat("%s has %s in the program and %s in the state", storage.name,
                      Describe(wanted), table ? Describe(table->storage) : "nothing");
  return table && table->storage.entries != wanted.entries ? Another(home, why)
                                                           : AnotherLayout(home, why);
}

absl::StatusOr<Matching::Found> Matching::FindParameters(const Group &group,
                                                         Continuation &found) const {
  const bool frozen = IsFrozen(program.storages[size_t(group.weights)]);
  Found pairs;
  for (const Parameter &parameter : group.parameters) {
    const std::vector<int64_t> shape = Parts(group, parameter).WholeShape();
    const std::string name = absl::StrCat(group.name, ".", parameter.name);
    auto other =
        std::find_if(parameters.begin(), parameters.end(),
                     [&](const SavedParameter &saved) { return UserName(saved.name) == name; });
    pairs.push_back(other == parameters.end() ? nullptr : &*other);
    if (!pairs.back()) {
      found.added.push_back(name);
      continue;
    }
    const std::vector<int64_t> saved = PartsOf(commit, *other).WholeShape();
    if (saved != shape)
      return Another(home, absl::StrFormat("%s is [%s] in the program and [%s] in the state", name,
                                           absl::StrJoin(shape, ", "), absl::StrJoin(saved, ", ")));
    if (frozen != IsFrozen(other->name))
      (frozen ? found.frozen : found.thawed).push_back(name);
  }
  return pairs;
}

/// Each parameter lies in the chunks of its weights, and has the halves of its masters.
absl::Status Matching::CheckWeights(const Group &group, const Found &pairs) const {
  const Storage &weights = program.storages[size_t(group.weights)];
  const int64_t wholes = IsOfParts(group) ? 1 : weights.entry_count();
  for (const SavedParameter *parameter : pairs) {
    if (!parameter)
      continue;
    const SavedTable *table = TableOf("weights", *parameter);
    if (!table || (parameter->split < 0 && table->storage.entries != wholes))
      return Differs(weights, table);
    const int64_t room = table->storage.chunks * (table->storage.chunk_bytes / (narrow ? 2 : 4));
    if (parameter->offset > room || CountElements(parameter->shape) > room - parameter->offset)
      return Another(home, absl::StrCat(parameter->name, " is beyond the chunks of its weights"));
    const SavedTable *low = TableOf("low", *parameter);
    if (narrow && !IsFrozen(parameter->name) && !(low && SameShape(low->storage, table->storage)))
      return Another(home, absl::StrCat("it lacks the lower halves of ", table->storage.name));
    // Weights that are frozen have no lower halves, which the other form would need or lose.
    if (IsFrozen(weights) && IsFrozen(parameter->name) && narrow != (group.weight_type == "bf16"))
      return AnotherLayout(
          home,
          absl::StrFormat("the frozen weights of %s are of another type in the state", group.name));
  }
  return absl::OkStatus();
}

absl::Status Matching::CheckStates(const Group &group, const Found &pairs,
                                   const Continuation &found) const {
  for (size_t i = 0; i < group.states.size(); ++i) {
    const Storage &storage = program.storages[size_t(group.states[i])];
    const std::string &type = program.optimizer.states[i].type;
    for (const SavedParameter *parameter : pairs) {
      if (!parameter || IsFrozen(parameter->name))
        continue;
      const SavedTable *table = TableOf(storage.role, *parameter);
      // Zeros fit any chunks. Before the first step the states of any optimizer are zero.
      if (!table && (commit.record.step == 0 ||
                     IsAbsent(commit, absl::StrCat(storage.role, ".", GroupOf(*parameter)))))
        continue;
      const SavedStorage &weights = TableOf("weights", *parameter)->storage;
      SavedStorage wanted = weights;
      wanted.chunk_bytes = StateBytes(type, weights.chunk_bytes / (narrow ? 2 : 4));
      if (!table || !SameShape(table->storage, wanted))
        return Differs(storage, table);
      // The scale of a block is that of its neighbours, too.
      if (IsCode(type) && !found.stands[size_t(group.states[i])])
        return AnotherLayout(home, absl::StrFormat("%s in 8 bits cannot move to other places, as "
                                                   "those of %s would",
                                                   storage.role, UserName(parameter->name)));
    }
  }
  return absl::OkStatus();
}

/// Whether the group has the same parameters in the same places, and no others.
bool Matching::IsSameLayout(const Group &group, const Found &pairs) const {
  const std::string stored = StoredName(program, group);
  for (size_t i = 0; i < pairs.size(); ++i)
    if (!pairs[i] || GroupOf(*pairs[i]) != stored ||
        pairs[i]->offset != group.parameters[i].offset ||
        pairs[i]->split != group.parameters[i].split)
      return false;
  return size_t(
             std::count_if(parameters.begin(), parameters.end(), [&](const SavedParameter &saved) {
               return GroupOf(saved) == stored;
             })) == pairs.size();
}

/// Of the commit, what the program lacks; of the program, what is of no group.
absl::Status Matching::CheckOthers(const Continuation &found) const {
  std::set<std::string> known;
  for (const Storage &storage : program.storages)
    if (storage.persistent)
      known.insert(storage.name);
  std::set<int64_t> grouped;
  std::set<std::string> wanted;
  for (const Group &group : program.groups) {
    grouped.insert({group.weights, group.low});
    grouped.insert(group.states.begin(), group.states.end());
    for (const Parameter &parameter : group.parameters)
      wanted.insert(absl::StrCat(group.name, ".", parameter.name));
  }
  for (const SavedParameter &saved : parameters)
    if (wanted.count(std::string(UserName(saved.name))) == 0)
      return Another(
          home, absl::StrCat(found.added.empty() ? ""
                                                 : absl::StrCat("the state has no parameter ",
                                                                found.added[0], ", and "),
                             "the program has no parameter ", std::string(UserName(saved.name))));
  for (size_t s = 0; s < program.storages.size(); ++s) {
    const Storage &storage = program.storages[s];
    const SavedTable *table = FindTable(commit, storage.name);
    if (storage.persistent && grouped.count(int64_t(s)) == 0 &&
        !(table && SameShape(table->storage, SavedStorageOf(storage))))
      return Differs(storage, table);
  }
  // A program that updates nothing commits nothing, and needs no states of an optimizer.
  if (program.optimizer.name.empty())
    return absl::OkStatus();
  for (const SavedTable &table : commit.tables) {
    const bool of_optimizer =
        std::any_of(program.optimizer.states.begin(), program.optimizer.states.end(),
                    [&](const OptimizerState &state) { return state.name == table.storage.role; });
    if (!IsMaster(table.storage) && !of_optimizer && known.count(table.storage.name) == 0)
      return AnotherLayout(home,
                           absl::StrFormat("the program has no storage %s", table.storage.name));
  }
  return absl::OkStatus();
}

absl::Status Matching::Match(Continuation &found) {
  found.stands.assign(program.storages.size(), false);
  std::vector<Found> all;
  for (const Group &group : program.groups) {
    absl::StatusOr<Found> pairs = FindParameters(group, found);
    if (!pairs.ok())
      return pairs.status();
    all.push_back(*std::move(pairs));
  }
  if (absl::Status status = CheckOthers(found); !status.ok())
    return status;
  auto stands = [&](int64_t storage) {
    const SavedTable *table = FindTable(commit, program.storages[size_t(storage)].name);
    return table && SameShape(table->storage, SavedStorageOf(program.storages[size_t(storage)]));
  };
  for (size_t s = 0; s < program.storages.size(); ++s)
    found.stands[s] = program.storages[s].persistent && stands(int64_t(s));
  for (size_t g = 0; g < all.size(); ++g) {
    const Group &group = program.groups[g];
    const bool same = IsSameLayout(group, all[g]);
    // A weight and its lower half go together.
    const bool masters = same && narrow == (group.weight_type == "bf16") && stands(group.weights) &&
                         (group.low < 0 || stands(group.low));
    found.stands[size_t(group.weights)] = masters;
    if (group.low >= 0)
      found.stands[size_t(group.low)] = masters;
    for (int64_t state : group.states)
      found.stands[size_t(state)] = same && stands(state);
    absl::Status status = CheckWeights(group, all[g]);
    if (status.ok())
      status = CheckStates(group, all[g], found);
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}

} // namespace

absl::Status CheckProgram(const Program &program, int64_t keep) {
  std::vector<std::string> written = {program.model.name};
  for (const Storage &storage : program.storages)
    written.push_back(storage.name);
  std::set<std::string> parameters;
  for (const SavedParameter &parameter : ParametersOf(program)) {
    written.push_back(parameter.name);
    if (!parameters.insert(parameter.name).second)
      return absl::InvalidArgumentError(
          absl::StrFormat("program descriptor: two parameters `%s`", parameter.name));
    if (CountElements(parameter.shape) > kMostStoredElements)
      return absl::InvalidArgumentError(
          absl::StrFormat("program descriptor: parameter `%s` has %d elements: a state can hold %d",
                          parameter.name, CountElements(parameter.shape), kMostStoredElements));
  }
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
    if (storage.persistent && storage.bytes / chunks > kMostChunkBytes)
      return absl::InvalidArgumentError(absl::StrFormat(
          "program descriptor: storage `%s` has chunks of %d bytes: a state can hold %d",
          storage.name, storage.bytes / chunks, kMostChunkBytes));
  }
  if (keep > kMostCommits)
    return absl::ResourceExhaustedError(absl::StrFormat(
        "a state can keep at most %d commits, not %d: keep fewer commits", kMostCommits, keep));
  return absl::OkStatus();
}

absl::Status CheckReadable(const std::string &home, const Manifest &manifest,
                           const SavedCommit &commit) {
  std::string part;
  for (const SavedStorage &storage : commit.absent)
    if (IsMaster(storage))
      part = absl::StrFormat("lacks the chunks of %s, which are zero", storage.name);
  if (part.empty() && commit.shards != 1)
    part = absl::StrFormat("has sums of %d shards", commit.shards);
  if (part.empty() && !manifest.tokenizer.empty())
    part = absl::StrFormat("has tokens of the tokenizer %s", manifest.tokenizer);
  if (part.empty())
    return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrFormat("%s was made by a newer Boa: it %s. This trainer cannot read that; use the "
                      "one that made it",
                      home, part));
}

absl::StatusOr<Continuation> CheckContinues(const std::string &home, const SavedCommit &commit,
                                            const Program &program, bool changed_model) {
  Continuation found;
  absl::StatusOr<std::string> change =
      CheckComputation(absl::StrCat("`", home, "`"), commit.model->computation, program.computation,
                       changed_model, Matching(home, commit, program).Match(found));
  if (!change.ok())
    return change.status();
  if (!found.added.empty() && !changed_model)
    return Another(home, absl::StrFormat("the state has no parameter %s; --changed-model begins "
                                         "with its initial values",
                                         found.added[0]));
  found.change = *std::move(change);
  return found;
}

} // namespace boa
