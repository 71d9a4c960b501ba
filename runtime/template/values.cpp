//===- values.cpp - Truth, text, equality and order of values -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/objects.h"
#include "runtime/template/run.h"
#include "runtime/template/text.h"

#include "absl/strings/match.h"

#include <algorithm>
#include <cmath>

namespace boa::jinja {

bool Run::Truth(const Value &value) {
  switch (value.kind()) {
  case Kind::undefined:
  case Kind::none:
    return false;
  case Kind::boolean:
  case Kind::integer:
    return value.integer() != 0;
  case Kind::real:
    return value.real() != 0;
  case Kind::text:
    return !value.text().empty();
  case Kind::list:
    return !value.list().items.empty();
  case Kind::dict:
    return !value.dict().entries.empty();
  case Kind::object:
    return true;
  }
  return false;
}

std::string Run::Str(const Value &value) {
  if (value.is(Kind::text))
    return Look(value) ? value.text() : "";
  std::string out;
  if (!value.is(Kind::undefined))
    AppendRepr(value, out);
  return out;
}

void Run::AppendRepr(const Value &value, std::string &out) {
  const auto list = [&](const char *open, const char *close) {
    out += open;
    const std::vector<Value> &items = value.list().items;
    for (size_t i = 0; i < items.size() && !failed(); ++i) {
      out += i > 0 ? ", " : "";
      AppendRepr(items[i], out);
    }
    out += close;
  };
  const size_t before = out.size();
  if (!Step())
    return;
  switch (value.kind()) {
  case Kind::undefined:
    out += "Undefined";
    break;
  case Kind::none:
    out += "None";
    break;
  case Kind::boolean:
    out += value.boolean() ? "True" : "False";
    break;
  case Kind::integer:
    absl::StrAppend(&out, value.integer());
    break;
  case Kind::real:
    out += RealToString(value.real());
    break;
  case Kind::text:
    // An escaped byte has four.
    if (Grow(out.size(), value.text().size() * 4) && Charge(value.text().size(), kChanged))
      absl::StrAppend(&out, value.is_safe() ? "Markup(" : "", Quote(value.text()),
                      value.is_safe() ? ")" : "");
    break;
  case Kind::list:
    switch (value.list().shape) {
    case List::Shape::list:
      list("[", "]");
      break;
    case List::Shape::tuple:
      list("(", value.list().items.size() == 1 ? ",)" : ")");
      break;
    case List::Shape::range:
      Fail("a range has no text; use `| list`");
      break;
    case List::Shape::keys:
    case List::Shape::values:
    case List::Shape::items:
      absl::StrAppend(&out, value.type());
      list("([", "])");
      break;
    }
    break;
  case Kind::dict: {
    out += "{";
    bool is_first = true;
    for (const auto &[key, member] : value.dict().entries) {
      if (failed())
        break;
      out += is_first ? "" : ", ";
      is_first = false;
      AppendRepr(key, out);
      out += ": ";
      AppendRepr(member, out);
    }
    out += "}";
    break;
  }
  case Kind::object:
    Fail("a `", value.type(), "` has no text",
         value.As<Iterator>() ? "; use `| list` or `| join`" : "");
    break;
  }
  Grow(before, out.size() - before);
}

bool Run::Equal(const Value &left, const Value &right) {
  if (!Step())
    return false;
  if (left.is_number() && right.is_number())
    return left.is(Kind::real) || right.is(Kind::real) ? left.real() == right.real()
                                                       : left.integer() == right.integer();
  if (left.kind() != right.kind())
    return false;
  switch (left.kind()) {
  case Kind::text:
    return left.text().size() == right.text().size() && Look(left) && left.text() == right.text();
  case Kind::list: {
    const List &a = left.list(), &b = right.list();
    if (a.shape != b.shape || a.items.size() != b.items.size())
      return false;
    for (size_t i = 0; i < a.items.size(); ++i)
      if (failed() || !Equal(a.items[i], b.items[i]))
        return false;
    return true;
  }
  case Kind::dict: {
    if (left.dict().entries.size() != right.dict().entries.size())
      return false;
    for (const auto &[key, value] : left.dict().entries) {
      const Value *other = failed() ? nullptr : Find(right.dict(), key);
      if (!other || !Equal(value, *other))
        return false;
    }
    return true;
  }
  case Kind::object:
    return left.object() == right.object();
  default:
    return true; // none and undefined
  }
}

bool Run::Less(const Value &left, const Value &right, bool or_equal) {
  if (!Step())
    return false;
  if (left.is_number() && right.is_number()) {
    if (left.is(Kind::real) || right.is(Kind::real))
      return or_equal ? left.real() <= right.real() : left.real() < right.real();
    return or_equal ? left.integer() <= right.integer() : left.integer() < right.integer();
  }
  // The order of UTF-8 is that of code points.
  if (left.is(Kind::text) && right.is(Kind::text))
    return !Look(left) ? false
           : or_equal  ? left.text() <= right.text()
                       : left.text() < right.text();
  if (left.is(Kind::list) && right.is(Kind::list) && left.list().shape == right.list().shape &&
      (left.list().shape == List::Shape::list || left.list().shape == List::Shape::tuple)) {
    const std::vector<Value> &a = left.list().items, &b = right.list().items;
    for (size_t i = 0; i < std::min(a.size(), b.size()) && !failed(); ++i)
      if (!Equal(a[i], b[i]))
        return Less(a[i], b[i], or_equal);
    return or_equal ? a.size() <= b.size() : a.size() < b.size();
  }
  for (const Value *side : {&left, &right})
    if (side->is(Kind::undefined))
      Fail(side->why());
  Fail("a `", left.type(), "` and a `", right.type(), "` have no order");
  return false;
}

bool Run::Contains(const Value &container, const Value &item) {
  switch (container.kind()) {
  case Kind::text:
    if (!item.is(Kind::text)) {
      Fail(item.is(Kind::undefined) ? item.why()
                                    : absl::StrCat("a `", item.type(), "` is not in a `str`"));
      return false;
    }
    return Search(container.text().size(), item.text().size()) &&
           absl::StrContains(container.text(), item.text());
  case Kind::dict:
    return Find(container.dict(), item) != nullptr;
  default:
    for (const Value &member : Items(container))
      if (failed() || Equal(member, item))
        return !failed();
    return false;
  }
}

bool Run::IsIterable(const Value &value) {
  return value.is(Kind::undefined) || value.is(Kind::text) || value.is(Kind::list) ||
         value.is(Kind::dict) || value.As<Iterator>();
}

std::vector<Value> Run::Items(const Value &value) {
  std::vector<Value> items;
  switch (value.kind()) {
  case Kind::undefined:
    break;
  case Kind::text:
    // A character becomes a text of its own.
    if (Step(static_cast<int64_t>(value.text().size() * 4)))
      for (const absl::string_view character : Characters(value.text()))
        items.emplace_back(std::string(character));
    break;
  case Kind::list:
    if (Step(static_cast<int64_t>(value.list().items.size())))
      items = value.list().items;
    break;
  case Kind::dict:
    if (Step(static_cast<int64_t>(value.dict().entries.size())))
      for (const auto &[key, member] : value.dict().entries)
        items.push_back(key);
    break;
  default:
    if (auto *iterator = value.As<Iterator>()) {
      items.assign(iterator->items.begin() + static_cast<std::ptrdiff_t>(iterator->next),
                   iterator->items.end());
      iterator->next = iterator->items.size();
      Step(static_cast<int64_t>(items.size()));
    } else {
      Fail("a `", value.type(), "` has no items to walk through");
    }
  }
  return items;
}

int64_t Run::Length(const Value &value) {
  switch (value.kind()) {
  case Kind::undefined:
    return 0;
  case Kind::text:
    return CountCharacters(value.text());
  case Kind::list:
    return static_cast<int64_t>(value.list().items.size());
  case Kind::dict:
    return static_cast<int64_t>(value.dict().entries.size());
  default:
    if (auto *loop = value.As<Loop>())
      return loop->length();
    Fail("a `", value.type(), "` has no length",
         value.As<Iterator>() ? "; use `| list` before it" : "");
    return 0;
  }
}

namespace {

void AppendJsonText(absl::string_view text, bool is_ascii, std::string &out) {
  out.push_back('"');
  for (size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
    const uint32_t c = CharacterAt(text, at, bytes);
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const size_t which =
        c < 128 ? absl::string_view(from).find(static_cast<char>(c)) : absl::string_view::npos;
    if (which != absl::string_view::npos && which < sizeof to - 1)
      absl::StrAppend(&out, "\\", std::string(1, to[which]));
    else if (c < 32 || (is_ascii && c >= 127 && c < 0x10000))
      AppendHex("\\u", c, 4, out);
    else if (is_ascii && c >= 0x10000) {
      AppendHex("\\u", 0xd800 + ((c - 0x10000) >> 10), 4, out);
      AppendHex("\\u", 0xdc00 + ((c - 0x10000) & 0x3ff), 4, out);
    } else
      absl::StrAppend(&out, text.substr(at, bytes));
  }
  out.push_back('"');
}

std::string JsonReal(double value) {
  return std::isnan(value)   ? "NaN"
         : std::isinf(value) ? (value < 0 ? "-Infinity" : "Infinity")
                             : RealToString(value);
}

} // namespace

void Run::AppendJson(const Value &value, const JsonStyle &style, std::string &out, int level) {
  const size_t before = out.size();
  const auto put = [&](const std::string &text) {
    if (Grow(out.size(), text.size()))
      out += text;
  };
  const auto line = [&](int depth) {
    if (!style.indent)
      return;
    out += "\n";
    if (Grow(out.size(), style.indent->size() * static_cast<size_t>(depth)))
      out += Repeated(*style.indent, depth);
  };
  if (!Step())
    return;
  switch (value.kind()) {
  case Kind::none:
    out += "null";
    break;
  case Kind::boolean:
    out += value.boolean() ? "true" : "false";
    break;
  case Kind::integer:
    absl::StrAppend(&out, value.integer());
    break;
  case Kind::real:
    out += JsonReal(value.real());
    break;
  case Kind::text:
    if (Grow(out.size(), value.text().size() * 4) && Charge(value.text().size(), kChanged))
      AppendJsonText(value.text(), style.is_ascii, out);
    break;
  case Kind::list: {
    if (value.list().shape > List::Shape::tuple) {
      Fail("a `", value.type(), "` is no JSON; use `| list` before `tojson`");
      break;
    }
    out += "[";
    bool is_first = true;
    for (const Value &item : value.list().items) {
      if (failed())
        break;
      put(is_first ? "" : style.item);
      is_first = false;
      line(level + 1);
      AppendJson(item, style, out, level + 1);
    }
    if (!is_first)
      line(level);
    out += "]";
    break;
  }
  case Kind::dict: {
    std::vector<std::pair<Value, Value>> entries = value.dict().entries;
    if (style.is_sorted)
      std::stable_sort(entries.begin(), entries.end(),
                       [&](const auto &a, const auto &b) { return Less(a.first, b.first); });
    out += "{";
    bool is_first = true;
    for (const auto &[key, member] : entries) {
      if (failed())
        break;
      put(is_first ? "" : style.item);
      is_first = false;
      line(level + 1);
      const char *const quote = key.is(Kind::text) ? "" : "\"";
      if (!key.is(Kind::text) && !key.is_number() && !key.is(Kind::none))
        Fail("a `", key.type(), "` is no key of JSON");
      out += quote;
      AppendJson(key, style, out);
      out += quote;
      put(style.member);
      AppendJson(member, style, out, level + 1);
    }
    if (!is_first)
      line(level);
    out += "}";
    break;
  }
  case Kind::undefined:
    Fail(value.why(), ", so it is no JSON");
    break;
  case Kind::object:
    Fail("a `", value.type(), "` is no JSON",
         value.As<Iterator>() ? "; use `| list` before `tojson`" : "");
    break;
  }
  Grow(before, out.size() - before);
}

} // namespace boa::jinja
