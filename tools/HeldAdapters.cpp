//===- HeldAdapters.cpp - The adapters that a state holds -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/HeldAdapters.h"

#include "runtime/io/file_system.h"
#include "runtime/state/commit_name.h"
#include "runtime/state/manifest_files.h"
#include "runtime/support/printable.h"
#include "runtime/weights/parameter_names.h"

#include "absl/strings/str_cat.h"

#include <set>
#include <utility>
#include <vector>

namespace boa {
namespace {

/// Of the commit, or of the last one. Without text if it has none, or if there is no such commit.
frontend::HeldAdapters readAdapters(const std::string &state, std::optional<int64_t> at) {
  frontend::HeldAdapters held = {absl::StrCat("`", state, "`"), "", "", /*bind=*/true};
  const absl::StatusOr<ReadManifests> read = ReadManifest(SystemFiles(), state);
  if (!read.ok())
    return held;
  for (const SavedCommit &commit : read->manifest.commits)
    for (auto [key, text] :
         {std::pair(kAdapters, &held.text), std::pair(kAdapterDropout, &held.dropout)}) {
      const auto &facts = commit.record.extra;
      if (auto found = facts.find(key); !at || commit.record.step == *at)
        *text = found == facts.end() ? "" : found->second;
    }
  return held;
}

/// The model without adapters; none if the spec is wrong. Some specs are right with adapters alone:
/// they name parameters of those.
std::optional<frontend::ModelSpec> findModel(const CompileRequest &compile) {
  std::vector<std::string> overrides;
  for (const std::string &override : compile.overrides)
    if (override.rfind("train.adapters", 0) != 0)
      overrides.push_back(override);
  for (const char *adapters : {"none", "lora(rank = 1, alpha = 1, targets = \"all-linear\")"}) {
    overrides.push_back(absl::StrCat("train.adapters=", adapters));
    frontend::FrontendResult result = frontend::compileTexts(compile.texts, overrides);
    if (result.spec)
      return result.spec->base ? std::move(result.spec->base) : std::move(result.spec->model);
  }
  return std::nullopt;
}

} // namespace

absl::Status useHeldAdapters(const std::string &state, std::optional<int64_t> at, bool bind,
                             CompileRequest &compile) {
  if (compile.isModule())
    return absl::OkStatus();
  if (absl::Status status = readTexts(compile); !status.ok())
    return status;
  const std::optional<frontend::Outline> outline =
      frontend::outlineTexts(compile.texts, compile.overrides);
  if (!outline)
    return absl::OkStatus(); // compiling it says why
  const absl::StatusOr<CommitName> named =
      FindCommit(SystemFiles(), state.empty() ? outline->state : state);
  if (!named.ok())
    return absl::OkStatus();
  frontend::HeldAdapters held = readAdapters(named->directory, named->step ? named->step : at);
  held.bind = bind;
  if (!held.text.empty())
    compile.held = std::move(held);
  return absl::OkStatus();
}

absl::Status useAdapter(const PeftAdapter &adapter, CompileRequest &compile) {
  if (compile.isModule())
    return absl::OkStatus(); // the trainer compares them
  if (absl::Status status = readTexts(compile); !status.ok())
    return status;
  const std::optional<frontend::ModelSpec> model = findModel(compile);
  if (!model)
    return absl::OkStatus(); // compiling it says why
  std::set<std::string> tensors;
  for (const frontend::StageSpec &stage : model->stages)
    for (const frontend::ParamSpec &param : stage.params)
      if (!param.external.empty())
        tensors.insert(param.external);
  const absl::StatusOr<std::string> settings = adapter.SettingsFor(tensors);
  if (!settings.ok())
    return settings.status();
  compile.held = frontend::HeldAdapters{absl::StrCat("`", adapter.folder(), "`"), *settings,
                                        adapter.dropout()};
  return absl::OkStatus();
}

void nameHeldAdapters(const CompileRequest &compile, const TrainSettings &train, std::FILE *out) {
  if (!compile.held)
    return;
  const std::optional<frontend::Outline> outline =
      frontend::outlineTexts(compile.texts, compile.overrides);
  if (!outline || outline->hasAdapters)
    return;
  std::string text = train.adapters;
  if (train.adapter_dropout > 0)
    text.insert(text.size() - 1, absl::StrCat(", dropout = ", train.adapter_dropout));
  std::fprintf(out, "with the adapters of %s: %s\n", Printable(compile.held->of).c_str(),
               Printable(text).c_str());
}

} // namespace boa
