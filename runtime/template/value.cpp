//===- value.cpp - The values of a template -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/value.h"

#include "runtime/support/refuse.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "nlohmann/json.hpp"

#include <algorithm>

namespace boa::jinja {

Value::Value(std::string text, bool is_safe)
    : data(std::make_shared<const Text>(Text{std::move(text), is_safe})) {}

Value Value::Missing(std::string why) {
  Value out;
  out.data = Undefined{std::make_shared<const std::string>(std::move(why))};
  return out;
}

Value Value::Sequence(std::vector<Value> items, List::Shape shape) {
  int depth = 0;
  for (const Value &item : items)
    depth = std::max(depth, item.depth());
  Value out;
  out.data = std::make_shared<const List>(List{std::move(items), shape, depth + 1});
  return out;
}

Value Value::Mapping(std::vector<std::pair<Value, Value>> entries) {
  int depth = 0;
  for (const auto &[key, value] : entries)
    depth = std::max({depth, key.depth(), value.depth()});
  Value out;
  out.data = std::make_shared<const Dict>(Dict{std::move(entries), depth + 1});
  return out;
}

bool Value::is_number() const { return is(Kind::boolean) || is(Kind::integer) || is(Kind::real); }

int64_t Value::integer() const { return is(Kind::boolean) ? boolean() : std::get<int64_t>(data); }

double Value::real() const {
  return is(Kind::real) ? std::get<double>(data) : static_cast<double>(integer());
}

std::string Value::why() const {
  const Undefined *undefined = std::get_if<Undefined>(&data);
  return undefined && undefined->why ? *undefined->why : "the value is undefined";
}

const Value *Value::Find(absl::string_view key) const {
  if (is(Kind::dict))
    for (const auto &[name, value] : dict().entries)
      if (name.is(Kind::text) && name.text() == key)
        return &value;
  return nullptr;
}

int Value::depth() const {
  return is(Kind::list)     ? list().depth
         : is(Kind::dict)   ? dict().depth
         : is(Kind::object) ? object()->depth
                            : 0;
}

absl::string_view Value::type() const {
  switch (kind()) {
  case Kind::undefined:
    return "undefined";
  case Kind::none:
    return "None";
  case Kind::boolean:
    return "bool";
  case Kind::integer:
    return "int";
  case Kind::real:
    return "float";
  case Kind::text:
    return "str";
  case Kind::list: {
    static const char *const names[] = {"list",      "tuple",       "range",
                                        "dict_keys", "dict_values", "dict_items"};
    return names[static_cast<int>(list().shape)];
  }
  case Kind::dict:
    return "dict";
  case Kind::object:
    return object()->type();
  }
  return "";
}

bool Value::IsSame(const Value &other) const {
  if (kind() != other.kind())
    return false;
  switch (kind()) {
  case Kind::undefined:
    return std::get<Undefined>(data).why == std::get<Undefined>(other.data).why;
  case Kind::none:
    return true;
  case Kind::boolean:
    return boolean() == other.boolean();
  case Kind::integer:
    return integer() == other.integer();
  case Kind::real:
    return real() == other.real();
  case Kind::text: // equal texts of a program are often one object, so this is not told apart
    return text() == other.text();
  case Kind::list:
    return &list() == &other.list();
  case Kind::dict:
    return &dict() == &other.dict();
  case Kind::object:
    return object() == other.object();
  }
  return false;
}

namespace {

/// Builds the value. A false result ends the parse.
class Reader : public nlohmann::json_sax<nlohmann::json> {
public:
  explicit Reader(bool keep_long) : keep_long(keep_long) {}
  bool null() override { return Put(Value(None())); }
  bool boolean(bool value) override { return Put(Value(value)); }
  bool number_integer(number_integer_t value) override { return Put(Value(int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(INT64_MAX))
      return PutLong(absl::StrCat(value));
    return Put(Value(static_cast<int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t &text) override {
    // The parser turns long integers into floats.
    if (text.find_first_of(".eE") == std::string::npos)
      return PutLong(text);
    return Put(Value(value));
  }
  bool string(string_t &value) override { return Put(Value(std::move(value))); }
  bool binary(binary_t &) override { return Fail("binary data"); }
  bool start_object(std::size_t) override { return Open(true); }
  bool start_array(std::size_t) override { return Open(false); }
  bool key(string_t &name) override {
    if (!open.back().names.insert(name).second)
      return Fail(absl::StrCat("the key `", name.substr(0, 80), "` stands twice in one object"));
    open.back().key = std::move(name);
    return true;
  }
  bool end_object() override {
    Value value = Value::Mapping(std::move(open.back().entries));
    open.pop_back();
    return Put(std::move(value));
  }
  bool end_array() override {
    Value value = Value::Sequence(std::move(open.back().items));
    open.pop_back();
    return Put(std::move(value));
  }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    return Fail(absl::StrCat("no JSON at byte ", position));
  }

  Value document;
  std::string fault;

private:
  static constexpr int64_t kMostValues = 8 << 20; // of 16 bytes at least, and up to 100
  struct Level {
    bool is_object = false;
    std::string key;
    absl::flat_hash_set<std::string> names;
    std::vector<std::pair<Value, Value>> entries;
    std::vector<Value> items;
  };
  bool Fail(std::string what) {
    if (fault.empty())
      fault = std::move(what);
    return false;
  }
  bool PutLong(absl::string_view digits) {
    std::string why = absl::StrCat("the number ", digits.substr(0, 80), " has more than 64 bits");
    return keep_long ? Put(Value::Missing(std::move(why))) : Fail(std::move(why));
  }
  bool Open(bool is_object) {
    if (open.size() >= 64)
      return Fail("nested deeper than 64");
    open.emplace_back().is_object = is_object;
    return true;
  }
  bool Put(Value value) {
    if (++count > kMostValues)
      return Fail(absl::StrCat("more than ", kMostValues, " values"));
    if (open.empty())
      document = std::move(value);
    else if (open.back().is_object)
      open.back().entries.emplace_back(Value(std::move(open.back().key)), std::move(value));
    else
      open.back().items.push_back(std::move(value));
    return true;
  }
  const bool keep_long;
  int64_t count = 0;
  std::vector<Level> open; // objects and arrays that are not yet at their end
};

} // namespace

absl::StatusOr<Value> Value::FromJson(absl::string_view text, bool keep_long) {
  Reader reader(keep_long);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader))
    return Refuse(reader.fault.empty() ? "no JSON" : reader.fault);
  return std::move(reader.document);
}

} // namespace boa::jinja
