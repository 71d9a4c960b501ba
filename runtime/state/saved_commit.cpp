//===- saved_commit.cpp - The files of a commit ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/saved_commit.h"

#include "runtime/abi/sizes.h"
#include "runtime/state/checksum.h"
#include "runtime/state/sealed.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <map>
#include <set>

namespace boa {

namespace {

constexpr char kCommitFormat[] = "boa-commit", kModelFormat[] = "boa-model",
               kPartFormat[] = "boa-part";
constexpr size_t kChunkDigits = 28; // 2 for the path, 10 for the block, 16 for the checksum
constexpr int64_t kMostChunks = int64_t(1) << 31;
constexpr int64_t kMostShards = int64_t(1) << 20;

//===----------------------------------------------------------------------===//
// Paths, by their identities
//===----------------------------------------------------------------------===//

/// -1: no path has the identity.
int32_t FindPath(const std::vector<SavedPath> &paths, const std::string &id) {
  for (size_t i = 0; i < paths.size(); ++i)
    if (paths[i].id == id)
      return int32_t(i);
  return -1;
}

/// The paths that a text names, by their places in its list.
absl::StatusOr<std::vector<int32_t>> ParsePaths(const Json &list,
                                                const std::vector<SavedPath> &paths) {
  std::vector<int32_t> found;
  if (list.size() > kMostPaths)
    return absl::OutOfRangeError("paths");
  for (const Json &entry : list) {
    std::string id;
    if (!Unescape(entry, kMostText, id))
      return absl::OutOfRangeError("paths");
    found.push_back(FindPath(paths, id));
  }
  return found;
}

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

bool ParseChunk(absl::string_view digits, const std::vector<int32_t> &files, SavedChunk &chunk) {
  uint64_t file = 0, block = 0;
  if (!ParseHex(digits.substr(0, 2), file) || !ParseHex(digits.substr(2, 10), block) ||
      !ParseHex(digits.substr(12), chunk.checksum) || file >= files.size() || block == 0)
    return false;
  chunk.extent = {files[size_t(file)], int64_t(block) * kStateBlock};
  return true;
}

void AppendTable(std::string &text, const ChunkTable &table, const std::map<int32_t, int> &files) {
  absl::StrAppend(&text, R"({"bytes":)", table.chunk_bytes, R"(,"first":)", table.first,
                  R"(,"step":)", table.step, R"(,"storage":)", Json(Escape(table.storage)).dump(),
                  R"(,"chunks":")");
  text.reserve(text.size() + table.chunks.size() * kChunkDigits + 2);
  for (const SavedChunk &chunk : table.chunks) {
    AppendHex(text, uint64_t(files.at(chunk.extent.file)), 2);
    AppendHex(text, uint64_t(chunk.extent.offset / kStateBlock), 10);
    AppendHex(text, chunk.checksum, 16);
  }
  text += "\"}";
}

bool ParseTable(const Json &json, const std::vector<int32_t> &files, ChunkTable &table) {
  Reader reader(json);
  table.storage = reader.Text("storage");
  table.chunk_bytes = reader.Number("bytes", kStateBlock, kMostChunkBytes);
  table.first = reader.Number("first", 0, INT64_MAX / 4);
  table.step = reader.Number("step", 1, kMostChunks);
  absl::string_view chunks = reader.Plain("chunks");
  if (!reader.ok() || table.chunk_bytes % kStateBlock != 0 || chunks.empty() ||
      chunks.size() % kChunkDigits != 0)
    return false;
  table.chunks.resize(chunks.size() / kChunkDigits);
  for (size_t i = 0; i < table.chunks.size(); ++i)
    if (!ParseChunk(chunks.substr(i * kChunkDigits, kChunkDigits), files, table.chunks[i]))
      return false;
  return true;
}

Json FormatStorage(const SavedStorage &storage) {
  return {{"name", Escape(storage.name)}, {"role", Escape(storage.role)},
          {"entries", storage.entries},   {"chunks", storage.chunks},
          {"bytes", storage.chunk_bytes}, {"tables", Json::array()}};
}

/// A storage without tables is absent.
bool ParseStorage(const Json &json, SavedCommit &commit) {
  Reader reader(json);
  SavedTable table;
  SavedStorage &storage = table.storage;
  storage.name = reader.Text("name");
  storage.role = reader.Text("role");
  storage.entries = reader.Number("entries", 1, kMostChunks);
  storage.chunks = int32_t(reader.Number("chunks", 1, kMostChunks - 1));
  storage.chunk_bytes = reader.Number("bytes", kStateBlock, kMostChunkBytes);
  for (const Json &place : reader.List("tables")) {
    if (!place.is_array() || place.size() != 2 || !place[0].is_number_unsigned() ||
        !place[1].is_number_unsigned() || place[0].get<uint64_t>() >= commit.parts.size() ||
        place[1].get<uint64_t>() > INT32_MAX)
      return false;
    table.places.push_back({place[0].get<int32_t>(), place[1].get<int32_t>()});
  }
  if (!reader.ok() || storage.chunk_bytes % kStateBlock != 0)
    return false;
  if (table.places.empty())
    commit.absent.push_back(storage);
  else
    commit.tables.push_back(std::move(table));
  return true;
}

//===----------------------------------------------------------------------===//
// Commits and models
//===----------------------------------------------------------------------===//

Json FormatFacts(const std::map<std::string, std::string> &facts) {
  Json json = Json::object();
  for (const auto &[key, value] : facts)
    json[Escape(key)] = Escape(value);
  return json;
}

void ParseRecord(Reader &reader, CommitRecord &record) {
  record.step = reader.Number("step", 0, kMostStep);
  record.time = reader.Number("time", INT64_MIN, INT64_MAX);
  auto text = [](const Json &value, std::string &fact) { return Unescape(value, kMostText, fact); };
  auto count = [](const Json &value, int64_t &fact) {
    // An unsigned number above the signed range reads as a negative one.
    fact = value.is_number_integer() ? value.get<int64_t>() : -1;
    return fact >= 0 && fact <= kMostSamples;
  };
  reader.Facts("extra", record.extra, text);
  reader.Facts("environment", record.environment, text);
  reader.Facts("samples", record.samples, count);
  record.plan = reader.Text("plan", kMostPlan);
  record.validated_on = reader.Text("validated_on", kMostText);
  if (reader.Has("validation_loss"))
    record.validation_loss = reader.Real("validation_loss");
}

bool ParseCommitInto(const Json &json, const std::vector<SavedPath> &paths, std::string &model,
                     SavedCommit &commit) {
  Reader reader(json);
  ParseRecord(reader, commit.record);
  reader.SkipSeal();
  commit.shards = reader.Number("shards", 1, kMostShards);
  model = std::string(reader.Plain("model"));
  absl::StatusOr<std::vector<int32_t>> known = ParsePaths(reader.List("paths"), paths);
  if (!known.ok() || std::count(known->begin(), known->end(), -1) > 0 || !IsSum(model))
    return false;
  commit.paths = *std::move(known);
  std::set<std::string> sums, names;
  for (const Json &json : reader.List("parts")) {
    Reader part(json);
    commit.parts.push_back({FindPath(paths, part.Text("path")), std::string(part.Plain("sum"))});
    const SavedPart &added = commit.parts.back();
    if (!part.ok() || added.path < 0 || !IsSum(added.sum) || !sums.insert(added.sum).second)
      return false;
  }
  for (const Json &storage : reader.List("storages"))
    if (!ParseStorage(storage, commit))
      return false;
  for (const SavedTable &table : commit.tables)
    if (!names.insert(table.storage.name).second)
      return false;
  for (const SavedStorage &absent : commit.absent)
    if (!names.insert(absent.name).second)
      return false;
  return reader.ok();
}

bool ParseParameter(const Json &json, SavedParameter &parameter) {
  Reader reader(json);
  parameter.name = reader.Text("name");
  parameter.offset = reader.Number("offset", 0, kMostFileBytes);
  int64_t elements = 1;
  for (const Json &size : reader.List("shape")) {
    if (!size.is_number_integer() || size.get<int64_t>() < 1 ||
        size.get<int64_t>() > kMostStoredElements / elements)
      return false;
    parameter.shape.push_back(size.get<int64_t>());
    elements *= parameter.shape.back();
  }
  if (reader.Has("split")) {
    parameter.split = reader.Number("split", 0, int64_t(parameter.shape.size()) - 1);
    return reader.ok() && !parameter.shape.empty();
  }
  return reader.ok();
}

bool ParseModelInto(const Json &json, SavedModel &model) {
  Reader reader(json);
  reader.SkipSeal();
  std::set<std::string> names;
  for (const Json &parameter : reader.List("parameters"))
    if (!ParseParameter(parameter, model.parameters.emplace_back()) ||
        !names.insert(model.parameters.back().name).second)
      return false;
  Computation &computation = model.computation;
  Reader of(reader.Object("computation"));
  computation.version = int32_t(of.Number("version", 0, INT32_MAX));
  computation.text = of.Text("text", kMostComputationText);
  computation.hash = of.Text("hash", kMostComputationHash);
  const bool unknown = computation.version == 0;
  return reader.ok() && of.ok() && computation.text.empty() == unknown &&
         computation.hash.empty() == unknown;
}

absl::Status OutOfRange(const std::string &file) {
  return Damaged(file, "an entry is missing or out of range");
}

} // namespace

std::string SealedName(absl::string_view kind, absl::string_view sum, bool copy) {
  return absl::StrCat(kind, ".", sum, copy ? ".copy.json" : ".json");
}

bool IsSealedName(absl::string_view name) {
  absl::ConsumeSuffix(&name, ".tmp");
  for (absl::string_view kind : {kCommitFile, kModelFile, kPartFile})
    if (name.size() > kind.size() + kSumDigits && IsSum(name.substr(kind.size() + 1, kSumDigits))) {
      const absl::string_view sum = name.substr(kind.size() + 1, kSumDigits);
      return name == SealedName(kind, sum) || name == SealedName(kind, sum, /*copy=*/true);
    }
  return false;
}

std::string FormatCommit(const SavedCommit &commit, const std::vector<SavedPath> &paths) {
  const CommitRecord &record = commit.record;
  Json json = {{"step", record.step},
               {"time", record.time},
               {"extra", FormatFacts(record.extra)},
               {"environment", FormatFacts(record.environment)},
               {"samples", Json::object()},
               {"plan", Escape(record.plan)},
               {"validated_on", Escape(record.validated_on)},
               {"shards", commit.shards},
               {"model", commit.model->sum},
               {"paths", Json::array()},
               {"parts", Json::array()},
               {"storages", Json::array()}};
  for (const auto &[source, count] : record.samples)
    json["samples"][Escape(source)] = count;
  if (record.validation_loss)
    json["validation_loss"] = *record.validation_loss;
  for (int32_t path : commit.paths)
    json["paths"].push_back(Escape(paths[size_t(path)].id));
  for (const SavedPart &part : commit.parts)
    json["parts"].push_back({{"path", Escape(paths[size_t(part.path)].id)}, {"sum", part.sum}});
  for (const SavedTable &table : commit.tables) {
    json["storages"].push_back(FormatStorage(table.storage));
    for (const auto &[part, index] : table.places)
      json["storages"].back()["tables"].push_back({part, index});
  }
  for (const SavedStorage &absent : commit.absent)
    json["storages"].push_back(FormatStorage(absent));
  return Seal(kCommitFormat, kManifestVersion, json);
}

absl::StatusOr<SavedCommit> ParseCommit(absl::string_view text, const std::string &file,
                                        const std::vector<SavedPath> &paths, std::string &model) {
  absl::StatusOr<Json> json = Unseal(text, file, kCommitFormat, kManifestVersion);
  if (!json.ok())
    return json.status();
  SavedCommit commit;
  if (!ParseCommitInto(*json, paths, model, commit))
    return OutOfRange(file);
  return commit;
}

std::string FormatModel(const SavedModel &model) {
  Json parameters = Json::array();
  for (const SavedParameter &parameter : model.parameters) {
    Json &json = parameters.emplace_back(Json{{"name", Escape(parameter.name)},
                                              {"offset", parameter.offset},
                                              {"shape", parameter.shape}});
    if (parameter.split >= 0)
      json["split"] = parameter.split;
  }
  const Computation &computation = model.computation;
  return Seal(kModelFormat, kManifestVersion,
              {{"parameters", parameters},
               {"computation",
                {{"version", computation.version},
                 {"text", Escape(computation.text)},
                 {"hash", Escape(computation.hash)}}}});
}

absl::StatusOr<SavedModel> ParseModel(absl::string_view text, const std::string &file) {
  absl::StatusOr<Json> json = Unseal(text, file, kModelFormat, kManifestVersion);
  if (!json.ok())
    return json.status();
  SavedModel model;
  if (!ParseModelInto(*json, model))
    return OutOfRange(file);
  return model;
}

std::string FormatPart(const std::vector<std::shared_ptr<ChunkTable>> &tables,
                       const std::vector<SavedPath> &paths) {
  std::map<int32_t, int> files;
  for (const auto &table : tables)
    for (const SavedChunk &chunk : table->chunks)
      files.insert({chunk.extent.file, 0});
  Json names = Json::array();
  for (auto &[file, place] : files) {
    place = int(names.size());
    names.push_back(Escape(paths[size_t(file)].id));
  }
  // The places are too many for a document in memory.
  std::string list;
  for (const auto &table : tables) {
    list += list.empty() ? "" : ",";
    AppendTable(list, *table, files);
  }
  return SealText(absl::StrCat(SealedBegin(kPartFormat, kManifestVersion), R"("paths":)",
                               names.dump(), R"(,"tables":[)", list, "]}"));
}

absl::StatusOr<std::vector<std::shared_ptr<ChunkTable>>>
ParsePart(absl::string_view text, const std::string &file, const std::vector<SavedPath> &paths) {
  absl::StatusOr<Json> json = Unseal(text, file, kPartFormat, kManifestVersion);
  if (!json.ok())
    return json.status();
  Reader reader(*json);
  reader.SkipSeal();
  absl::StatusOr<std::vector<int32_t>> files = ParsePaths(reader.List("paths"), paths);
  if (!files.ok())
    return OutOfRange(file);
  std::vector<std::shared_ptr<ChunkTable>> tables;
  for (const Json &json : reader.List("tables")) {
    std::shared_ptr<ChunkTable> &table = tables.emplace_back(std::make_shared<ChunkTable>());
    if (!ParseTable(json, *files, *table))
      return OutOfRange(file);
    // A commit that names it names a path that the state does not know.
    if (std::any_of(table->chunks.begin(), table->chunks.end(),
                    [](const SavedChunk &chunk) { return chunk.extent.file < 0; }))
      table = nullptr;
  }
  if (!reader.ok())
    return OutOfRange(file);
  return tables;
}

std::shared_ptr<const SavedModel> ModelOf(const Program &program) {
  SavedModel model = {ParametersOf(program), program.computation, ""};
  model.sum = NameOfContents(FormatModel(model));
  return std::make_shared<const SavedModel>(std::move(model));
}

bool IsCountable(const SavedCommit &commit) {
  constexpr int64_t kMost = int64_t(kMostPaths) * kMostFileBytes;
  std::map<std::string, int64_t> entries;
  for (const SavedTable &table : commit.tables)
    entries[table.storage.name] = table.storage.entries;
  int64_t sum = 0;
  for (const SavedParameter &parameter : commit.model->parameters) {
    int64_t elements = 1;
    for (int64_t size : parameter.shape)
      elements *= size;
    const auto found = entries.find(absl::StrCat("weights.", GroupOf(parameter)));
    const int64_t count = found == entries.end() ? 1 : found->second;
    if (count > (kMost - sum) / elements)
      return false;
    sum += count * elements;
  }
  return true;
}

bool IsTiled(const SavedTable &table) {
  const int64_t count = table.storage.entries * table.storage.chunks;
  std::vector<const ChunkTable *> in_order;
  for (const auto &one : table.tables) {
    if (one->storage != table.storage.name || one->chunk_bytes != table.storage.chunk_bytes ||
        one->first >= count ||
        int64_t(one->chunks.size()) - 1 > (count - 1 - one->first) / one->step)
      return false;
    in_order.push_back(one.get());
  }
  std::sort(in_order.begin(), in_order.end(),
            [](const ChunkTable *a, const ChunkTable *b) { return a->first < b->first; });
  // So no table is counted twice, and there are as many chunks in memory.
  if (std::adjacent_find(in_order.begin(), in_order.end(),
                         [](const ChunkTable *a, const ChunkTable *b) {
                           return a->first == b->first;
                         }) != in_order.end())
    return false;
  int64_t chunks = 0;
  for (const ChunkTable *one : in_order)
    chunks += int64_t(one->chunks.size());
  if (chunks != count)
    return false;
  // Of one rank they are ranges.
  int64_t end = 0;
  for (const ChunkTable *one : in_order)
    end += one->step == 1 && one->first == end ? int64_t(one->chunks.size()) : 0;
  if (end == count)
    return true;
  // There are as many as there should be: they are all if none is there twice.
  std::vector<bool> seen(static_cast<size_t>(count));
  for (const ChunkTable *one : in_order)
    for (size_t i = 0; i < one->chunks.size(); ++i) {
      const size_t chunk = size_t(one->first + int64_t(i) * one->step);
      if (seen[chunk])
        return false;
      seen[chunk] = true;
    }
  return true;
}

} // namespace boa
