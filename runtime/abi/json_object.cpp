//===- json_object.cpp - JSON that a user writes as a value ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/json_object.h"

#include "nlohmann/json.hpp"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace boa {
namespace {

/// Finds the first fault of values and keeps none of them. A false result ends the parse.
class Checker : public nlohmann::json_sax<nlohmann::json> {
public:
  Checker(const std::string &expected, std::string (*fault_of_key)(std::string_view))
      : expected(expected), fault_of_key(fault_of_key) {}

  bool null() override { return Add(); }
  bool boolean(bool) override { return Add(); }
  bool number_integer(number_integer_t) override { return Add(); }
  bool number_unsigned(number_unsigned_t value) override {
    return value > uint64_t(INT64_MAX) ? FailAtLong(std::to_string(value)) : Add();
  }
  bool number_float(number_float_t, const string_t &text) override {
    // The parser turns long integers into floats.
    return text.find_first_of(".eE") == std::string::npos ? FailAtLong(text) : Add();
  }
  bool string(string_t &) override { return Add(); }
  bool binary(binary_t &) override { return Fail(expected); }
  bool start_object(std::size_t) override {
    names.emplace_back();
    return CheckDepth();
  }
  bool end_object() override {
    names.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    ++arrays;
    return Add() && CheckDepth();
  }
  bool end_array() override {
    --arrays;
    return true;
  }
  bool key(string_t &name) override {
    if (!names.back().insert(name).second)
      return Fail("the key `" + name.substr(0, 80) + "` stands twice in one object");
    return depth() > 1 || Fail(fault_of_key(name));
  }
  bool parse_error(std::size_t byte, const std::string &,
                   const nlohmann::detail::exception &) override {
    return Fail(expected + ": no JSON at byte " + std::to_string(byte));
  }

  std::string fault;

private:
  size_t depth() const { return names.size() + arrays; }
  bool CheckDepth() { return depth() <= 64 || Fail("nested deeper than 64"); }
  bool Fail(std::string what) {
    fault = std::move(what);
    return fault.empty();
  }
  bool FailAtLong(const std::string &digits) {
    return Fail("the number " + digits.substr(0, 80) + " has more than 64 bits");
  }
  /// Only an object may stand alone.
  bool Add() { return !names.empty() || Fail(expected); }

  const std::string &expected;
  std::string (*const fault_of_key)(std::string_view);
  std::vector<std::set<std::string>> names; // of the objects that are open
  size_t arrays = 0;                        // that are open
};

} // namespace

size_t EndOfObject(std::string_view text) {
  if (text.empty() || text[0] != '{')
    return std::string_view::npos;
  int64_t open = 0;
  bool is_string = false;
  for (size_t at = 0; at < text.size() && text[at] != '\n'; ++at) {
    const char c = text[at];
    if (is_string && c == '\\')
      ++at;
    else if (c == '"')
      is_string = !is_string;
    else if (!is_string && c == '{')
      ++open;
    else if (!is_string && c == '}' && --open == 0)
      return at + 1;
  }
  return std::string_view::npos;
}

std::string FaultOfObject(std::string_view json, const std::string &expected,
                          std::string (*fault_of_key)(std::string_view)) {
  Checker checker(expected, fault_of_key);
  nlohmann::json::sax_parse(json.begin(), json.end(), &checker);
  return checker.fault;
}

} // namespace boa
