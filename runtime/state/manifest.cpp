//===- manifest.cpp - What a state writes down of itself ------------------===//
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

#include "runtime/state/checksum.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

#include <set>

namespace boa {

using Json = nlohmann::json;

namespace {

constexpr int kVersion = 2;
constexpr char kManifestFormat[] = "boa-state", kHeadFormat[] = "boa-data";
constexpr size_t kChunkDigits = 28;
// Far beyond any model, and no product of two overflows.
constexpr int64_t kMostChunks = int64_t(1) << 31, kMostBytes = int64_t(1) << 40;

/// A line of JSON and the line with its checksum.
std::string Seal(std::string line) {
  line += '\n';
  absl::StrAppendFormat(&line, "xxh3 %016x\n", Checksum(line.data(), int64_t(line.size())));
  return line;
}

absl::Status Damaged(const std::string &path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, " is damaged (", what, ")"));
}

/// Whether one wrong byte, or a piece that is missing, could have made this of
/// what Seal made; else it is somebody else's.
bool MayBeOurs(absl::string_view text, const char *format) {
  // Members are in order of their names, so `commits` is the first of a manifest.
  for (absl::string_view begin : {"{\"commits\":[", "{\"format\":\"boa-"})
    if (text.substr(0, begin.size()) == begin.substr(0, text.size()))
      return true;
  return text.find_first_not_of('\0') == absl::string_view::npos ||
         absl::StrContains(text, format) || absl::StrContains(text, "\nxxh3 ");
}

/// What Seal made. `format`: what it must be of.
absl::StatusOr<Json> Unseal(absl::string_view text, const std::string &path, const char *format) {
  size_t end = text.find('\n');
  absl::string_view line = text.substr(0, end == absl::string_view::npos ? text.size() : end + 1);
  absl::Status foreign = absl::FailedPreconditionError(
      absl::StrCat(path, " is not of a training state: move it away, or choose another directory"));
  std::string sum = absl::StrFormat("xxh3 %016x\n", Checksum(line.data(), int64_t(line.size())));
  if (text.substr(line.size()) != sum)
    return MayBeOurs(text, format) ? Damaged(path, "truncated, or its checksum does not match")
                                   : foreign;
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("format", Json()) != Json(format))
    return foreign;
  if (json.value("version", Json()) != Json(kVersion))
    return absl::UnimplementedError(
        absl::StrFormat("%s has version %s and this trainer knows %d: use the trainer that made it",
                        path, json.value("version", Json()).dump(), kVersion));
  return json;
}

/// Members of an object; remembers whether all were there and in range.
class Reader {
public:
  explicit Reader(const Json &json) : json(json) {}
  bool ok() const { return good; }

  std::string Text(const char *name) {
    const Json *value = Find(name);
    if (!value || !value->is_string())
      return Bad(std::string());
    std::string text;
    return absl::CUnescape(value->get_ref<const std::string &>(), &text) ? text
                                                                         : Bad(std::string());
  }
  /// Of which no character was escaped.
  absl::string_view Plain(const char *name) {
    const Json *value = Find(name);
    if (value && value->is_string())
      return value->get_ref<const std::string &>();
    good = false;
    return "";
  }
  int64_t Number(const char *name, int64_t least, int64_t most) {
    const Json *value = Find(name);
    // An unsigned number above the signed range reads as a negative one.
    if (!value || !value->is_number_integer() || value->get<int64_t>() < least ||
        value->get<int64_t>() > most)
      return Bad(least);
    return value->get<int64_t>();
  }
  const Json &List(const char *name) { return Of(name, Json::value_t::array); }
  const Json &Object(const char *name) { return Of(name, Json::value_t::object); }

private:
  const Json *Find(const char *name) {
    auto found = json.is_object() ? json.find(name) : json.end();
    return json.is_object() && found != json.end() ? &*found : nullptr;
  }
  const Json &Of(const char *name, Json::value_t kind) {
    static const Json nothing;
    const Json *value = Find(name);
    return value && value->type() == kind ? *value : Bad(nothing);
  }
  template <typename T> const T &Bad(const T &value) {
    good = false;
    return value;
  }
  const Json &json;
  bool good = true;
};

/// So that any bytes survive JSON.
std::string Escape(const std::string &text) { return absl::CHexEscape(text); }

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

/// Written by hand, since the places are nearly all of a manifest.
void AppendTable(std::string &text, const SavedTable &table) {
  const SavedStorage &storage = table.storage;
  const Json json = {{"name", Escape(storage.name)}, {"role", Escape(storage.role)},
                     {"entries", storage.entries},   {"chunks", storage.chunks},
                     {"bytes", storage.chunk_bytes}, {"places", ""}};
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
  storage.name = reader.Text("name");
  storage.role = reader.Text("role");
  storage.entries = reader.Number("entries", 1, kMostChunks);
  storage.chunks = int32_t(reader.Number("chunks", 1, kMostChunks - 1));
  storage.chunk_bytes = reader.Number("bytes", kStateBlock, kMostBytes);
  absl::string_view places = reader.Plain("places");
  if (!reader.ok() || storage.chunk_bytes % kStateBlock != 0 ||
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

void AppendCommit(std::string &text, const SavedCommit &commit) {
  Json extra = Json::object();
  for (const auto &[key, value] : commit.record.extra)
    extra[Escape(key)] = Escape(value);
  const Json json = {{"step", commit.record.step}, {"time", commit.record.time}, {"extra", extra}};
  text += json.dump();
  text.back() = ','; // where the brace was
  text += "\"storages\":[";
  for (size_t i = 0; i < commit.tables.size(); ++i) {
    text += i > 0 ? "," : "";
    AppendTable(text, commit.tables[i]);
  }
  text += "]}";
}

bool ParseCommit(const Json &json, size_t paths, SavedCommit &commit) {
  Reader reader(json);
  commit.record.step = reader.Number("step", 0, INT64_MAX);
  commit.record.time = reader.Number("time", INT64_MIN, INT64_MAX);
  for (const auto &[key, value] : reader.Object("extra").items()) {
    std::string name, text;
    if (!value.is_string() || !absl::CUnescape(key, &name) ||
        !absl::CUnescape(value.get_ref<const std::string &>(), &text))
      return false;
    commit.record.extra[name] = text;
  }
  std::set<std::string> names;
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
  for (const Json &size : reader.List("shape")) {
    if (!size.is_number_integer() || size.get<int64_t>() < 1)
      return false;
    parameter.shape.push_back(size.get<int64_t>());
  }
  return reader.ok();
}

bool ParseInto(const Json &json, Manifest &manifest) {
  Reader reader(json);
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
  for (const Json &parameter : reader.List("parameters"))
    if (!ParseParameter(parameter, manifest.parameters.emplace_back()))
      return false;
  std::set<int64_t> steps;
  for (const Json &commit : reader.List("commits"))
    if (!ParseCommit(commit, manifest.paths.size(), manifest.commits.emplace_back()) ||
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
  return a.name == b.name && a.offset == b.offset && a.shape == b.shape;
}

std::vector<SavedParameter> ParametersOf(const Program &program) {
  std::vector<SavedParameter> parameters;
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters)
      parameters.push_back(
          {absl::StrCat(group.name, ".", parameter.name), parameter.offset, parameter.shape});
  return parameters;
}

std::string FormatManifest(const Manifest &manifest) {
  auto list = [](const std::vector<SavedPath> &saved) {
    Json paths = Json::array();
    for (const SavedPath &path : saved)
      paths.push_back({{"id", path.id}, {"directory", Escape(path.directory)}});
    return paths;
  };
  Json parameters = Json::array();
  for (const SavedParameter &parameter : manifest.parameters)
    parameters.push_back({{"name", Escape(parameter.name)},
                          {"offset", parameter.offset},
                          {"shape", parameter.shape}});
  const Json rest = {{"format", kManifestFormat},     {"version", kVersion},
                     {"state", manifest.state},       {"model", Escape(manifest.model)},
                     {"home", Escape(manifest.home)}, {"sequence", manifest.sequence},
                     {"paths", list(manifest.paths)}, {"former", list(manifest.former)},
                     {"parameters", parameters}};
  std::string text = "{\"commits\":[";
  for (size_t i = 0; i < manifest.commits.size(); ++i) {
    text += i > 0 ? "," : "";
    AppendCommit(text, manifest.commits[i]);
  }
  text += "],";
  text.append(rest.dump(), 1, std::string::npos);
  return Seal(std::move(text));
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text, const std::string &path) {
  absl::StatusOr<Json> json = Unseal(text, path, kManifestFormat);
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
                       {"version", kVersion},
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
  absl::StatusOr<Json> json = Unseal(text, path, kHeadFormat);
  if (!json.ok())
    return json.status();
  if (block.substr(text.size()).find_first_not_of('\0') != absl::string_view::npos)
    return Damaged(path, "its head");
  Reader reader(*json);
  DataHead head{reader.Text("state"), reader.Text("path"), reader.Text("home")};
  if (!reader.ok())
    return Damaged(path, "an entry of its head is missing");
  return head;
}

} // namespace boa
