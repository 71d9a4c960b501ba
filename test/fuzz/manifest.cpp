//===- manifest.cpp - Any text as a sealed file of a state ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input as it is, and its first line with a checksum that matches, so that
// what stands behind the checksum is reached. What is accepted, written and read
// again is the same.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/checksum.h"
#include "runtime/state/manifest.h"
#include "runtime/state/saved_commit.h"
#include "test/fuzz/support.h"

#include "absl/strings/str_format.h"

#include <algorithm>

using namespace boa;

static std::string Sealed(const std::string &text) {
  std::string line = text.substr(0, text.find('\n')) + "\n";
  return absl::StrFormat("%sxxh3 %016x\n", line, Checksum(line.data(), int64_t(line.size())));
}

static void TryManifest(const std::string &text) {
  absl::StatusOr<Manifest> manifest = ParseManifest(text, "manifest");
  if (!manifest.ok())
    return;
  std::string written = FormatManifest(*manifest);
  absl::StatusOr<Manifest> again = ParseManifest(written, "manifest");
  fuzz::Require(again.ok() && FormatManifest(*again) == written, "a manifest is written whole");
  fuzz::Require(again->state == manifest->state && again->home == manifest->home &&
                    again->sequence == manifest->sequence &&
                    again->tokenizer == manifest->tokenizer &&
                    again->base.has_value() == manifest->base.has_value() &&
                    again->paths.size() == manifest->paths.size(),
                "a manifest comes back");
  fuzz::Require(again->commits.size() == manifest->commits.size(), "all commits come back");
  for (size_t i = 0; i < manifest->commits.size(); ++i)
    fuzz::Require(again->commits[i].record.step == manifest->commits[i].record.step &&
                      again->commits[i].sum == manifest->commits[i].sum,
                  "a commit comes back");
}

static void TryCommit(const std::string &text) {
  const std::vector<SavedPath> paths = {{"a", "", ""}, {"b", "", ""}};
  std::string sum;
  absl::StatusOr<SavedCommit> commit = ParseCommit(text, "commit", paths, sum);
  if (!commit.ok())
    return;
  SavedModel model;
  model.sum = sum;
  commit->model = std::make_shared<const SavedModel>(model);
  std::string written = FormatCommit(*commit, paths), other;
  absl::StatusOr<SavedCommit> again = ParseCommit(written, "commit", paths, other);
  fuzz::Require(again.ok() && other == sum, "a commit is written whole");
  again->model = commit->model;
  fuzz::Require(FormatCommit(*again, paths) == written &&
                    again->parts.size() == commit->parts.size() &&
                    again->record.extra == commit->record.extra &&
                    again->record.plan == commit->record.plan &&
                    again->record.samples == commit->record.samples,
                "a commit comes back");
}

static void TryModel(const std::string &text) {
  absl::StatusOr<SavedModel> model = ParseModel(text, "model");
  if (!model.ok())
    return;
  std::string written = FormatModel(*model);
  absl::StatusOr<SavedModel> again = ParseModel(written, "model");
  fuzz::Require(again.ok() && FormatModel(*again) == written &&
                    again->parameters == model->parameters &&
                    again->computation.text == model->computation.text,
                "a model comes back");
}

static void TryPart(const std::string &text) {
  const std::vector<SavedPath> paths = {{"a", "", ""}, {"b", "", ""}};
  auto tables = ParsePart(text, "part", paths);
  if (!tables.ok())
    return;
  tables->erase(std::remove(tables->begin(), tables->end(), nullptr), tables->end());
  std::string written = FormatPart(*tables, paths);
  auto again = ParsePart(written, "part", paths);
  fuzz::Require(again.ok() && again->size() == tables->size() &&
                    FormatPart(*again, paths) == written,
                "a part is written whole");
  for (size_t i = 0; i < tables->size(); ++i)
    fuzz::Require((*again)[i]->storage == (*tables)[i]->storage &&
                      (*again)[i]->first == (*tables)[i]->first &&
                      (*again)[i]->chunks.size() == (*tables)[i]->chunks.size(),
                  "a table comes back");
}

static void TryHead(const std::string &text) {
  absl::StatusOr<DataHead> head = ParseHead(text, "data");
  if (!head.ok() || text.size() > size_t(kStateBlock))
    return;
  std::string written = FormatHead(*head);
  fuzz::Require(written.size() == size_t(kStateBlock), "a head is a block");
  absl::StatusOr<DataHead> again = ParseHead(written, "data");
  fuzz::Require(again.ok() && again->state == head->state && again->path == head->path,
                "a head comes back");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  for (const std::string &input : {text, Sealed(text)}) {
    TryManifest(input);
    TryCommit(input);
    TryModel(input);
    TryPart(input);
    TryHead(input);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return fuzz::MutateText(data, size, most, seed);
}
