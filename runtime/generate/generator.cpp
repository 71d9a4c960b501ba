//===- generator.cpp - What may follow a text -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/generate/generator.h"

#include "runtime/abi/generation.h"
#include "runtime/device/memory.h"
#include "runtime/state/computation.h"
#include "runtime/support/interrupt.h"
#include "runtime/support/printable.h"
#include "runtime/weights/base_weights.h"
#include "runtime/weights/given_weights.h"
#include "runtime/weights/parameter_storages.h"
#include "runtime/weights/restore.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <system_error>
#include <utility>

namespace boa {
namespace {

/// The storage of that name, in memory and of at least `bytes`.
absl::StatusOr<int32_t> FindPort(const Program &program, const std::string &name, int64_t bytes) {
  for (size_t i = 0; i < program.storages.size(); ++i) {
    const Storage &storage = program.storages[i];
    if (storage.name == name && !storage.LivesOn(Home::ssd) && storage.bytes >= bytes)
      return static_cast<int32_t>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("program descriptor: no storage `", name, "` in memory with ", bytes, " bytes"));
}

bool Streams(const Program &program) {
  return std::any_of(program.storages.begin(), program.storages.end(),
                     [](const Storage &storage) { return storage.LivesOn(Home::ssd); });
}

void Note(const std::string &text) {
  if (!text.empty())
    std::cerr << Printable(text) << "\n";
}

} // namespace

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(const Program &program,
                                                             const Kernels &kernels,
                                                             const GenerationEntries &entries,
                                                             const GenerationSource &source) {
  std::unique_ptr<Generator> made(new Generator(program, entries));
  absl::Status status = made->FindPorts();
  if (status.ok())
    status = made->Open(kernels, source);
  if (!status.ok())
    return made->Explain(status);
  return made;
}

absl::Status Generator::FindPorts() {
  const int64_t context = program.model.context, row = program.model.vocab * 4;
  struct Wanted {
    int32_t *to;
    std::string name;
    int64_t bytes;
  };
  std::vector<Wanted> all;
  if (entries.predict) {
    all = {{tokens, "input.tokens", context * 4}, {&logits, "logits", context * row}};
    window.resize(size_t(context));
  } else {
    const int64_t prefill = PrefillRows(context) * 4;
    all = {{tokens, "input.tokens.prefill", prefill},
           {positions, "input.positions.prefill", prefill},
           {tokens + 1, "input.tokens.generate", 4},
           {positions + 1, "input.positions.generate", 4},
           {&logits, "logits", row}};
  }
  rows.resize(size_t(all.back().bytes / 4));
  for (const Wanted &wanted : all) {
    absl::StatusOr<int32_t> found = FindPort(program, wanted.name, wanted.bytes);
    if (!found.ok())
      return found.status();
    *wanted.to = *found;
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

absl::Status Generator::Open(const Kernels &kernels, const GenerationSource &source) {
  if (absl::Status status = CheckMemoryLeft(program); !status.ok())
    return status;
  std::string weights = source.weights.empty() ? source.state : source.weights;
  absl::StatusOr<CommitName> named = FindCommit(SystemFiles(), weights);
  if (!named.ok())
    return named.status();
  absl::StatusOr<bool> is_state = StateStore::Exists(SystemFiles(), named->directory);
  const bool has_commit = is_state.ok() && *is_state;
  if (named->step && !has_commit)
    return absl::NotFoundError(
        absl::StrCat(weights, ": ", named->directory, " holds no training state"));
  if (Streams(program)) {
    if (has_commit)
      return Stream(kernels, *named, source.changed_model);
    return absl::FailedPreconditionError(absl::StrCat(
        "the weights do not fit in the memory given, and `", weights,
        "` is no state from which they could be read for each token: give more memory, or make a "
        "state of them (boa import, or boa train --weights)"));
  }
  if (source.weights.empty() && !has_commit) {
    weights = source.state + "/model.safetensors";
    if (std::error_code error; !std::filesystem::exists(weights, error))
      return absl::NotFoundError(
          absl::StrCat("`", source.state,
                       "` holds no training: --state names its directory, and --weights the "
                       "weights of a model that was trained elsewhere"));
  }
  return Fill(kernels, weights, has_commit, source.changed_model);
}

absl::Status Generator::Fill(const Kernels &kernels, const std::string &weights, bool is_state,
                             bool changed_model) {
  // A commit of a state, or a file or folder.
  std::unique_ptr<BaseWeights> commit;
  std::unique_ptr<GivenWeights> given;
  if (is_state) {
    absl::StatusOr<std::unique_ptr<BaseWeights>> opened =
        BaseWeights::Open(SystemFiles(), program, weights);
    if (!opened.ok())
      return opened.status();
    commit = *std::move(opened);
  } else {
    absl::StatusOr<std::unique_ptr<GivenWeights>> opened = GivenWeights::Open(program, weights, {});
    if (!opened.ok())
      return opened.status();
    given = *std::move(opened);
  }
  const Computation trained = commit ? commit->computation() : given->computation();
  absl::StatusOr<std::string> change = CheckComputation(absl::StrCat("`", weights, "`"), trained,
                                                        program.computation, changed_model);
  if (!change.ok())
    return change.status();
  if (trained.version == 0 && program.computation.version != 0)
    *change = absl::StrCat("note: `", weights,
                           "` does not say what its program computes: only "
                           "parameters were compared");
  Note(*change);
  if (given)
    Note(given->NoteOfInitial());
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Create(program, kernels, /*state=*/nullptr, {});
  if (!engine.ok())
    return engine.status();
  of = *std::move(engine);
  if (given)
    return given->Fill(*of);
  return FillParameters(
      program, *of,
      [&](int64_t g, int64_t entry, int64_t p, int64_t begin, int64_t count, float *values) {
        const Group &group = program.groups[size_t(g)];
        return commit->Read(group, entry, group.parameters[size_t(p)], begin, count, values);
      });
}

absl::Status Generator::Stream(const Kernels &kernels, const CommitName &named,
                               bool changed_model) {
  OpenOptions opening;
  opening.changed_model = changed_model;
  absl::StatusOr<std::unique_ptr<StateStore>> opened =
      StateStore::OpenToRead(SystemFiles(), program, named.directory, named.step, opening);
  if (opened.ok() ? !*opened : absl::IsNotFound(opened.status())) {
    std::vector<std::string> directories = {named.directory};
    for (size_t i = 1; i < program.machine.ssd.size(); ++i)
      directories.push_back(program.machine.ssd[i].path);
    opened = StateStore::Open(SystemFiles(), program, directories, program.train.commit_keep,
                              named.step, opening);
  }
  if (!opened.ok())
    return opened.status();
  state = *std::move(opened);
  Note(state->ComputationChange());
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Create(program, kernels, state.get(), {});
  if (!engine.ok())
    return engine.status();
  of = *std::move(engine);
  return Restore(program, *state, *of);
}

//===----------------------------------------------------------------------===//
// Logits
//===----------------------------------------------------------------------===//

absl::StatusOr<const float *> Generator::Logits(const std::vector<int32_t> &text) {
  absl::StatusOr<const float *> next = Next(text);
  return next.ok() ? next : Explain(next.status());
}

/// Data that does not match its checksum may be that of a later commit.
absl::Status Generator::Explain(const absl::Status &error) const {
  const absl::Status kept = state ? state->CheckKept() : absl::OkStatus();
  return kept.ok() ? error : kept;
}

absl::StatusOr<const float *> Generator::Next(const std::vector<int32_t> &text) {
  const int64_t context = program.model.context, size = int64_t(text.size());
  const bool goes_on = size > context && first < size && size - first <= context;
  if (!goes_on && first != Unseen(size)) {
    first = Unseen(size);
    cached.clear();
  }
  const int32_t *seen = text.data() + first;
  const int64_t count = size - first;
  if (entries.predict)
    return Predict(seen, count);
  const auto differs = std::mismatch(cached.begin(), cached.end(), seen, seen + count - 1).first;
  cached.erase(differs, cached.end());
  if (absl::Status status = Prefill(seen, count - 1); !status.ok())
    return status;
  return Generate(seen[count - 1]);
}

/// The prediction for a token does not depend on those to its right.
absl::StatusOr<const float *> Generator::Predict(const int32_t *seen, int64_t count) {
  std::fill(window.begin(), window.end(), 0);
  std::copy_n(seen, count, window.begin());
  absl::Status status = of->Run(entries.predict, ++runs, 0,
                                {{tokens[0], 0, window.data(), int64_t(window.size()) * 4}},
                                {{logits, 0, rows.data(), int64_t(rows.size()) * 4}});
  if (!status.ok())
    return status;
  computed += count;
  return rows.data() + (count - 1) * program.model.vocab;
}

absl::Status Generator::Prefill(const int32_t *seen, int64_t until) {
  const int64_t most = PrefillRows(program.model.context);
  for (int64_t from; (from = int64_t(cached.size())) < until;) {
    if (Interrupted())
      return Interruption();
    // Rows to spare repeat the last one.
    const int64_t end = std::min(from + most, until);
    std::vector<int32_t> ids(size_t(most), seen[end - 1]), at(ids.size(), int32_t(end - 1));
    std::copy(seen + from, seen + end, ids.begin());
    std::iota(at.begin(), at.begin() + (end - from), int32_t(from));
    absl::Status status =
        of->Run(entries.prefill, ++runs, 0,
                {{tokens[0], 0, ids.data(), most * 4}, {positions[0], 0, at.data(), most * 4}});
    if (!status.ok())
      return status;
    cached.assign(seen, seen + end);
    computed += end - from;
  }
  return absl::OkStatus();
}

/// Of a token behind those that are cached.
absl::StatusOr<const float *> Generator::Generate(int32_t token) {
  int32_t at = int32_t(cached.size());
  absl::Status status =
      of->Run(entries.generate, ++runs, 0, {{tokens[1], 0, &token, 4}, {positions[1], 0, &at, 4}},
              {{logits, 0, rows.data(), int64_t(rows.size()) * 4}});
  if (!status.ok())
    return status;
  cached.push_back(token);
  ++computed;
  return rows.data();
}

} // namespace boa
