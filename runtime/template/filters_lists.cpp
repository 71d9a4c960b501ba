//===- filters_lists.cpp - Filters of lists and mappings ------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/objects.h"
#include "runtime/template/text.h"

#include <algorithm>

namespace boa::jinja {
namespace {

using Shape = List::Shape;

Value None_() { return Value(None()); }

/// The argument, or none.
Value Optional(const Given &given, size_t i) { return given.Has(i) ? given.Get(i) : None_(); }

struct Keyed {
  Value key, item;
};

/// The items with what they are compared by.
std::vector<Keyed> WithKeys(Run &run, std::vector<Value> items, const Value &path,
                            bool case_sensitive, const Value *otherwise = nullptr) {
  std::vector<Keyed> out;
  for (Value &item : items) {
    if (run.failed())
      break;
    Value key = ByPath(run, item, path, otherwise);
    out.push_back({case_sensitive ? std::move(key) : IgnoreCase(run, key), std::move(item)});
  }
  return out;
}

void Sort(Run &run, std::vector<Keyed> &items, bool reverse) {
  std::stable_sort(items.begin(), items.end(), [&](const Keyed &a, const Keyed &b) {
    return !run.failed() && (reverse ? run.Less(b.key, a.key) : run.Less(a.key, b.key));
  });
}

std::vector<Value> ItemsOf(std::vector<Keyed> keyed) {
  std::vector<Value> items;
  for (Keyed &one : keyed)
    items.push_back(std::move(one.item));
  return items;
}

Value SortItems(Run &run, const Value &value, const Given &given) {
  const bool case_sensitive = given.Bool(1, false);
  const Value path = Optional(given, 2);
  // By one attribute or several: the keys are lists, as in jinja2.
  std::vector<Value> paths = {path};
  if (path.is(Kind::text) && run.Room(static_cast<int64_t>(path.text().size()))) {
    paths.clear();
    for (const absl::string_view one : Split(path.text(), ",", -1, false))
      paths.emplace_back(std::string(one));
  }
  std::vector<Keyed> items;
  for (Value &item : run.Items(value)) {
    std::vector<Value> keys;
    for (const Value &one : paths) {
      const Value key = ByPath(run, item, one);
      keys.push_back(case_sensitive ? key : IgnoreCase(run, key));
    }
    items.push_back({run.MakeList(std::move(keys)), std::move(item)});
    if (run.failed())
      break;
  }
  Sort(run, items, given.Bool(0, false));
  return run.MakeList(ItemsOf(std::move(items)));
}

Value Unique(Run &run, const Value &value, const Given &given) {
  std::vector<Keyed> kept;
  for (Keyed &one : WithKeys(run, run.Items(value), Optional(given, 1), given.Bool(0, false)))
    if (std::none_of(kept.begin(), kept.end(), [&](const Keyed &known) {
          return !run.failed() && run.Equal(known.key, one.key);
        }))
      kept.push_back(std::move(one));
  return Walk(run, ItemsOf(std::move(kept)));
}

template <bool is_most> Value Extreme(Run &run, const Value &value, const Given &given) {
  const std::vector<Keyed> items =
      WithKeys(run, run.Items(value), Optional(given, 1), given.Bool(0, false));
  if (items.empty())
    return Value::Missing("the extreme of an empty sequence");
  size_t best = 0;
  for (size_t i = 1; i < items.size() && !run.failed(); ++i)
    if (is_most ? run.Less(items[best].key, items[i].key) : run.Less(items[i].key, items[best].key))
      best = i;
  return items[best].item;
}

Value Sum(Run &run, const Value &value, const Given &given) {
  Value sum = given.Has(1) ? given.Get(1) : Value(int64_t{0});
  for (const Value &item : run.Items(value)) {
    if (run.failed())
      break;
    sum = run.Binary("+", sum, ByPath(run, item, Optional(given, 0)));
  }
  return sum;
}

Value GroupBy(Run &run, const Value &value, const Given &given) {
  const bool case_sensitive = given.Bool(2, false);
  const Value *otherwise = given.HasSome(1) ? &given.Get(1) : nullptr;
  std::vector<Keyed> items =
      WithKeys(run, run.Items(value), given.Get(0), case_sensitive, otherwise);
  Sort(run, items, false);
  std::vector<Value> groups;
  for (size_t begin = 0, end = 0; begin < items.size() && !run.failed(); begin = end) {
    std::vector<Value> members;
    for (end = begin; end < items.size() && run.Equal(items[begin].key, items[end].key); ++end)
      members.push_back(items[end].item);
    if (run.failed())
      break;
    groups.push_back(run.MakeList(
        {ByPath(run, members[0], given.Get(0), otherwise), run.MakeList(members)}, Shape::tuple));
  }
  return run.MakeList(std::move(groups));
}

Value Pairs(Run &run, const Value &dict) {
  return run.Call(run.Attribute(dict, Value("items")), {});
}

Value SortDict(Run &run, const Value &value, const Given &given) {
  const std::string by = given.String(1, "key");
  if (!value.is(Kind::dict) || (by != "key" && by != "value"))
    return run.Fail("`dictsort` sorts a `dict` by `key` or `value`");
  std::vector<Keyed> items = WithKeys(run, run.Items(Pairs(run, value)),
                                      Value(int64_t{by == "value"}), given.Bool(0, false));
  Sort(run, items, given.Bool(2, false));
  return run.MakeList(ItemsOf(std::move(items)));
}

Value PairsOf(Run &run, const Value &value, const Given &) {
  if (value.is(Kind::undefined))
    return Walk(run, {});
  if (!value.is(Kind::dict))
    return run.Fail("`items` of a `", value.type(), "`");
  return Walk(run, run.Items(Pairs(run, value)));
}

Value JoinItems(Run &run, const Value &value, const Given &given) {
  const std::string separator = given.Has(0) ? run.Str(given.Get(0)) : "";
  std::string text;
  bool is_first = true;
  for (const Value &item : run.Items(value)) {
    const std::string more = run.Str(given.HasSome(1) ? ByPath(run, item, given.Get(1)) : item);
    if (run.failed() || !run.Grow(text.size(), more.size() + separator.size()))
      return Value();
    absl::StrAppend(&text, is_first ? "" : separator, more);
    is_first = false;
  }
  return run.MakeText(std::move(text));
}

Value First(Run &run, const Value &value, const Given &) {
  if (auto *iterator = value.As<Iterator>(); iterator && iterator->next < iterator->items.size())
    return iterator->items[iterator->next++];
  if (value.is(Kind::list) && !value.list().items.empty())
    return value.list().items[0];
  const std::vector<Value> items = run.Items(value);
  return items.empty() ? Value::Missing("the first of an empty sequence") : items[0];
}

Value Last(Run &run, const Value &value, const Given &) {
  if (value.As<Iterator>())
    return run.Fail("`last` of a `generator`; use `| list` before it");
  if (value.is(Kind::list) && !value.list().items.empty())
    return value.list().items.back();
  const std::vector<Value> items = run.Items(value);
  return items.empty() ? Value::Missing("the last of an empty sequence") : items.back();
}

Value Reverse(Run &run, const Value &value, const Given &) {
  if (value.is(Kind::text))
    return run.Slice(value, None_(), None_(), Value(int64_t{-1}));
  std::vector<Value> items = run.Items(value);
  std::reverse(items.begin(), items.end());
  return value.As<Iterator>() ? run.MakeList(std::move(items)) : Walk(run, std::move(items));
}

Value Batch(Run &run, const Value &value, const Given &given) {
  const int64_t size = given.Integer(0, 1);
  std::vector<Value> rows, row;
  const auto flush = [&] {
    rows.push_back(run.MakeList(std::move(row)));
    row.clear();
  };
  for (const Value &item : run.Items(value)) {
    if (static_cast<int64_t>(row.size()) == size)
      flush();
    row.push_back(item);
  }
  if (!row.empty()) {
    if (given.HasSome(1) && run.Room(std::max<int64_t>(size, 0)))
      while (static_cast<int64_t>(row.size()) < size)
        row.push_back(given.Get(1));
    flush();
  }
  return Walk(run, std::move(rows));
}

Value SliceItems(Run &run, const Value &value, const Given &given) {
  const std::vector<Value> items = run.Items(value);
  const int64_t slices = given.Integer(0, 1), count = static_cast<int64_t>(items.size());
  if (slices <= 0)
    return slices < 0 ? Walk(run, {}) : run.Fail("a division by zero");
  std::vector<Value> rows;
  int64_t next = 0;
  for (int64_t i = 0; i < slices && run.Step(); ++i) {
    const bool has_more = i < count % slices;
    const int64_t end = next + count / slices + has_more;
    std::vector<Value> row(items.begin() + next, items.begin() + end);
    if (given.HasSome(1) && !has_more)
      row.push_back(given.Get(1));
    rows.push_back(run.MakeList(std::move(row)));
    next = end;
  }
  return Walk(run, std::move(rows));
}

Value Default(Run &run, const Value &value, const Given &given) {
  if (!value.is(Kind::undefined) && (!given.Bool(1, false) || run.Truth(value)))
    return value;
  return given.Has(0) ? given.Get(0) : Value("");
}

Value LengthOf(Run &run, const Value &value, const Given &) { return Value(run.Length(value)); }

Value AttributeOf(Run &run, const Value &value, const Given &given) {
  const std::string name = given.String(0);
  bool refused = false;
  // A member of a mapping is no attribute.
  if (value.is(Kind::dict) && !FindMethod(value, name, refused))
    return Value::Missing(absl::StrCat("a `dict` without the attribute `", name, "`"));
  return run.Attribute(value, Value(name));
}

} // namespace

std::vector<Filter> ListFilters() {
  return {
      {{"attr", "name!", AttributeOf}},
      {{"batch", "linecount! fill_with", Batch}},
      {{"count", "", LengthOf}},
      {{"d", "default_value boolean", Default}},
      {{"default", "default_value boolean", Default}},
      {{"dictsort", "case_sensitive by reverse", SortDict}},
      {{"first", "", First}},
      {{"groupby", "attribute! default case_sensitive", GroupBy}},
      {{"items", "", PairsOf}},
      {{"join", "d attribute", JoinItems}},
      {{"last", "", Last}},
      {{"length", "", LengthOf}},
      {{"list", "",
        [](Run &run, const Value &value, const Given &) {
          return run.MakeList(run.Items(value));
        }}},
      {{"max", "case_sensitive attribute", Extreme<true>}},
      {{"min", "case_sensitive attribute", Extreme<false>}},
      {{"reverse", "", Reverse}},
      {{"slice", "slices! fill_with", SliceItems}},
      {{"sort", "reverse case_sensitive attribute", SortItems}},
      {{"sum", "attribute start", Sum}},
      {{"unique", "case_sensitive attribute", Unique}},
  };
}

} // namespace boa::jinja
