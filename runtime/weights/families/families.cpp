//===- families.cpp - The tables of all families --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/families/families.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <utility>

namespace boa {
namespace {

/// A norm divides by its root.
constexpr double kLeastEps = 1e-30;
constexpr int64_t kMostCount = 65536;

ConfigKey Make(ConfigKey::Kind kind, std::string key, std::string value) {
  ConfigKey made;
  made.kind = kind;
  made.key = std::move(key);
  made.value = std::move(value);
  return made;
}

} // namespace

ConfigKey &ConfigKey::Or(nlohmann::json of_absent) {
  fallback = std::move(of_absent);
  return *this;
}
ConfigKey &ConfigKey::From(std::string of_others) {
  formula = std::move(of_others);
  return *this;
}
ConfigKey &ConfigKey::Alias(std::string name) {
  alias = std::move(name);
  return *this;
}
ConfigKey &ConfigKey::Same(std::vector<std::string> names) {
  same = std::move(names);
  return *this;
}
ConfigKey &ConfigKey::Even() {
  even = true;
  return *this;
}
ConfigKey &ConfigKey::DivisorOf(std::string other) {
  divisor_of = std::move(other);
  return *this;
}

ConfigKey Whole(std::string key, std::string value, int64_t most) {
  ConfigKey made = Make(ConfigKey::Kind::whole, std::move(key), std::move(value));
  made.least = 1;
  made.most = double(most);
  return made;
}

ConfigKey Count(std::string key, std::string value) {
  return Whole(std::move(key), std::move(value), kMostCount);
}

ConfigKey Derived(std::string value, std::string formula) {
  return Whole("", std::move(value)).From(std::move(formula));
}

ConfigKey Real(std::string key, std::string value, double least, double most) {
  ConfigKey made = Make(ConfigKey::Kind::real, std::move(key), std::move(value));
  made.least = least;
  made.most = most;
  return made;
}

ConfigKey Eps(std::string key, double of_absent) {
  return Real(std::move(key), "eps", kLeastEps, 1).Or(of_absent);
}

ConfigKey Flag(std::string key, std::string value, bool of_absent) {
  return Make(ConfigKey::Kind::flag, std::move(key), std::move(value)).Or(of_absent);
}

ConfigKey Must(std::string key, nlohmann::json only, std::string lacks) {
  ConfigKey made = Make(ConfigKey::Kind::must, std::move(key), "").Or(std::move(only));
  made.lacks = std::move(lacks);
  return made;
}

ConfigKey Fixed(std::string value, nlohmann::json is) {
  return Make(ConfigKey::Kind::fixed, "", std::move(value)).Or(std::move(is));
}

ConfigKey Activation(std::string key, std::string of_absent) {
  return Make(ConfigKey::Kind::activation, std::move(key), "activation").Or(std::move(of_absent));
}

ConfigKey Dropout(std::string key, double of_absent) {
  return Make(ConfigKey::Kind::dropout, std::move(key), "").Or(of_absent);
}

ConfigKey Rotary(double base) { return Make(ConfigKey::Kind::rotary, "rope_theta", "").Or(base); }

ConfigKey WindowOf(ConfigKey::Window window) {
  ConfigKey made = Make(ConfigKey::Kind::window, "sliding_window", "window");
  made.window = window;
  return made;
}

ConfigKey &Family::Key(const std::string &name) {
  return *std::find_if(keys.begin(), keys.end(),
                       [&](const ConfigKey &key) { return key.key == name; });
}

const ConfigKey *Family::Find(const std::string &name) const {
  for (const ConfigKey &key : keys)
    if (key.key == name)
      return &key;
  return nullptr;
}

const std::vector<Family> &Families() {
  static const std::vector<Family> all = {Gpt2(),   Llama(),   Mistral(),   Qwen2(), Qwen3(),
                                          Olmo2(),  Granite(), SeedOss(),   Phi3(),  Starcoder2(),
                                          Falcon(), Bert(),    Distilbert()};
  return all;
}

const Family *FamilyOfHead(const std::string &module) {
  for (const Family &family : Families())
    if (family.tied_head == module)
      return &family;
  return nullptr;
}

std::string HeadTiedTo(const std::string &module) {
  for (const Family &family : Families())
    if (module + ".weight" == family.base + family.first)
      return family.tied_head;
  return "";
}

const Family *FamilyOfGguf(const std::string &architecture) {
  for (const Family &family : Families())
    if (!architecture.empty() && family.gguf.architecture == architecture)
      return &family;
  return nullptr;
}

std::string GgufArchitectures() {
  std::vector<std::string> names;
  for (const Family &family : Families())
    if (!family.gguf.architecture.empty())
      names.push_back(family.gguf.architecture);
  const std::string last = names.back();
  names.pop_back();
  return absl::StrCat(absl::StrJoin(names, ", "), " and ", last);
}

} // namespace boa
