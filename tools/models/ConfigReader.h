//===- ConfigReader.h - The keys of a JSON object ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_MODELS_CONFIGREADER_H
#define BOA_TOOLS_MODELS_CONFIGREADER_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace boa {

/// Reads an object key by key, and remembers which. The first fault stays in `status`, with the
/// file and the key; after it, values are defaults. A key that is null is as one that is absent.
class ConfigReader {
public:
  /// `path`: for errors.
  static absl::StatusOr<ConfigReader> parse(const std::string &path, const std::string &text);

  bool isThere() const { return there; }
  bool has(const std::string &key) const { return find(key) != nullptr; }
  /// Whether it is there, if only as null.
  bool names(const std::string &key) const { return values.contains(key); }
  /// A key without `fallback` must be there.
  int64_t whole(const std::string &key, std::optional<int64_t> fallback, int64_t least,
                int64_t most);
  double real(const std::string &key, std::optional<double> fallback, double least, double most);
  bool flag(const std::string &key, bool fallback);
  std::string word(const std::string &key, const std::string &fallback);
  std::vector<std::string> words(const std::string &key);
  /// One that is not there has no keys.
  ConfigReader object(const std::string &key);

  void refuse(const std::string &key, const std::string &why);
  /// The fault of an object in this one.
  void take(const absl::Status &status);
  /// Refuses the first key that was not read. Some change nothing: `harmless`, those of every
  /// model, null and false.
  void finish(std::initializer_list<const char *> harmless);
  const absl::Status &status() const { return fault; }

private:
  ConfigReader() = default;
  const nlohmann::json *find(const std::string &key) const;
  const nlohmann::json *read(const std::string &key);

  std::string path, prefix;
  nlohmann::json values;
  bool there = true;
  std::set<std::string> taken;
  absl::Status fault;
};

/// The text of a configuration with another `dtype`.
absl::StatusOr<std::string> withDtype(const std::string &path, const std::string &text,
                                      const char *dtype);

} // namespace boa

#endif // BOA_TOOLS_MODELS_CONFIGREADER_H
