//===- json.cpp - JSON documents of others, within limits -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/formats/json.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include <string>
#include <utility>
#include <vector>

namespace boa {
namespace {

using Json = nlohmann::json;

// What a value takes at most beside the characters of its text: itself, while a list grows, and the
// list, object or text that it owns. A name takes a node.
constexpr int64_t kBytesOfValue = 96, kBytesOfName = 128;

/// Builds the document. A false result ends the parse.
class Builder : public nlohmann::json_sax<Json> {
public:
  explicit Builder(const JsonLimits &limits) : limits(limits) {}

  bool null() override { return Put(nullptr) != nullptr; }
  bool boolean(bool value) override { return Put(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return Put(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return Put(value) != nullptr; }
  bool number_float(number_float_t value, const string_t &) override {
    return Put(value) != nullptr;
  }
  bool string(string_t &value) override {
    return Spend(int64_t(value.size())) && Put(std::move(value)) != nullptr;
  }
  bool binary(binary_t &) override { return Fail("binary data"); }
  bool start_object(std::size_t) override { return Begin(Json::object()); }
  bool start_array(std::size_t) override { return Begin(Json::array()); }
  bool end_object() override { return End(); }
  bool end_array() override { return End(); }
  bool key(string_t &name) override {
    if (!Spend(kBytesOfName + int64_t(name.size())))
      return false;
    auto [it, is_new] = open.back()->emplace(name, nullptr);
    if (!is_new)
      return Fail(absl::StrCat("the key `", name.substr(0, 80), "` stands twice in one object"));
    member = &*it;
    return true;
  }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    return Fail(absl::StrCat("no JSON at byte ", position));
  }

  Json document;
  std::string fault;

private:
  bool Fail(std::string what) {
    if (fault.empty())
      fault = std::move(what);
    return false;
  }
  bool Spend(int64_t more) {
    bytes += more;
    return bytes <= limits.bytes ||
           Fail(absl::StrCat("it would take more than ", limits.bytes >> 20, " MiB of memory"));
  }
  Json *Put(Json value) {
    if (++count > limits.values) {
      Fail(absl::StrCat("more than ", limits.values, " values"));
      return nullptr;
    }
    if (!Spend(kBytesOfValue))
      return nullptr;
    if (open.empty()) {
      document = std::move(value);
      return &document;
    }
    if (open.back()->is_array()) {
      open.back()->push_back(std::move(value));
      return &open.back()->back();
    }
    *member = std::move(value);
    return member;
  }
  bool Begin(Json empty) {
    if (static_cast<int64_t>(open.size()) >= limits.depth)
      return Fail(absl::StrCat("nested deeper than ", limits.depth));
    Json *place = Put(std::move(empty));
    if (place)
      open.push_back(place);
    return place != nullptr;
  }
  bool End() {
    open.pop_back();
    return true;
  }

  JsonLimits limits;
  int64_t count = 0, bytes = 0;
  // The objects and arrays that are not yet at their end. Nothing is added to one while another
  // within it is open, so they stay where they are.
  std::vector<Json *> open;
  Json *member = nullptr;
};

} // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text, const JsonLimits &limits) {
  Builder builder(limits);
  if (!Json::sax_parse(text.begin(), text.end(), &builder))
    return absl::InvalidArgumentError(builder.fault.empty() ? "no JSON" : builder.fault);
  return std::move(builder.document);
}

} // namespace boa
