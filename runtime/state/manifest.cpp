//===- manifest.cpp - What a commit writes down ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The manifest is one line of JSON and one line with its CRC-32C. It names the
// program that it is of, the extent and the checksum of each chunk, and the record
// of the trainer.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/impl.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

namespace boa {

using Json = nlohmann::json;

namespace {

constexpr int kVersion = 1;
constexpr char kFormat[] = "boa-state";

} // namespace

std::string ManifestPath(const std::string &directory) { return directory + "/manifest.json"; }

Json Fingerprint(const Program &program) {
  Json storages = Json::array();
  for (const Storage &storage : program.storages)
    storages.push_back({{"name", storage.name},
                        {"role", storage.role},
                        {"entries", storage.entries},
                        {"bytes", storage.bytes},
                        {"chunks", storage.chunks},
                        {"persistent", storage.persistent}});
  // Where each parameter stands in its group's entries.
  Json parameters = Json::object();
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters)
      parameters[group.name + "." + parameter.name] = {{"offset", parameter.offset},
                                                       {"shape", parameter.shape}};
  return {{"storages", storages},
          {"parameters", parameters},
          {"delay", absl::StrFormat("%a", program.delay)}};
}

absl::Status StateStore::Impl::Damaged(absl::string_view what) const {
  return absl::DataLossError(absl::StrFormat("%s is damaged (%s): restore it from a copy",
                                             ManifestPath(directories[0]), what));
}

//===----------------------------------------------------------------------===//
// Comparing and parsing
//===----------------------------------------------------------------------===//

namespace {

/// A member of the wanted kind, or null.
const Json *Member(const Json &object, const char *name, Json::value_t kind) {
  if (!object.is_object())
    return nullptr;
  auto found = object.find(name);
  if (found == object.end())
    return nullptr;
  bool integer = kind == Json::value_t::number_integer;
  bool matches = integer ? found->is_number_integer() : found->type() == kind;
  return matches ? &*found : nullptr;
}

/// The first field in which two storages of the same name differ.
std::string DifferenceOf(const Json &ours, const Json &theirs) {
  for (const auto &[field, value] : ours.items()) {
    auto other = theirs.find(field);
    std::string text = other == theirs.end() ? "nothing" : other->dump();
    if (text != value.dump())
      return absl::StrFormat("%s is %s in the program and %s in the state", field, value.dump(),
                             text);
  }
  return "";
}

/// What differs between the program and the one of the state; empty: nothing.
std::string ProgramDifference(const Json &ours, const Json &theirs) {
  const Json *storages = Member(theirs, "storages", Json::value_t::array);
  if (!storages)
    return "the state has no storages";
  const Json &mine = ours["storages"];
  for (size_t i = 0; i < std::max(mine.size(), storages->size()); ++i) {
    if (i >= storages->size())
      return absl::StrCat("the state has no storage ", mine[i]["name"].dump());
    const Json &other = (*storages)[i];
    const Json *name = Member(other, "name", Json::value_t::string);
    if (i >= mine.size())
      return absl::StrCat("the program has no storage ", name ? name->dump() : "without a name");
    if (std::string text = DifferenceOf(mine[i], other); !text.empty())
      return absl::StrCat("storage ", mine[i]["name"].dump(), ": ", text);
  }
  if (std::string text = DifferenceOf(ours["parameters"], theirs.value("parameters", Json()));
      !text.empty())
    return absl::StrCat("parameter ", text);
  return DifferenceOf({{"delay", ours["delay"]}}, theirs);
}

std::optional<int64_t> ParseStep(const std::string &text) {
  char *end = nullptr;
  errno = 0;
  int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != 0 || errno != 0)
    return std::nullopt;
  return value;
}

std::optional<double> ParseDouble(const std::string &text) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0)
    return std::nullopt;
  return value;
}

/// 16 hexadecimal digits.
std::optional<uint64_t> ParseChecksum(const std::string &text) {
  char *end = nullptr;
  uint64_t value = std::strtoull(text.c_str(), &end, 16);
  if (text.size() != 16 || *end != 0)
    return std::nullopt;
  return value;
}

} // namespace

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

Json StateStore::Impl::WriteChunks() const {
  Json chunks = Json::object();
  std::lock_guard<std::mutex> lock(mutex);
  for (const StorageLayout &storage : storages) {
    if (!storage.persistent)
      continue;
    std::string extents, checksums;
    for (uint8_t bit : storage.current)
      extents.push_back(char('0' + bit));
    for (size_t i = 0; i < storage.current.size(); ++i) {
      Extent extent = storage.extents[i];
      if (storage.current[i])
        extent.offset += half_bytes[files[extent.file].link];
      auto sum = this->checksums.find({extent.file, extent.offset});
      checksums += absl::StrFormat("%016x", sum == this->checksums.end() ? 0 : sum->second);
    }
    chunks[storage.name] = {{"extents", extents}, {"checksums", checksums}};
  }
  return chunks;
}

std::string StateStore::Impl::WriteManifest(const CommitRecord &record) const {
  Json factors = Json::object(), extra = Json::object();
  for (const auto &[step, factor] : record.clip_factors)
    factors[absl::StrCat(step)] = absl::StrFormat("%a", factor);
  for (const auto &[key, value] : record.extra)
    extra[absl::CHexEscape(key)] = absl::CHexEscape(value);
  Json stripe = Json::array();
  for (double weight : weights)
    stripe.push_back(absl::StrFormat("%a", weight));
  Json manifest = {{"format", kFormat},
                   {"version", kVersion},
                   {"program_name", absl::CHexEscape(program_name)},
                   {"program", fingerprint},
                   {"stripe", stripe},
                   {"step", record.step},
                   {"pending", record.pending},
                   {"clip_factors", factors},
                   {"extra", extra},
                   {"chunks", WriteChunks()}};
  std::string text = manifest.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return absl::StrFormat("%sxxh3 %016x\n", text, boa::Checksum(text.data(), int64_t(text.size())));
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

absl::Status StateStore::Impl::ReadWeights(const Json &manifest) {
  const Json *stripe = Member(manifest, "stripe", Json::value_t::array);
  if (!stripe)
    return Damaged("no stripe");
  if (stripe->size() != directories.size())
    return absl::FailedPreconditionError(
        absl::StrFormat("the state of %s lies on %d ssd paths, and %d are "
                        "given: give the paths "
                        "with which it was made",
                        directories[0], stripe->size(), directories.size()));
  for (size_t path = 0; path < stripe->size(); ++path) {
    const Json &text = (*stripe)[path];
    std::optional<double> weight;
    if (text.is_string())
      weight = ParseDouble(text.get_ref<const std::string &>());
    if (!weight || !(*weight > 0) || !std::isfinite(*weight))
      return Damaged("bad stripe");
    weights[path] = *weight;
  }
  return absl::OkStatus();
}

absl::Status StateStore::Impl::ReadRecord(const Json &manifest) {
  const Json *step = Member(manifest, "step", Json::value_t::number_integer);
  const Json *pending = Member(manifest, "pending", Json::value_t::number_integer);
  const Json *factors = Member(manifest, "clip_factors", Json::value_t::object);
  const Json *extra = Member(manifest, "extra", Json::value_t::object);
  if (!step || !pending || !factors || !extra)
    return Damaged("an entry is missing");
  committed.step = step->get<int64_t>();
  committed.pending = pending->get<int64_t>();
  for (const auto &[key, value] : factors->items()) {
    std::optional<int64_t> at = ParseStep(key);
    std::optional<double> factor;
    if (value.is_string())
      factor = ParseDouble(value.get_ref<const std::string &>());
    if (!at || !factor)
      return Damaged("bad clip factor");
    committed.clip_factors[*at] = *factor;
  }
  for (const auto &[key, value] : extra->items()) {
    std::string name, text;
    if (!value.is_string() || !absl::CUnescape(key, &name) ||
        !absl::CUnescape(value.get_ref<const std::string &>(), &text))
      return Damaged("bad extra entry");
    committed.extra[name] = text;
  }
  return absl::OkStatus();
}

absl::Status StateStore::Impl::ReadChunks(const Json &manifest) {
  const Json *chunks = Member(manifest, "chunks", Json::value_t::object);
  if (!chunks)
    return Damaged("no chunks");
  for (StorageLayout &storage : storages) {
    if (!storage.persistent)
      continue;
    const Json *saved = Member(*chunks, storage.name.c_str(), Json::value_t::object);
    const Json *extents = saved ? Member(*saved, "extents", Json::value_t::string) : nullptr;
    const Json *checksums = saved ? Member(*saved, "checksums", Json::value_t::string) : nullptr;
    if (!extents || !checksums)
      return Damaged(absl::StrCat("no chunks of ", storage.name));
    const auto &bits = extents->get_ref<const std::string &>();
    const auto &sums = checksums->get_ref<const std::string &>();
    if (bits.size() != storage.current.size() || sums.size() != 16 * storage.current.size() ||
        bits.find_first_not_of("01") != std::string::npos)
      return Damaged(absl::StrCat("bad chunks of ", storage.name));
    for (size_t i = 0; i < bits.size(); ++i) {
      std::optional<uint64_t> checksum = ParseChecksum(sums.substr(16 * i, 16));
      if (!checksum)
        return Damaged(absl::StrCat("bad checksum of ", storage.name));
      storage.current[i] = storage.committed[i] = uint8_t(bits[i] - '0');
      Extent extent = storage.extents[i];
      if (storage.current[i])
        extent.offset += half_bytes[files[extent.file].link];
      if (*checksum != 0)
        this->checksums[{extent.file, extent.offset}] = *checksum;
    }
  }
  return absl::OkStatus();
}

namespace {

/// The JSON line of a manifest whose CRC line matches; empty: it does not.
absl::string_view CheckedJson(absl::string_view text) {
  size_t end = text.find('\n');
  if (end == absl::string_view::npos)
    return {};
  absl::string_view json = text.substr(0, end + 1);
  std::string crc =
      absl::StrFormat("xxh3 %016x\n", boa::Checksum(json.data(), int64_t(json.size())));
  return text.substr(end + 1) == crc ? json : absl::string_view();
}

} // namespace

/// Reads what is committed, and lays the chunks out as the state has them.
absl::Status StateStore::Impl::ReadManifest(const Program &program) {
  std::string path = ManifestPath(directories[0]);
  absl::StatusOr<std::string> text = ReadSmallFile(path);
  if (!text.ok())
    return text.status();
  Json manifest = Json::parse(text->substr(0, text->find('\n')), nullptr, false);
  const Json *format = Member(manifest, "format", Json::value_t::string);
  if (!manifest.is_discarded() && (!format || *format != kFormat))
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is not of a training state: choose another directory"));
  if (CheckedJson(*text).empty() || manifest.is_discarded())
    return Damaged("truncated, or its CRC does not match");
  const Json *version = Member(manifest, "version", Json::value_t::number_integer);
  if (!version || *version != kVersion)
    return absl::FailedPreconditionError(
        absl::StrFormat("%s has version %s and this trainer knows %d: use the "
                        "trainer that made it",
                        path, version ? version->dump() : "none", kVersion));
  const Json *theirs = Member(manifest, "program", Json::value_t::object);
  if (!theirs)
    return Damaged("no program");
  if (std::string difference = ProgramDifference(fingerprint, *theirs); !difference.empty())
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is the state of another program: %s", directories[0], difference));
  if (absl::Status status = ReadWeights(manifest); !status.ok())
    return status;
  LayOut(program);
  if (absl::Status status = ReadRecord(manifest); !status.ok())
    return status;
  return ReadChunks(manifest);
}

} // namespace boa
