//===- filters.cpp - Filters by name, and what they share -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/objects.h"
#include "runtime/template/text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include <algorithm>

namespace boa::jinja {
namespace {

const std::vector<Filter> &Filters() {
  static const std::vector<Filter> filters = [] {
    std::vector<Filter> all = TextFilters();
    for (const std::vector<Filter> &part : {NumberFilters(), ListFilters(), ChoosingFilters()})
      all.insert(all.end(), part.begin(), part.end());
    std::sort(all.begin(), all.end(),
              [](const Filter &a, const Filter &b) { return absl::string_view(a.name) < b.name; });
    return all;
  }();
  return filters;
}

} // namespace

const Filter *FindFilter(absl::string_view name) {
  const auto found = std::lower_bound(
      Filters().begin(), Filters().end(), name,
      [](const Filter &filter, absl::string_view key) { return filter.name < key; });
  return found != Filters().end() && name == found->name ? &*found : nullptr;
}

std::vector<std::string> FilterNames() {
  std::vector<std::string> names;
  for (const Filter &filter : Filters())
    names.emplace_back(filter.name);
  return names;
}

Value ByPath(Run &run, const Value &item, const Value &path, const Value *otherwise) {
  Value value = item;
  if (!run.Look(path))
    return value;
  const auto enter = [&](const Value &key) {
    value = run.Item(value, key);
    if (otherwise && value.is(Kind::undefined))
      value = *otherwise;
  };
  if (path.is(Kind::integer)) {
    enter(path);
  } else if (path.is(Kind::text)) {
    for (const absl::string_view part : absl::StrSplit(path.text(), '.')) {
      int64_t index = 0;
      const bool is_index = std::all_of(part.begin(), part.end(), absl::ascii_isdigit) &&
                            absl::SimpleAtoi(part, &index);
      if (!run.Step())
        break;
      enter(is_index ? Value(index) : Value(std::string(part)));
    }
  } else if (!path.is(Kind::none)) {
    return run.Fail("a `", path.type(), "` names no attribute");
  }
  return value;
}

Value IgnoreCase(Run &run, const Value &value) {
  if (!value.is(Kind::text) || !run.Charge(value.text().size(), Run::kChanged))
    return value;
  return run.MakeText(Lower(value.text()));
}

Value Walk(Run &run, std::vector<Value> items) {
  run.Room(0);
  auto iterator = std::make_shared<Iterator>(std::move(items));
  return run.Own(iterator, iterator->items);
}

} // namespace boa::jinja
