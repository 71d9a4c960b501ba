//===- fields.h - Members of a JSON object ----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Strict reading of a descriptor's JSON: every member must be there, with its type, and no
// other.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_FIELDS_H
#define BOA_RUNTIME_ABI_FIELDS_H

#include "runtime/abi/settings.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace boa {

using Json = nlohmann::json;

/// The most that a count may be. Stored quantities may be larger.
constexpr int64_t kMostCounted = int64_t{1} << 31;

/// Reads the members of one JSON object and remembers the first error. `where`
/// is the path to the object, for messages: "storages[3]".
class Fields {
public:
  Fields(const Json &object, std::string where) : object(object), where(std::move(where)) {
    if (!object.is_object())
      Fail("expected an object but found ", object.type_name());
  }

  void Read(const char *name, std::string &out) {
    if (const Json *value = Find(name, "a string", &Json::is_string))
      out = value->get_ref<const std::string &>();
  }
  void Read(const char *name, bool &out) {
    if (const Json *value = Find(name, "true or false", &Json::is_boolean))
      out = value->get<bool>();
  }
  void Read(const char *name, double &out) {
    if (const Json *value = Find(name, "a number", &Json::is_number))
      out = value->get<double>();
  }
  void Read(const char *name, int64_t &out) {
    if (const Json *value = Find(name, "an integer", &Json::is_number_integer))
      ReadInteger(name, *value, out);
  }
  void Read(const char *name, int32_t &out) {
    int64_t wide = out;
    Read(name, wide);
    if (wide < std::numeric_limits<int32_t>::min() || wide > std::numeric_limits<int32_t>::max())
      return Fail("field `", name, "`: ", wide, " does not fit in 32 bits");
    out = static_cast<int32_t>(wide);
  }
  /// A tier, or tiers with the layers or the share of each but the last behind it.
  void Read(const char *name, Placement &out) {
    auto it = object.find(name);
    if (it != object.end() && it->is_string()) {
      std::string tier;
      Read(name, tier);
      return AddTier(name, tier, out.parts);
    }
    const Json *value = Find(name, "a tier or a list", &Json::is_array);
    out.parts.clear();
    for (size_t i = 0; value && i < value->size(); ++i) {
      const Json &part = (*value)[i];
      if (i % 2 == 0 && part.is_string())
        AddTier(name, part.get<std::string>(), out.parts);
      else if (i % 2 == 1 && part.is_number_integer() && i + 1 < value->size())
        ReadInteger(name, part, out.parts.back().layers);
      else if (i % 2 == 1 && part.is_number() && i + 1 < value->size())
        out.parts.back().share = part.get<double>();
      else
        Fail("field `", name, "`: expected tiers with layers or shares between them");
    }
    if (value && out.parts.empty())
      Fail("field `", name, "`: expected a tier");
  }
  void Read(const char *name, std::vector<int64_t> &out) {
    const Json *value = Find(name, "a list", &Json::is_array);
    if (!value)
      return;
    for (const Json &element : *value) {
      if (!element.is_number_integer())
        return Fail("field `", name, "`: expected integers but found ", element.type_name());
      ReadInteger(name, element, out.emplace_back());
    }
  }
  void Read(const char *name, std::vector<double> &out) {
    const Json *value = Find(name, "a list", &Json::is_array);
    if (!value)
      return;
    for (const Json &element : *value) {
      if (!element.is_number())
        return Fail("field `", name, "`: expected numbers but found ", element.type_name());
      out.push_back(element.get<double>());
    }
  }
  void Read(const char *name, std::map<std::string, int64_t> &out) {
    const Json *value = Find(name, "an object", &Json::is_object);
    if (!value)
      return;
    for (const auto &[key, element] : value->items()) {
      if (!element.is_number_integer())
        return Fail("field `", name, ".", key, "`: expected an integer");
      ReadInteger(name, element, out[key]);
    }
  }
  /// A structure, read by `Parse(Fields &, T &)`.
  template <typename T> void Read(const char *name, T &out) {
    if (const Json *value = Find(name, "an object", &Json::is_object))
      ParseInto(*value, Path(name), out);
  }
  template <typename T> void Read(const char *name, std::vector<T> &out) {
    const Json *value = Find(name, "a list", &Json::is_array);
    for (size_t i = 0; value && status.ok() && i < value->size(); ++i)
      ParseInto((*value)[i], absl::StrCat(Path(name), "[", i, "]"), out.emplace_back());
  }
  template <typename T> void Read(const char *name, std::map<std::string, T> &out) {
    const Json *value = Find(name, "an object", &Json::is_object);
    if (!value)
      return;
    for (const auto &[key, element] : value->items())
      ParseInto(element, absl::StrCat(Path(name), ".", key), out[key]);
  }

  /// As Read, of a member that may be missing.
  template <typename T> void ReadOptional(const char *name, T &out) {
    if (object.is_object() && object.contains(name))
      Read(name, out);
  }

  /// All members of a struct of the table of settings, each in its range.
  template <typename Settings> void ReadSettings(Settings &settings) {
    settings.Visit([&](const SettingRow &row, auto &member) { ReadSetting(row, member); });
  }

  /// The value of `out`, just read, must be one of `words`.
  void OneOf(const char *name, const std::string &out, absl::Span<const char *const> words) {
    for (const char *word : words)
      if (out == word)
        return;
    Fail("field `", name, "`: expected one of ", absl::StrJoin(words, ", "), " but found `", out,
         "`");
  }
  void AtLeast(const char *name, double value, double least) {
    if (!(value >= least))
      Fail("field `", name, "`: expected at least ", least, " but found ", value);
  }

  /// Checks a count, by default of steps, sequences or rows.
  void Counted(const char *name, int64_t value, int64_t most = kMostCounted) {
    if (value > most)
      Fail("field `", name, "`: expected at most ", most, " but found ", value);
  }

  template <typename... Args> void Fail(const Args &...args) {
    if (status.ok())
      status = absl::InvalidArgumentError(
          absl::StrCat("program descriptor: ", where.empty() ? "" : where + ": ", args...));
  }

  /// Whether all that was read so far is as it must be.
  bool ok() const { return status.ok(); }

  /// The first error; unknown fields are one.
  absl::Status Finish() {
    for (auto it = object.begin(); status.ok() && it != object.end(); ++it)
      if (!known.count(it.key()))
        Fail("unknown field `", it.key(), "`");
    return status;
  }

private:
  template <typename T> void ReadSetting(const SettingRow &row, T &member) {
    if constexpr (std::is_enum_v<T>) {
      std::string word;
      Read(row.key, word);
      std::optional<T> value = ParseWord<T>(word);
      if (!value && ok())
        Fail("field `", row.key, "`: expected one of ", row.list, " but found `", word, "`");
      member = value.value_or(member);
    } else {
      const T fallback = member;
      if (!row.isOfFormat || object.contains(row.key))
        Read(row.key, member);
      if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
        if (ok() && member != fallback && !row.Contains(double(member)))
          Fail("field `", row.key, "`: ", member, " is out of range");
    }
  }

  const Json *Find(const char *name, const char *expected, bool (Json::*is)() const noexcept) {
    known.insert(name);
    if (!status.ok())
      return nullptr;
    auto it = object.find(name);
    if (it == object.end()) {
      Fail("missing field `", name, "`");
      return nullptr;
    }
    if (!((*it).*is)()) {
      Fail("field `", name, "`: expected ", expected, " but found ", it->type_name());
      return nullptr;
    }
    return &*it;
  }

  void AddTier(const char *name, const std::string &word, std::vector<Placement::Part> &parts) {
    std::optional<HomeTier> tier = ParseWord<HomeTier>(word);
    if (!tier)
      return Fail("field `", name, "`: expected a tier but found `", word, "`");
    if (parts.size() == 1 && object.find(name)->is_string())
      parts.clear();
    parts.push_back({*tier});
  }

  /// Larger ones would read as negative.
  void ReadInteger(const char *name, const Json &value, int64_t &out) {
    if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX})
      return Fail("field `", name, "`: ", value.get<uint64_t>(), " does not fit in 64 bits");
    out = value.get<int64_t>();
  }

  std::string Path(const char *name) const {
    return where.empty() ? name : absl::StrCat(where, ".", name);
  }

  template <typename T> void ParseInto(const Json &value, std::string path, T &out) {
    Fields fields(value, std::move(path));
    Parse(fields, out);
    absl::Status inner = fields.Finish();
    if (status.ok())
      status = inner;
  }

  const Json &object;
  std::string where;
  std::set<std::string> known;
  absl::Status status;
};

} // namespace boa

#endif // BOA_RUNTIME_ABI_FIELDS_H
