//===- manifest.cpp - The manifest of a state -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chunks of a table are one string, 28 hexadecimal digits each: two of the path, ten
// of the offset in blocks, 16 of the checksum.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/manifest.h"

#include "runtime/abi/sizes.h"
#include "runtime/state/sealed.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <set>

namespace boa {

namespace {

constexpr int32_t kHeadVersion = 2;
constexpr char kManifestFormat[] = "boa-state", kHeadFormat[] = "boa-data";

Json FormatBase(const BaseState &base) {
  return {{"state", Escape(base.state)},
          {"step", base.step},
          {"hash", Escape(base.hash)},
          {"directory", Escape(base.directory)}};
}

bool ParseBase(const Json &json, BaseState &base) {
  Reader reader(json);
  base.state = reader.Text("state");
  base.step = reader.Number("step", 0, INT64_MAX);
  base.hash = reader.Text("hash", kMostComputationHash);
  base.directory = reader.Text("directory");
  return reader.ok() && !base.state.empty() && !base.directory.empty();
}

bool ParseInto(const Json &json, Manifest &manifest) {
  Reader reader(json);
  reader.SkipSeal();
  manifest.state = reader.Text("state");
  manifest.model = reader.Text("model");
  manifest.home = reader.Text("home");
  manifest.sequence = reader.Number("sequence", 1, INT64_MAX - 1);
  manifest.tokenizer = reader.Text("tokenizer");
  const Json *base = reader.ObjectOrNull("base");
  if (base && !ParseBase(*base, manifest.base.emplace()))
    return false;
  std::set<std::string> ids;
  for (const Json &entry : reader.List("paths")) {
    Reader path(entry);
    SavedPath &saved = manifest.paths.emplace_back();
    saved.id = path.Text("id");
    saved.host = path.Text("host");
    saved.directory = path.Text("directory");
    if (!path.ok() || saved.id.empty() || !ids.insert(saved.id).second)
      return false;
  }
  std::set<int64_t> steps;
  std::set<std::string> sums;
  for (const Json &entry : reader.List("commits")) {
    Reader commit(entry);
    SavedCommit &saved = manifest.commits.emplace_back();
    saved.record.step = commit.Number("step", 0, kMostStep);
    saved.sum = std::string(commit.Plain("sum"));
    if (!commit.ok() || !IsSum(saved.sum) || !steps.insert(saved.record.step).second ||
        !sums.insert(saved.sum).second)
      return false;
  }
  return reader.ok() && !manifest.state.empty() && !manifest.paths.empty() &&
         manifest.paths.size() <= 2 * kMostPaths;
}

} // namespace

bool operator==(const SavedParameter &a, const SavedParameter &b) {
  return a.name == b.name && a.offset == b.offset && a.shape == b.shape && a.split == b.split;
}

SavedStorage SavedStorageOf(const Storage &storage) {
  const int32_t chunks = std::max(storage.chunks, 1);
  return {storage.name, storage.role, storage.entry_count(), chunks, storage.bytes / chunks};
}

bool SameShape(const SavedStorage &a, const SavedStorage &b) {
  return a.entries == b.entries && a.chunks == b.chunks && a.chunk_bytes == b.chunk_bytes;
}

const SavedTable *FindTable(const SavedCommit &commit, const std::string &name) {
  for (const SavedTable &table : commit.tables)
    if (table.storage.name == name)
      return &table;
  return nullptr;
}

const SavedChunk &SavedTable::Chunk(size_t index) const {
  const SavedChunk *found = nullptr;
  for (size_t i = 0; !found && i < tables.size(); ++i)
    found = tables[i]->Find(int64_t(index));
  return *found; // the tables have each chunk
}

Parts PartsOf(const SavedCommit &commit, const SavedParameter &parameter) {
  const SavedTable *weights = FindTable(commit, absl::StrCat("weights.", GroupOf(parameter)));
  return Parts(parameter.shape, parameter.split, weights ? weights->storage.entries : 1);
}

bool IsAbsent(const SavedCommit &commit, const std::string &storage) {
  return std::any_of(commit.absent.begin(), commit.absent.end(),
                     [&](const SavedStorage &absent) { return absent.name == storage; });
}

bool HasHalves(const SavedCommit &commit) {
  return std::any_of(commit.tables.begin(), commit.tables.end(),
                     [](const SavedTable &table) { return table.storage.role == "master"; });
}

bool IsFrozenStorage(const std::string &name) {
  Storage storage;
  storage.name = name;
  return IsFrozen(storage);
}

std::string GroupOf(const SavedParameter &parameter) {
  return parameter.name.substr(0, parameter.name.rfind('.'));
}

std::vector<bool> NamedPaths(const Manifest &manifest, size_t paths) {
  std::vector<bool> named(paths);
  for (const SavedCommit &commit : manifest.commits) {
    for (int32_t path : commit.paths)
      named[size_t(path)] = true;
    for (const SavedPart &part : commit.parts)
      named[size_t(part.path)] = true;
  }
  return named;
}

std::vector<SavedParameter> ParametersOf(const Program &program) {
  std::vector<SavedParameter> parameters;
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters)
      parameters.push_back({absl::StrCat(StoredName(program, group), ".", parameter.name),
                            parameter.offset, parameter.shape, parameter.split});
  return parameters;
}

std::string FormatManifest(const Manifest &manifest) {
  Json paths = Json::array(), commits = Json::array();
  for (const SavedPath &path : manifest.paths)
    paths.push_back({{"id", Escape(path.id)},
                     {"host", Escape(path.host)},
                     {"directory", Escape(path.directory)}});
  for (const SavedCommit &commit : manifest.commits)
    commits.push_back({{"step", commit.record.step}, {"sum", commit.sum}});
  return Seal(kManifestFormat, kManifestVersion,
              {{"state", Escape(manifest.state)},
               {"model", Escape(manifest.model)},
               {"home", Escape(manifest.home)},
               {"sequence", manifest.sequence},
               {"tokenizer", Escape(manifest.tokenizer)},
               {"base", manifest.base ? FormatBase(*manifest.base) : Json()},
               {"paths", paths},
               {"commits", commits}});
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text, const std::string &path) {
  absl::StatusOr<Json> json = Unseal(text, path, kManifestFormat, kManifestVersion);
  if (!json.ok())
    return json.status();
  Manifest manifest;
  if (!ParseInto(*json, manifest))
    return Damaged(path, "an entry is missing or out of range");
  return manifest;
}

std::string FormatHead(const DataHead &head) {
  auto seal = [&](const std::string &home) {
    return Seal(
        kHeadFormat, kHeadVersion,
        {{"state", Escape(head.state)}, {"path", Escape(head.path)}, {"home", Escape(home)}});
  };
  std::string text = seal(head.home);
  // The home only helps to tell whose an unfinished file is.
  if (text.size() > size_t(kStateBlock))
    text = seal("");
  text.resize(kStateBlock, '\0');
  return text;
}

absl::StatusOr<DataHead> ParseHead(absl::string_view block, const std::string &path) {
  absl::string_view text = block.substr(0, std::min(block.size(), block.find('\0')));
  absl::StatusOr<Json> json = Unseal(text, path, kHeadFormat, kHeadVersion);
  if (!json.ok())
    return json.status();
  if (block.substr(text.size()).find_first_not_of('\0') != absl::string_view::npos)
    return Damaged(path, "its head");
  Reader reader(*json);
  reader.SkipSeal();
  DataHead head{reader.Text("state"), reader.Text("path"), reader.Text("home")};
  if (!reader.ok())
    return Damaged(path, "an entry of its head is missing");
  return head;
}

} // namespace boa
