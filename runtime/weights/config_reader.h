//===- config_reader.h - The keys of a JSON object --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_CONFIG_READER_H
#define BOA_RUNTIME_WEIGHTS_CONFIG_READER_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace boa {

/// Reads an object key by key, and remembers which. Each fault comes into `status`, with the file
/// and the key; the value of a key with a fault is a default. A key that is null is as one that is
/// absent.
class ConfigReader {
public:
  /// `path`: for errors.
  static absl::StatusOr<ConfigReader> Parse(const std::string &path, const std::string &text);

  bool IsThere() const { return there; }
  bool Has(const std::string &key) const { return Find(key) != nullptr; }
  /// Whether it is there, if only as null.
  bool Names(const std::string &key) const { return values.contains(key); }
  /// A key without `fallback` must be there.
  int64_t Whole(const std::string &key, std::optional<int64_t> fallback, int64_t least,
                int64_t most);
  double Real(const std::string &key, std::optional<double> fallback, double least, double most);
  bool Flag(const std::string &key, bool fallback);
  std::string Word(const std::string &key, const std::string &fallback);
  /// A word, or a flag in words: "true".
  std::string WordOrFlag(const std::string &key, const std::string &fallback);
  std::vector<std::string> Words(const std::string &key);
  /// Whether it is there, and neither null nor false nor empty.
  bool IsOn(const std::string &key) const;
  /// Whether each value of an object is this number; true of an object that is not there.
  bool HasOnly(const std::string &key, double value);
  /// One that is not there has no keys.
  ConfigReader Object(const std::string &key);

  void Refuse(const std::string &key, const std::string &why);
  /// The same of a model that a spec by hand may have, though no table has it.
  void RefuseForm(const std::string &key, const std::string &why);
  /// Refuses the keys that were not read and ask for something that the language lacks.
  void RefuseLacking();
  /// Whether no key of these was refused, so that their values can be compared.
  bool Good(const std::vector<std::string> &keys) const;
  /// Other names of what `key` names. Refuses those with another value.
  void Agree(const std::vector<std::string> &names, const std::string &key, double value);
  /// The faults of an object in this one.
  void Take(const ConfigReader &inner);
  /// Refuses each key that was not read. Some change nothing: `harmless`, those of every model,
  /// null, false, and what is empty.
  void Finish(const std::vector<std::string> &harmless);
  /// All faults, and whether a spec by hand may serve.
  absl::Status status() const;

private:
  ConfigReader() = default;
  const nlohmann::json *Find(const std::string &key) const;
  const nlohmann::json *Read(const std::string &key);

  std::string path, prefix;
  nlohmann::json values;
  bool there = true, by_hand = false;
  std::set<std::string> taken, refused;
  std::vector<std::string> faults; // "key `a`: why"
};

/// The text of a configuration with another `dtype`, and without `auto_map`: it names files of code
/// that no export writes.
absl::StatusOr<std::string> ForExport(const std::string &path, const std::string &text,
                                      const char *dtype);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_CONFIG_READER_H
