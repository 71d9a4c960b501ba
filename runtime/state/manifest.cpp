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
#include "absl/strings/str_format.h"

#include <algorithm>
#include <map>
#include <set>

namespace boa {

namespace {

constexpr int32_t kHeadVersion = 2;
constexpr char kManifestFormat[] = "boa-state", kHeadFormat[] = "boa-data";
constexpr size_t kChunkDigits = kManifestBytesOfChunk;
// Far beyond any model, and no product of two overflows.
constexpr int64_t kMostChunks = int64_t(1) << 31;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

void AppendHex(std::string &text, uint64_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    text += "0123456789abcdef"[value >> shift & 15];
}

bool ParseHex(absl::string_view digits, uint64_t &value) {
  value = 0;
  for (char c : digits) {
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0)
      return false;
    value = value << 4 | uint64_t(digit);
  }
  return true;
}

bool ParseChunk(absl::string_view digits, size_t paths, SavedChunk &chunk) {
  uint64_t file = 0, block = 0;
  if (!ParseHex(digits.substr(0, 2), file) || !ParseHex(digits.substr(2, 10), block) ||
      !ParseHex(digits.substr(12), chunk.checksum) || file >= paths || block == 0)
    return false;
  chunk.extent = {int32_t(file), int64_t(block) * kStateBlock};
  return true;
}

Json FormatStorage(const SavedStorage &storage) {
  return {{"name", Escape(storage.name)},
          {"role", Escape(storage.role)},
          {"entries", storage.entries},
          {"chunks", storage.chunks},
          {"bytes", storage.chunk_bytes}};
}

bool ReadStorage(Reader &reader, SavedStorage &storage) {
  storage.name = reader.Text("name");
  storage.role = reader.Text("role");
  storage.entries = reader.Number("entries", 1, kMostChunks);
  storage.chunks = int32_t(reader.Number("chunks", 1, kMostChunks - 1));
  storage.chunk_bytes = reader.Number("bytes", kStateBlock, kMostChunkBytes);
  return storage.chunk_bytes % kStateBlock == 0;
}

/// Written by hand, since the places are nearly all of a manifest.
void AppendTable(std::string &text, const SavedTable &table) {
  Json json = FormatStorage(table.storage);
  json["places"] = "";
  // No string holds this: a quote within one has a backslash.
  const std::string kPlaces = "\"places\":\"";
  const std::string frame = json.dump();
  const size_t places = frame.find(kPlaces) + kPlaces.size();
  text.append(frame, 0, places);
  text.reserve(text.size() + table.chunks.size() * kChunkDigits + frame.size());
  for (const SavedChunk &chunk : table.chunks) {
    AppendHex(text, uint64_t(chunk.extent.file), 2);
    AppendHex(text, uint64_t(chunk.extent.offset / kStateBlock), 10);
    AppendHex(text, chunk.checksum, 16);
  }
  text.append(frame, places);
}

bool ParseTable(const Json &json, size_t paths, SavedTable &table) {
  Reader reader(json);
  SavedStorage &storage = table.storage;
  const bool whole = ReadStorage(reader, storage);
  absl::string_view places = reader.Plain("places");
  if (!whole || !reader.ok() ||
      places.size() / kChunkDigits != uint64_t(storage.entries) * uint64_t(storage.chunks) ||
      places.size() % kChunkDigits != 0)
    return false;
  table.chunks.resize(places.size() / kChunkDigits);
  for (size_t i = 0; i < table.chunks.size(); ++i)
    if (!ParseChunk(places.substr(i * kChunkDigits, kChunkDigits), paths, table.chunks[i]))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Commits
//===----------------------------------------------------------------------===//

Json FormatComputation(const Computation &computation) {
  return {{"version", computation.version},
          {"text", Escape(computation.text)},
          {"hash", Escape(computation.hash)}};
}

/// Unknown is all empty; nothing is known by halves.
bool ParseComputation(const Json &json, Computation &computation) {
  Reader reader(json);
  computation.version = int32_t(reader.Number("version", 0, INT32_MAX));
  computation.text = reader.Text("text", kMostComputationText);
  computation.hash = reader.Text("hash", kMostComputationHash);
  const bool unknown = computation.version == 0;
  return reader.ok() && computation.text.empty() == unknown && computation.hash.empty() == unknown;
}

Json FormatFacts(const std::map<std::string, std::string> &facts) {
  Json json = Json::object();
  for (const auto &[key, value] : facts)
    json[Escape(key)] = Escape(value);
  return json;
}

void AppendCommit(std::string &text, const SavedCommit &commit, int32_t version) {
  const CommitRecord &record = commit.record;
  Json json = {{"step", record.step}, {"time", record.time}, {"extra", FormatFacts(record.extra)}};
  if (version >= 3) {
    Json &samples = json["samples"] = Json::object(), &absent = json["absent"] = Json::array();
    for (const auto &[source, count] : record.samples)
      samples[Escape(source)] = count;
    for (const SavedStorage &storage : commit.absent)
      absent.push_back(FormatStorage(storage));
    json["plan"] = Escape(record.plan);
    json["environment"] = FormatFacts(record.environment);
    if (record.validation_loss) {
      json["validation_loss"] = *record.validation_loss;
      json["validated_on"] = Escape(record.validated_on);
    }
    if (commit.computation)
      json["computation"] = FormatComputation(*commit.computation);
  }
  text += json.dump();
  text.back() = ','; // where the brace was
  text += "\"storages\":[";
  for (size_t i = 0; i < commit.tables.size(); ++i) {
    text += i > 0 ? "," : "";
    AppendTable(text, commit.tables[i]);
  }
  text += "]}";
}

bool ParseCommit(const Json &json, int32_t version, size_t paths, SavedCommit &commit) {
  Reader reader(json);
  CommitRecord &record = commit.record;
  record.step = reader.Number("step", 0, INT64_MAX);
  record.time = reader.Number("time", INT64_MIN, INT64_MAX);
  auto text = [](const Json &value, std::string &fact) { return Unescape(value, kMostText, fact); };
  auto count = [](const Json &value, int64_t &fact) {
    // An unsigned number above the signed range reads as a negative one.
    fact = value.is_number_integer() ? value.get<int64_t>() : -1;
    return fact >= 0 && fact <= kMostSamples;
  };
  reader.Facts("extra", record.extra, text);
  std::set<std::string> names;
  if (version >= 3) {
    record.plan = reader.Text("plan", kMostPlan);
    reader.Facts("environment", record.environment, text);
    reader.Facts("samples", record.samples, count);
    if (json.is_object() && json.contains("validation_loss")) {
      record.validation_loss = reader.Real("validation_loss");
      record.validated_on = reader.Text("validated_on", kMostText);
    }
    if (json.is_object() && json.contains("computation") &&
        !ParseComputation(reader.Object("computation"), commit.computation.emplace()))
      return false;
    for (const Json &absent : reader.List("absent")) {
      Reader storage(absent);
      if (!ReadStorage(storage, commit.absent.emplace_back()) || !storage.ok() ||
          !names.insert(commit.absent.back().name).second)
        return false;
    }
  }
  for (const Json &table : reader.List("storages"))
    if (!ParseTable(table, paths, commit.tables.emplace_back()) ||
        !names.insert(commit.tables.back().storage.name).second)
      return false;
  return reader.ok();
}

bool ParseParameter(const Json &json, SavedParameter &parameter) {
  Reader reader(json);
  parameter.name = reader.Text("name");
  parameter.offset = reader.Number("offset", 0, INT64_MAX);
  int64_t elements = 1;
  for (const Json &size : reader.List("shape")) {
    if (!size.is_number_integer() || size.get<int64_t>() < 1 ||
        size.get<int64_t>() > kMostStoredElements / elements)
      return false;
    parameter.shape.push_back(size.get<int64_t>());
    elements *= parameter.shape.back();
  }
  if (json.is_object() && json.contains("split")) {
    parameter.split = reader.Number("split", 0, int64_t(parameter.shape.size()) - 1);
    return reader.ok() && !parameter.shape.empty();
  }
  return reader.ok();
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
  reader.Plain("format");
  manifest.version = int32_t(reader.Number("version", kOldestManifestVersion, kManifestVersion));
  if (manifest.version >= 3) {
    manifest.tokenizer = reader.Text("tokenizer");
    if (!ParseComputation(reader.Object("computation"), manifest.computation))
      return false;
    const Json *base = reader.ObjectOrNull("base");
    if (base && !ParseBase(*base, manifest.base.emplace()))
      return false;
  }
  manifest.state = reader.Text("state");
  manifest.model = reader.Text("model");
  manifest.home = reader.Text("home");
  manifest.sequence = reader.Number("sequence", 1, INT64_MAX - 1);
  std::set<std::string> ids;
  for (auto [name, paths] : {std::pair{"paths", &manifest.paths}, {"former", &manifest.former}})
    for (const Json &entry : reader.List(name)) {
      Reader path(entry);
      SavedPath &saved = paths->emplace_back();
      saved.id = path.Text("id");
      saved.directory = path.Text("directory");
      if (!path.ok() || saved.id.empty() || !ids.insert(saved.id).second)
        return false;
    }
  std::set<std::string> names;
  for (const Json &parameter : reader.List("parameters"))
    if (!ParseParameter(parameter, manifest.parameters.emplace_back()) ||
        !names.insert(manifest.parameters.back().name).second)
      return false;
  std::set<int64_t> steps;
  for (const Json &commit : reader.List("commits"))
    if (!ParseCommit(commit, manifest.version, manifest.paths.size(),
                     manifest.commits.emplace_back()) ||
        !steps.insert(manifest.commits.back().record.step).second)
      return false;
  return reader.ok() && !manifest.state.empty() && !manifest.paths.empty() &&
         manifest.paths.size() <= kMostPaths;
}

} // namespace

//===----------------------------------------------------------------------===//
// Whole files
//===----------------------------------------------------------------------===//

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

std::string GroupOf(const SavedParameter &parameter) {
  return parameter.name.substr(0, parameter.name.rfind('.'));
}

std::vector<bool> NamedPaths(const Manifest &manifest, size_t paths) {
  std::vector<bool> named(paths);
  for (const SavedCommit &commit : manifest.commits)
    for (const SavedTable &table : commit.tables)
      for (const SavedChunk &chunk : table.chunks)
        named[size_t(chunk.extent.file)] = true;
  return named;
}

const Computation &ComputationOf(const Manifest &manifest, const SavedCommit &commit) {
  return commit.computation ? *commit.computation : manifest.computation;
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
  auto list = [](const std::vector<SavedPath> &saved) {
    Json paths = Json::array();
    for (const SavedPath &path : saved)
      paths.push_back({{"id", Escape(path.id)}, {"directory", Escape(path.directory)}});
    return paths;
  };
  Json parameters = Json::array();
  for (const SavedParameter &parameter : manifest.parameters) {
    Json &json = parameters.emplace_back(Json{{"name", Escape(parameter.name)},
                                              {"offset", parameter.offset},
                                              {"shape", parameter.shape}});
    if (parameter.split >= 0)
      json["split"] = parameter.split;
  }
  Json rest = {{"format", kManifestFormat},       {"version", manifest.version},
               {"state", Escape(manifest.state)}, {"model", Escape(manifest.model)},
               {"home", Escape(manifest.home)},   {"sequence", manifest.sequence},
               {"paths", list(manifest.paths)},   {"former", list(manifest.former)},
               {"parameters", parameters}};
  if (manifest.version >= 3) {
    rest["computation"] = FormatComputation(manifest.computation);
    rest["tokenizer"] = Escape(manifest.tokenizer);
    rest["base"] = nullptr;
    if (const std::optional<BaseState> &base = manifest.base)
      rest["base"] = {{"state", Escape(base->state)},
                      {"step", base->step},
                      {"hash", Escape(base->hash)},
                      {"directory", Escape(base->directory)}};
  }
  std::string text = "{\"commits\":[";
  for (size_t i = 0; i < manifest.commits.size(); ++i) {
    text += i > 0 ? "," : "";
    AppendCommit(text, manifest.commits[i], manifest.version);
  }
  text += "],";
  text.append(rest.dump(), 1, std::string::npos);
  return Seal(std::move(text));
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text, const std::string &path) {
  absl::StatusOr<Json> json =
      Unseal(text, path, kManifestFormat, kOldestManifestVersion, kManifestVersion);
  if (!json.ok())
    return json.status();
  Manifest manifest;
  if (!ParseInto(*json, manifest))
    return Damaged(path, "an entry is missing or out of range");
  return manifest;
}

std::string FormatHead(const DataHead &head) {
  auto seal = [&](const std::string &home) {
    const Json json = {{"format", kHeadFormat},
                       {"version", kHeadVersion},
                       {"state", Escape(head.state)},
                       {"path", Escape(head.path)},
                       {"home", Escape(home)}};
    return Seal(json.dump());
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
  absl::StatusOr<Json> json = Unseal(text, path, kHeadFormat, kHeadVersion, kHeadVersion);
  if (!json.ok())
    return json.status();
  if (block.substr(text.size()).find_first_not_of('\0') != absl::string_view::npos)
    return Damaged(path, "its head");
  Reader reader(*json);
  reader.Plain("format");
  reader.Number("version", kHeadVersion, kHeadVersion);
  DataHead head{reader.Text("state"), reader.Text("path"), reader.Text("home")};
  if (!reader.ok())
    return Damaged(path, "an entry of its head is missing");
  return head;
}

} // namespace boa
