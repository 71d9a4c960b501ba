//===- sealed.h - Lines of JSON with a checksum -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The form of all small files of a state, and of a data file's head: a line of JSON, and a line
// with its checksum. Members of an object are read strictly.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_SEALED_H
#define BOA_RUNTIME_STATE_SEALED_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace boa {

using Json = nlohmann::json;

/// Limits of a manifest.
constexpr size_t kMostText = size_t(1) << 16;  // bytes of a name, a path or a setting
constexpr size_t kMostFacts = size_t(1) << 12; // settings, versions or sources of a commit

constexpr size_t kSumDigits = 32; // of NameOfContents

/// A line of JSON with its format and version, which begins as SealedBegin says, and the line with
/// its checksum. `json`: an object with all other members.
std::string Seal(const char *format, int32_t version, const Json &json);
std::string SealedBegin(const char *format, int32_t version);
std::string SealText(std::string line);

/// The line of JSON that Seal made, in this format and version. Otherwise it fails as ParseManifest
/// does, with `path` in the message.
absl::StatusOr<Json> Unseal(absl::string_view text, const std::string &path, const char *format,
                            int32_t version);

absl::Status Damaged(const std::string &path, absl::string_view what);

/// The text in escapes, so that any bytes survive JSON.
std::string Escape(const std::string &text);
/// Reverses Escape. False if the value is no such text, or has more than `most` bytes.
bool Unescape(const Json &value, size_t most, std::string &text);

/// Whether it is a hash of a text (NameOfContents).
bool IsSum(absl::string_view text);

/// Reads the members of an object, and remembers whether all were there and in range.
class Reader {
public:
  explicit Reader(const Json &json) : json(json) {}
  /// Whether that held for all, and whether the object has no other member.
  bool ok() const { return good && json.is_object() && json.size() == known.size(); }

  bool Has(const char *name) const { return json.is_object() && json.contains(name); }
  /// Passes over the members that Unseal has compared.
  void SkipSeal() {
    Find("format");
    Find("version");
  }
  std::string Text(const char *name, size_t most = kMostText) {
    const Json *value = Find(name);
    std::string text;
    return value && Unescape(*value, most, text) ? text : Bad(std::string());
  }
  /// A text without escapes.
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
  /// A finite number.
  double Real(const char *name) {
    const Json *value = Find(name);
    if (!value || !value->is_number() || !std::isfinite(value->get<double>()))
      return Bad(0.0);
    return value->get<double>();
  }
  const Json &List(const char *name) { return Of(name, Json::value_t::array); }
  const Json &Object(const char *name) { return Of(name, Json::value_t::object); }
  /// An object, or null if the value is null.
  const Json *ObjectOrNull(const char *name) {
    const Json *value = Find(name);
    if (value && value->is_null())
      return nullptr;
    return &Object(name);
  }
  /// Facts by their names. `read(value, fact)` reads each of them.
  template <typename T, typename Read>
  void Facts(const char *name, std::map<std::string, T> &facts, Read read) {
    const Json &object = Object(name);
    good = good && object.size() <= kMostFacts;
    for (const auto &[key, value] : object.items()) {
      std::string fact;
      good = good && Unescape(key, kMostText, fact);
      // Two keys may be one name, in other escapes.
      good = good && facts.count(fact) == 0 && read(value, facts[fact]);
    }
  }

private:
  const Json *Find(const char *name) {
    auto found = json.is_object() ? json.find(name) : json.end();
    if (!json.is_object() || found == json.end())
      return nullptr;
    known.insert(name);
    return &*found;
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
  std::set<absl::string_view> known; // members that were read
  bool good = true;
};

} // namespace boa

#endif // BOA_RUNTIME_STATE_SEALED_H
