//===- access.cpp - Attributes, items, slices and calls -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/objects.h"
#include "runtime/template/run.h"
#include "runtime/template/text.h"

#include <algorithm>

namespace boa::jinja {

bool Run::IsKey(const Value &known, const Value &key) {
  if (key.is(Kind::text) && known.is(Kind::text) && key.text().size() < 64)
    return known.text() == key.text(); // most keys: no steps of their own
  return Equal(known, key);
}

const Value *Run::Find(const Dict &dict, const Value &key) {
  Step(static_cast<int64_t>(dict.entries.size() / 16));
  for (const auto &[name, value] : dict.entries)
    if (IsKey(name, key))
      return &value;
  return nullptr;
}

void Run::Insert(std::vector<std::pair<Value, Value>> &entries, Value key, Value value) {
  if (key.is(Kind::dict) || (key.is(Kind::list) && key.list().shape == List::Shape::list)) {
    Fail("a `", key.type(), "` cannot be a key");
    return;
  }
  Step(static_cast<int64_t>(entries.size() / 16));
  for (auto &[known, old] : entries)
    if (IsKey(known, key)) {
      old = std::move(value);
      return;
    }
  entries.emplace_back(std::move(key), std::move(value));
}

Value Run::AttributeOfMacro(const Signature &signature, const std::string &name) {
  if (name == "name")
    return Value(signature.name);
  if (name == "arguments") {
    std::vector<Value> names;
    for (const int parameter : signature.parameters)
      names.push_back(MakeText(program.symbols[static_cast<size_t>(parameter)]));
    return MakeList(std::move(names), List::Shape::tuple);
  }
  for (const auto &[known, has] :
       {std::pair("caller", signature.has_caller), std::pair("catch_kwargs", signature.has_kwargs),
        std::pair("catch_varargs", signature.has_varargs)})
    if (name == known)
      return Value(has);
  return Value::Missing(absl::StrCat("a `Macro` without `", name, "`"));
}

Value Run::Attribute(const Value &value, const Value &key) {
  const std::string &name = key.text();
  if (value.is(Kind::undefined))
    return Fail(value.why());
  bool refused = false;
  if (const Function *method = FindMethod(value, name, refused))
    return Own(std::make_shared<Callable>(*method, value), {value});
  if (refused)
    return Value::Missing(absl::StrCat("`", name, "` changes a `", value.type(),
                                       "`, which a template cannot; use `+` or a namespace"));
  if (auto *loop = value.As<Loop>())
    return loop->Attribute(name);
  if (auto *cycler = value.As<Cycler>(); cycler && !cycler->is_joiner && name == "current")
    return cycler->items[cycler->next % cycler->items.size()];
  if (const auto *macro = value.As<Macro>())
    return AttributeOfMacro(macro->node.signature, name);
  if (auto *space = value.As<Namespace>()) {
    Step(static_cast<int64_t>(space->attributes.size() / 16));
    for (const auto &[known, attribute] : space->attributes)
      if (known.text() == name)
        return attribute;
  } else if (value.is(Kind::dict)) {
    if (const Value *member = Find(value.dict(), key))
      return *member;
  } else if (value.is(Kind::list) && value.list().items.size() == 2 &&
             value.list().shape == List::Shape::tuple && (name == "grouper" || name == "list")) {
    return value.list().items[name == "list"]; // of groupby
  }
  return Value::Missing(absl::StrCat("a `", value.type(), "` without `", name, "`"));
}

Value Run::Item(const Value &value, const Value &key) {
  if (value.is(Kind::undefined))
    return Fail(value.why());
  if (!Look(key) || !Step())
    return Value();
  if (value.is(Kind::dict))
    if (const Value *member = Find(value.dict(), key))
      return *member;
  const bool is_index = key.is(Kind::integer) || key.is(Kind::boolean);
  if (is_index && value.is(Kind::list) && value.list().shape <= List::Shape::range) {
    const std::vector<Value> &items = value.list().items;
    const int64_t count = static_cast<int64_t>(items.size());
    const int64_t index = key.integer() < 0 ? key.integer() + count : key.integer();
    if (index >= 0 && index < count)
      return items[static_cast<size_t>(index)];
  } else if (is_index && value.is(Kind::text)) {
    const int64_t index =
        key.integer() < 0 ? key.integer() + CountCharacters(value.text()) : key.integer();
    const size_t begin = index < 0 ? value.text().size() : BytesOf(value.text(), index);
    if (failed())
      return Value();
    if (begin < value.text().size()) {
      size_t bytes = 0;
      CharacterAt(value.text(), begin, bytes);
      return MakeText(value.text().substr(begin, bytes), value.is_safe());
    }
  } else if (key.is(Kind::text)) {
    return Attribute(value, key);
  }
  std::string shown;
  if (key.is(Kind::integer) || key.is(Kind::text))
    AppendRepr(key, shown);
  return Value::Missing(absl::StrCat("a `", value.type(), "` without the item ",
                                     shown.empty() ? absl::StrCat("`", key.type(), "`") : shown));
}

Value Run::Slice(const Value &value, const Value &from, const Value &to, const Value &step) {
  if (value.is(Kind::undefined))
    return Fail(value.why());
  const bool is_text = value.is(Kind::text);
  for (const Value *bound : {&from, &to, &step})
    if (!bound->is(Kind::none) && !bound->is(Kind::integer) && !bound->is(Kind::boolean))
      return Fail(bound->is(Kind::undefined) ? bound->why()
                                             : absl::StrCat("a slice by a `", bound->type(), "`"));
  if (!is_text && !(value.is(Kind::list) && value.list().shape <= List::Shape::range))
    return Fail("a slice of a `", value.type(), "`");
  const int64_t by = step.is(Kind::none) ? 1 : step.integer();
  if (by == 0)
    return Fail("the step of a slice is 0");

  const int64_t count = Length(value);
  const int64_t lowest = by > 0 ? 0 : -1, highest = by > 0 ? count : count - 1;
  const auto bound = [&](const Value &given, int64_t otherwise) {
    if (given.is(Kind::none))
      return otherwise;
    const int64_t index = given.integer();
    return index < 0 ? (index < -count ? lowest : std::max(index + count, lowest))
                     : std::min(index, highest);
  };
  const int64_t begin = bound(from, by > 0 ? 0 : count - 1), end = bound(to, by > 0 ? count : -1);
  if (is_text && by == 1) {
    if (begin >= end)
      return MakeText("", value.is_safe());
    const absl::string_view rest =
        absl::string_view(value.text()).substr(BytesOf(value.text(), begin));
    return MakeText(std::string(rest.substr(0, BytesOf(rest, end - begin))), value.is_safe());
  }
  const std::vector<Value> all = Items(value);
  std::vector<Value> chosen;
  // A huge step would overflow.
  const int64_t stride = std::clamp(by, -count - 1, count + 1);
  for (int64_t i = begin; (by > 0 ? i < end : i > end) && !failed(); i += stride)
    chosen.push_back(all[static_cast<size_t>(i)]);
  if (!is_text)
    return MakeList(std::move(chosen), value.list().shape);
  std::string text;
  for (const Value &character : chosen)
    text += character.text();
  return MakeText(std::move(text), value.is_safe());
}

Value Run::Call(const Value &callee, const Args &args) {
  if (callee.is(Kind::undefined))
    return Fail(callee.why());
  if (auto *macro = callee.As<Macro>())
    return CallMacro(*macro, args);
  if (auto *callable = callee.As<Callable>()) {
    const Given given(*this, callable->function.name, callable->function.parameters, args);
    return !Look(callable->self) || !Look(args)
               ? Value()
               : callable->function.call(*this, callable->self, given);
  }
  if (auto *joiner = callee.As<Cycler>(); joiner && joiner->is_joiner)
    return joiner->next++ == 0 ? Value("") : joiner->items[0];
  if (callee.As<Loop>())
    return Fail("recursive loops are not done; a macro that calls itself does the same");
  return Fail("a `", callee.type(), "` cannot be called");
}

} // namespace boa::jinja
