//===- filters_text.cpp - Filters of texts --------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/builtins.h"
#include "runtime/template/text.h"

#include "absl/strings/match.h"

#include <algorithm>

namespace boa::jinja {
namespace {

/// The value's text, with the same mark of safety.
template <std::string (*change)(absl::string_view)>
Value Change(Run &run, const Value &value, const Given &) {
  const std::string text = run.Str(value);
  return run.Charge(text.size(), Run::kChanged) ? run.MakeText(change(text), value.is_safe())
                                                : Value();
}

Value EscapeAlways(Run &run, const Value &value, const Given &) {
  const std::string text = run.Str(value);
  // An escape has up to five bytes.
  return run.Grow(0, text.size() * 5) && run.Charge(text.size(), Run::kRead)
             ? run.MakeText(EscapeHtml(text), /*is_safe=*/true)
             : Value();
}

Value Escape(Run &run, const Value &value, const Given &given) {
  return value.is_safe() ? value : EscapeAlways(run, value, given);
}

Value Indent(Run &run, const Value &value, const Given &given) {
  if (!value.is(Kind::text))
    return run.Fail(value.is(Kind::undefined) ? value.why()
                                              : absl::StrCat("`indent` of a `", value.type(), "`"));
  std::string indent;
  if (given.Has(0) && given.Get(0).is(Kind::text)) {
    indent = given.Get(0).text();
  } else {
    const int64_t width = std::max<int64_t>(given.Integer(0, 4), 0);
    if (!run.Grow(0, static_cast<size_t>(width)))
      return Value();
    indent = std::string(static_cast<size_t>(width), ' ');
  }
  std::string text;
  bool is_first = true;
  const std::string whole = value.text() + "\n";
  if (!run.Charge(whole.size(), Run::kRead))
    return Value();
  for (const absl::string_view line : SplitLines(whole, /*keep_ends=*/false, MostParts(run))) {
    const bool indents = is_first ? given.Bool(1, false) : given.Bool(2, false) || !line.empty();
    if (!run.Step(4) || !run.Grow(text.size(), line.size() + (indents ? indent.size() : 0) + 1))
      return Value();
    absl::StrAppend(&text, is_first ? "" : "\n", indents ? indent : "", line);
    is_first = false;
  }
  return run.MakeText(std::move(text), value.is_safe());
}

Value ToJson(Run &run, const Value &value, const Given &given) {
  Run::JsonStyle style;
  style.is_ascii = given.Bool(0, false);
  if (given.HasSome(1)) {
    if (given.Get(1).is(Kind::text)) {
      style.indent = given.Get(1).text();
    } else {
      const int64_t width = std::max<int64_t>(given.Integer(1, 0), 0);
      if (!run.Grow(0, static_cast<size_t>(width)))
        return Value();
      style.indent = std::string(static_cast<size_t>(width), ' ');
    }
    style.item = ",";
  }
  if (given.HasSome(2)) {
    const std::vector<Value> parts = run.Items(given.Get(2));
    if (parts.size() != 2 || !parts[0].is(Kind::text) || !parts[1].is(Kind::text))
      return run.Fail("`separators` expects two texts");
    style.item = parts[0].text();
    style.member = parts[1].text();
  }
  style.is_sorted = given.Bool(3, false);
  std::string text;
  run.AppendJson(value, style, text);
  return run.MakeText(std::move(text));
}

/// Words begin behind white space and some brackets.
std::string TitleWords(absl::string_view text) {
  std::string out;
  size_t begin = 0; // of the word
  const auto flush = [&](size_t end) {
    const absl::string_view word = text.substr(begin, end - begin);
    const size_t first = ByteOf(word, 1);
    absl::StrAppend(&out, Upper(word.substr(0, first)), Lower(word.substr(first)));
  };
  for (size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
    const uint32_t c = CharacterAt(text, at, bytes);
    if (IsSpace(c) || (c < 128 && absl::StrContains("-({[<", static_cast<char>(c)))) {
      flush(at);
      begin = at + bytes;
      absl::StrAppend(&out, text.substr(at, bytes));
    }
  }
  flush(text.size());
  return out;
}

Value Trim(Run &run, const Value &value, const Given &given) {
  return StripText(run, Value(run.Str(value), value.is_safe()), given, kLeft | kRight);
}

Value Truncate(Run &run, const Value &value, const Given &given) {
  const std::string end = given.String(2, "...");
  const int64_t length = given.Integer(0, 255), keeps = length - run.CountCharacters(end);
  const int64_t leeway = given.HasSome(3) ? given.Integer(3, 5) : 5;
  if (keeps < 0 || leeway < 0)
    return run.Fail("`truncate` to less than the length of its end");
  if (run.Length(value) - leeway <= length)
    return value;
  if (!value.is(Kind::text))
    return run.Fail("`truncate` of a `", value.type(), "`");
  const std::string &text = value.text();
  std::string kept = text.substr(0, run.BytesOf(text, keeps));
  if (!given.Bool(1, false))
    kept = kept.substr(0, kept.rfind(' '));
  return run.MakeText(kept + end);
}

Value CountWords(Run &run, const Value &value, const Given &) {
  int64_t count = 0;
  bool in_word = false;
  const std::string text = run.Str(value);
  if (!run.Charge(text.size(), Run::kRead))
    return Value();
  for (size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
    const uint32_t c = CharacterAt(text, at, bytes);
    const bool is_word = c == '_' || IsLetter(c) || IsNumber(c);
    count += is_word && !in_word;
    in_word = is_word;
  }
  return Value(count);
}

Value Center(Run &run, const Value &value, const Given &given) {
  const Value text(run.Str(value));
  return run.Call(run.Attribute(text, Value("center")), {{Value(given.Integer(0, 80))}, {}});
}

Value Format(Run &run, const Value &value, const Given &given) {
  const Args &args = given.args;
  if (!args.positional.empty() && !args.named.empty())
    return run.Fail("`format` takes arguments with a name, or without, and not both");
  if (args.named.empty())
    return run.FormatPercent(run.Str(value), run.MakeList(args.positional, List::Shape::tuple));
  std::vector<std::pair<Value, Value>> entries;
  for (const auto &[name, given_value] : args.named)
    run.Insert(entries, Value(name), given_value);
  return run.FormatPercent(run.Str(value), run.MakeDict(std::move(entries)));
}

} // namespace

std::vector<Filter> TextFilters() {
  return {
      {{"capitalize", "", Change<Capitalize>}},
      {{"center", "width", Center}},
      {{"e", "", Escape}},
      {{"escape", "", Escape}},
      {{"forceescape", "", EscapeAlways}},
      {{"format", "*", Format}},
      {{"indent", "width first blank", Indent}},
      {{"lower", "", Change<Lower>}},
      {{"replace", "old! new! count",
        [](Run &run, const Value &value, const Given &given) {
          return ReplaceText(run, run.Str(value), run.Str(given.Get(0)), run.Str(given.Get(1)),
                             given.HasSome(2) ? given.Integer(2, -1) : -1, /*is_safe=*/false);
        }}},
      {{"safe", "",
        [](Run &run, const Value &value, const Given &) {
          return run.MakeText(run.Str(value), /*is_safe=*/true);
        }}},
      {{"string", "",
        [](Run &run, const Value &value, const Given &) {
          return value.is(Kind::text) ? value : run.MakeText(run.Str(value));
        }}},
      {{"title", "", Change<TitleWords>}},
      {{"tojson", "ensure_ascii indent separators sort_keys", ToJson}},
      {{"trim", "chars", Trim}},
      {{"truncate", "length killwords end leeway", Truncate}},
      {{"upper", "", Change<Upper>}},
      {{"wordcount", "", CountWords}},
  };
}

} // namespace boa::jinja
