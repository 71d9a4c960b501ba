//===- text_methods.cpp - Methods of strings ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/builtins.h"
#include "runtime/template/text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

#include <algorithm>

namespace boa::jinja {
namespace {

using View = absl::string_view;

Value Texts(Run &run, const std::vector<View> &parts, List::Shape shape = List::Shape::list) {
  std::vector<Value> items;
  size_t size = 0;
  if (!run.Step(static_cast<int64_t>(parts.size()) * 4))
    return Value();
  for (const View part : parts) {
    if (!run.Grow(size, part.size()))
      return Value();
    size += part.size();
    items.emplace_back(std::string(part));
  }
  return run.MakeList(std::move(items), shape);
}

std::optional<std::string> OptionalText(const Given &given, size_t i) {
  return given.HasSome(i) ? std::optional(given.String(i)) : std::nullopt;
}

Value SplitText(Run &run, const Value &self, const Given &given, bool from_right) {
  const std::optional<std::string> separator = OptionalText(given, 0);
  if (separator && separator->empty())
    return run.Fail("an empty separator");
  const int64_t given_most = given.Integer(1, -1), most_here = MostParts(run);
  const int64_t most = given_most < 0 ? most_here : std::min(given_most, most_here);
  if (!(separator ? run.Search(self.text().size(), separator->size())
                  : run.Charge(self.text().size(), Run::kChanged)))
    return Value();
  return Texts(run, separator ? Split(self.text(), View(*separator), most, from_right)
                              : Split(self.text(), std::nullopt, most, from_right));
}

/// The part of the text from the arguments `i` and `i + 1`, and its first character's index.
View Window(Run &run, const Value &self, const Given &given, size_t i, int64_t &first) {
  first = 0;
  if (!given.HasSome(i) && !given.HasSome(i + 1))
    return self.text();
  const int64_t count = run.Length(self);
  const auto bound = [&](size_t which, int64_t otherwise) {
    const int64_t index = given.HasSome(which) ? given.Integer(which, 0) : otherwise;
    return std::max<int64_t>(0, index < 0 ? index + count : index);
  };
  first = bound(i, 0);
  const int64_t end = std::min(bound(i + 1, count), count);
  if (first > end)
    return View(nullptr, 0);
  const View rest = View(self.text()).substr(run.BytesOf(self.text(), first));
  return rest.substr(0, run.BytesOf(rest, end - first));
}

bool HasEnd(Run &run, const Value &self, const Given &given, bool at_start) {
  int64_t first = 0;
  const View text = Window(run, self, given, 1, first);
  const Value &wanted = given.Get(0);
  const bool is_tuple = wanted.is(Kind::list) && wanted.list().shape == List::Shape::tuple;
  for (const Value &one : is_tuple ? run.Items(wanted) : std::vector<Value>{wanted}) {
    if (!one.is(Kind::text)) {
      run.Fail("`", given.name(), "` expects a text, and not a `", one.type(), "`");
      return false;
    }
    if (text.data() && run.Look(one) &&
        (at_start ? absl::StartsWith(text, one.text()) : absl::EndsWith(text, one.text())))
      return true;
  }
  return false;
}

/// The index of the text; -1 if it is not there.
int64_t IndexOf(Run &run, const Value &self, const Given &given, bool from_right) {
  int64_t first = 0;
  const View text = Window(run, self, given, 1, first);
  const std::string wanted = given.String(0);
  if (!text.data() || !run.Search(text.size(), wanted.size()))
    return -1;
  const size_t found = from_right ? text.rfind(wanted) : text.find(wanted);
  return found == View::npos ? -1 : first + run.CountCharacters(text.substr(0, found));
}

Value Found(Run &run, const Value &self, const Given &given, bool from_right) {
  const int64_t index = IndexOf(run, self, given, from_right);
  return index < 0 ? run.Fail("`", given.name(), "` does not find the text") : Value(index);
}

Value Count(Run &run, const Value &self, const Given &given) {
  int64_t first = 0, count = 0;
  const View text = Window(run, self, given, 1, first);
  const std::string wanted = given.String(0);
  if (!text.data() || !run.Search(text.size(), wanted.size()))
    return Value(int64_t{0});
  if (wanted.empty())
    return Value(run.CountCharacters(text) + 1);
  for (size_t at = text.find(wanted); at != View::npos && run.Step();
       at = text.find(wanted, at + wanted.size()))
    ++count;
  return Value(count);
}

Value Replace(Run &run, const Value &self, const Given &given) {
  return ReplaceText(run, self.text(), given.String(0), given.String(1), given.Integer(2, -1),
                     self.is_safe());
}

Value JoinTexts(Run &run, const Value &self, const Given &given) {
  std::string text;
  bool is_first = true;
  for (const Value &item : run.Items(given.Get(0))) {
    if (!item.is(Kind::text))
      return run.Fail("`join` expects texts, and not a `", item.type(),
                      "`; the filter `join` takes all");
    const View separator = is_first ? View() : View(self.text());
    is_first = false;
    if (!run.Grow(text.size(), separator.size() + item.text().size()))
      return Value();
    absl::StrAppend(&text, separator, item.text());
  }
  return run.MakeText(std::move(text));
}

Value Pad(Run &run, const Value &self, const Given &given, int side) {
  const std::string fill = given.String(1, " ");
  const int64_t missing = given.Integer(0, 0) - run.Length(self);
  if (missing <= 0)
    return self;
  if (run.CountCharacters(fill) != 1)
    return run.Fail("`", given.name(), "` fills with one character");
  if (!run.Grow(self.text().size(),
                static_cast<size_t>(std::min<int64_t>(missing, INT32_MAX)) * fill.size()))
    return Value();
  // As Python does: of an odd number, the one more is left in an odd width.
  const int64_t half = missing / 2 + (missing & given.Integer(0, 0) & 1);
  const int64_t left = side == kLeft ? missing : side == kRight ? 0 : half;
  return run.MakeText(
      absl::StrCat(Repeated(fill, left), self.text(), Repeated(fill, missing - left)));
}

Value Partition(Run &run, const Value &self, const Given &given, bool from_right) {
  const std::string separator = given.String(0);
  if (separator.empty())
    return run.Fail("an empty separator");
  if (!run.Search(self.text().size(), separator.size()))
    return Value();
  const View text = self.text();
  const size_t at = from_right ? text.rfind(separator) : text.find(separator);
  if (at == View::npos)
    return Texts(run,
                 from_right ? std::vector<View>{"", "", text} : std::vector<View>{text, "", ""},
                 List::Shape::tuple);
  return Texts(run, {text.substr(0, at), separator, text.substr(at + separator.size())},
               List::Shape::tuple);
}

/// Whether there are characters, and all are of the kind.
template <auto Is> Value All(Run &run, const Value &self, const Given &given) {
  const View text = self.text();
  if (!run.Charge(text.size(), Run::kChanged))
    return Value();
  for (size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
    const std::optional<bool> is = Is(CharacterAt(text, at, bytes));
    if (!is)
      return run.Fail("`", given.name(), "` is not done for `", text.substr(at, bytes), "`");
    if (!*is)
      return Value(false);
  }
  return Value(!text.empty());
}
bool IsLetterOrNumber(uint32_t c) { return IsLetter(c) || IsNumber(c); }
bool IsDecimal(uint32_t c) { return DecimalOf(c) >= 0; }

Value Case(Run &run, const Value &self, std::string (*change)(View)) {
  return run.Charge(self.text().size(), Run::kChanged)
             ? run.MakeText(change(self.text()), self.is_safe())
             : Value();
}

template <bool (*holds)(View)> Value HasCase(Run &run, const Value &self, const Given &) {
  return run.Charge(self.text().size(), Run::kChanged) ? Value(holds(self.text())) : Value();
}

Value FillZeros(Run &run, const Value &self, const Given &given) {
  const int64_t missing = given.Integer(0, 0) - run.Length(self);
  if (missing <= 0)
    return self;
  if (!run.Grow(self.text().size(), static_cast<size_t>(missing)))
    return Value();
  const bool has_sign = absl::StartsWith(self.text(), "-") || absl::StartsWith(self.text(), "+");
  return run.MakeText(absl::StrCat(self.text().substr(0, has_sign),
                                   std::string(static_cast<size_t>(missing), '0'),
                                   self.text().substr(has_sign)));
}

} // namespace

int64_t MostParts(Run &run) { return std::max<int64_t>(run.steps_left(), 0) / 4 + 1; }

Value StripText(Run &run, const Value &text, const Given &given, int sides) {
  const std::optional<std::string> characters = OptionalText(given, 0);
  // Each is looked for among `characters`.
  if (run.failed() ||
      !run.Charge(text.text().size() * (1 + (characters ? characters->size() / 2 : 0)), Run::kRead))
    return Value();
  return run.MakeText(
      std::string(characters ? Strip(text.text(), sides, *characters) : Strip(text.text(), sides)),
      text.is_safe());
}

Value ReplaceText(Run &run, View text, View old, View with, int64_t most, bool is_safe) {
  std::string out;
  run.Search(text.size(), old.size());
  while (most != 0 && !run.failed()) {
    // An empty text is before each character, and at the end.
    size_t found = old.empty() ? 0 : text.find(old), taken = old.size();
    if (found == View::npos)
      break;
    View kept = text.substr(0, found);
    const bool is_last = old.empty() && text.empty();
    if (old.empty() && !text.empty()) {
      CharacterAt(text, 0, taken);
      kept = text.substr(0, taken);
    }
    if (!run.Step() || !run.Grow(out.size(), kept.size() + with.size()))
      return Value();
    if (old.empty())
      absl::StrAppend(&out, with, kept);
    else
      absl::StrAppend(&out, kept, with);
    text.remove_prefix(found + taken);
    --most;
    if (is_last)
      break;
  }
  if (!run.Grow(out.size(), text.size()))
    return Value();
  absl::StrAppend(&out, text);
  return Value(std::move(out), is_safe);
}

const std::vector<Function> &TextMethods() {
  static const std::vector<Function> methods = {
      {"capitalize", "",
       [](Run &run, const Value &self, const Given &) { return Case(run, self, Capitalize); }},
      {"casefold", "",
       [](Run &run, const Value &self, const Given &) { return Case(run, self, FoldCase); }},
      {"center", "width! fillchar",
       [](Run &run, const Value &self, const Given &given) { return Pad(run, self, given, 0); }},
      {"count", "sub! start end", Count},
      {"endswith", "suffix! start end",
       [](Run &run, const Value &self, const Given &given) {
         return Value(HasEnd(run, self, given, false));
       }},
      {"find", "sub! start end",
       [](Run &run, const Value &self, const Given &given) {
         return Value(IndexOf(run, self, given, false));
       }},
      {"format", "*",
       [](Run &run, const Value &self, const Given &given) {
         return run.FormatBraces(self.text(), given.args);
       }},
      {"index", "sub! start end",
       [](Run &run, const Value &self, const Given &given) {
         return Found(run, self, given, false);
       }},
      {"isalnum", "", All<IsLetterOrNumber>},
      {"isalpha", "", All<IsLetter>},
      {"isdecimal", "", All<IsDecimal>},
      {"isdigit", "", All<IsDigit>},
      {"islower", "", HasCase<IsLower>},
      {"isnumeric", "", All<IsNumeric>},
      {"isspace", "", All<IsSpace>},
      {"isupper", "", HasCase<IsUpper>},
      {"join", "iterable!", JoinTexts},
      {"ljust", "width! fillchar",
       [](Run &run, const Value &self, const Given &given) {
         return Pad(run, self, given, kRight);
       }},
      {"lower", "",
       [](Run &run, const Value &self, const Given &) { return Case(run, self, Lower); }},
      {"lstrip", "chars",
       [](Run &run, const Value &self, const Given &given) {
         return StripText(run, self, given, kLeft);
       }},
      {"partition", "sep!",
       [](Run &run, const Value &self, const Given &given) {
         return Partition(run, self, given, false);
       }},
      {"removeprefix", "prefix!",
       [](Run &run, const Value &self, const Given &given) {
         return run.MakeText(std::string(absl::StripPrefix(self.text(), given.String(0))));
       }},
      {"removesuffix", "suffix!",
       [](Run &run, const Value &self, const Given &given) {
         return run.MakeText(std::string(absl::StripSuffix(self.text(), given.String(0))));
       }},
      {"replace", "old! new! count", Replace},
      {"rfind", "sub! start end",
       [](Run &run, const Value &self, const Given &given) {
         return Value(IndexOf(run, self, given, true));
       }},
      {"rindex", "sub! start end",
       [](Run &run, const Value &self, const Given &given) {
         return Found(run, self, given, true);
       }},
      {"rjust", "width! fillchar",
       [](Run &run, const Value &self, const Given &given) {
         return Pad(run, self, given, kLeft);
       }},
      {"rpartition", "sep!",
       [](Run &run, const Value &self, const Given &given) {
         return Partition(run, self, given, true);
       }},
      {"rsplit", "sep maxsplit",
       [](Run &run, const Value &self, const Given &given) {
         return SplitText(run, self, given, true);
       }},
      {"rstrip", "chars",
       [](Run &run, const Value &self, const Given &given) {
         return StripText(run, self, given, kRight);
       }},
      {"split", "sep maxsplit",
       [](Run &run, const Value &self, const Given &given) {
         return SplitText(run, self, given, false);
       }},
      {"splitlines", "keepends",
       [](Run &run, const Value &self, const Given &given) {
         return run.Charge(self.text().size(), Run::kRead)
                    ? Texts(run, SplitLines(self.text(), given.Bool(0, false), MostParts(run)))
                    : Value();
       }},
      {"startswith", "prefix! start end",
       [](Run &run, const Value &self, const Given &given) {
         return Value(HasEnd(run, self, given, true));
       }},
      {"strip", "chars",
       [](Run &run, const Value &self, const Given &given) {
         return StripText(run, self, given, kLeft | kRight);
       }},
      {"swapcase", "",
       [](Run &run, const Value &self, const Given &) { return Case(run, self, SwapCase); }},
      {"title", "",
       [](Run &run, const Value &self, const Given &) { return Case(run, self, Title); }},
      {"upper", "",
       [](Run &run, const Value &self, const Given &) { return Case(run, self, Upper); }},
      {"zfill", "width!", FillZeros},
  };
  return methods;
}

} // namespace boa::jinja
