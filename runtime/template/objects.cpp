//===- objects.cpp - Loops, and arguments of functions --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/objects.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace boa::jinja {

Loop::Loop(Run &run, std::vector<Value> items, bool has_length)
    : run(run), items(std::move(items)), has_length(has_length) {}

std::optional<Value> Loop::Pull() {
  while (next < items.size() && !run.failed()) {
    const Value &item = items[next++];
    if (!passes || passes(item))
      return item;
  }
  return std::nullopt;
}

bool Loop::Next() {
  std::optional<Value> item = after ? std::exchange(after, std::nullopt) : Pull();
  if (!item || run.failed())
    return false;
  ++index0;
  previous = std::exchange(current, std::move(item));
  return true;
}

int64_t Loop::length() {
  if (!has_length) {
    // What passes the test is looked for to the end.
    std::vector<Value> rest;
    while (std::optional<Value> item = Pull())
      rest.push_back(*std::move(item));
    items.assign(static_cast<size_t>(index0 + 1 + (after ? 1 : 0)), Value());
    next = items.size();
    items.insert(items.end(), rest.begin(), rest.end());
    passes = nullptr;
    has_length = true;
  }
  return static_cast<int64_t>(items.size());
}

Value Loop::Attribute(const std::string &name) {
  if (name == "index" || name == "index0")
    return Value(index0 + (name == "index"));
  if (name == "first")
    return Value(index0 == 0);
  if (name == "last" || name == "nextitem") {
    if (!after)
      after = Pull();
    if (name == "last")
      return Value(!after.has_value());
    return after ? *after : Value::Missing("there is no next item");
  }
  if (name == "previtem")
    return previous ? *previous : Value::Missing("there is no previous item");
  if (name == "length")
    return Value(length());
  if (name == "revindex" || name == "revindex0")
    return Value(length() - index0 - (name == "revindex0"));
  if (name == "depth" || name == "depth0")
    return Value(int64_t{name == "depth"});
  return Value::Missing(absl::StrCat("`loop` without `", name, "`"));
}

Given::Given(Run &run, absl::string_view function, absl::string_view parameters, const Args &args)
    : args(args), run(run), function(function) {
  if (parameters == "*")
    return;
  std::vector<absl::string_view> names = absl::StrSplit(parameters, ' ', absl::SkipEmpty());
  if (args.positional.size() > names.size()) {
    run.Fail("`", function, "` takes ", names.size(),
             names.size() == 1 ? " argument" : " arguments", ", and not ", args.positional.size());
    return;
  }
  slots.resize(names.size());
  for (size_t i = 0; i < args.positional.size(); ++i)
    slots[i] = &args.positional[i];
  for (const auto &[name, value] : args.named) {
    size_t i = 0;
    while (i < names.size() && absl::StripSuffix(names[i], "!") != name)
      ++i;
    if (i == names.size() || slots[i]) {
      run.Fail("`", function, "` ", i == names.size() ? "has no argument" : "is given twice", " `",
               name, "`");
      return;
    }
    slots[i] = &value;
  }
  for (size_t i = 0; i < names.size(); ++i)
    if (!slots[i] && absl::ConsumeSuffix(&names[i], "!")) {
      run.Fail("`", function, "` needs its argument `", names[i], "`");
      return;
    }
}

int64_t Given::Integer(size_t i, int64_t otherwise) const {
  if (!Has(i))
    return otherwise;
  if (Get(i).is(Kind::integer) || Get(i).is(Kind::boolean))
    return Get(i).integer();
  run.Fail("`", function, "` expects an integer, and not a `", Get(i).type(), "`");
  return otherwise;
}

bool Given::Bool(size_t i, bool otherwise) const { return Has(i) ? run.Truth(Get(i)) : otherwise; }

std::string Given::String(size_t i, absl::string_view otherwise) const {
  if (!Has(i))
    return std::string(otherwise);
  if (!Get(i).is(Kind::text)) {
    run.Fail("`", function, "` expects a text, and not a `", Get(i).type(), "`");
    return "";
  }
  return run.Str(Get(i));
}

} // namespace boa::jinja
