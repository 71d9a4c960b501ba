//===- format.cpp - '%s' % value and '{}'.format(value) -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/run.h"
#include "runtime/template/text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace boa::jinja {
namespace {

/// [[fill]align][sign][#][0][width][,][.precision][type]
struct Spec {
  std::string fill = " ";
  char align = 0, sign = '-', type = 0, grouping = 0;
  bool is_alternate = false, is_zero = false;
  int64_t width = 0, precision = -1;
};

bool TakeNumber(absl::string_view &text, int64_t &value) {
  if (text.empty() || !absl::ascii_isdigit(text[0]))
    return true;
  for (value = 0; !text.empty() && absl::ascii_isdigit(text[0]); text.remove_prefix(1))
    value = std::min<int64_t>(value * 10 + (text[0] - '0'), 1 << 30);
  return true;
}

/// Whether a field of a pattern is a number: digits alone.
bool IsIndex(absl::string_view field, int64_t &index) {
  return std::all_of(field.begin(), field.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(field, &index);
}

void AppendPadded(Run &run, const Spec &spec, absl::string_view sign, absl::string_view body,
                  bool is_number, std::string &out) {
  const char align = spec.align ? spec.align : is_number ? (spec.is_zero ? '=' : '>') : '<';
  const int64_t missing =
      spec.width == 0 ? 0
                      : std::max<int64_t>(0, spec.width - run.CountCharacters(body) - Length(sign));
  const std::string &fill = spec.is_zero && !spec.align ? "0" : spec.fill;
  if (!run.Grow(out.size(), static_cast<size_t>(missing) * fill.size() + body.size()))
    return;
  const auto pad = [&](int64_t count) { out += Repeated(fill, count); };
  const int64_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  pad(left);
  absl::StrAppend(&out, sign);
  pad(align == '=' ? missing : 0);
  absl::StrAppend(&out, body);
  pad(align == '=' ? 0 : missing - left);
}

std::string Grouped(absl::string_view number, char separator) {
  size_t whole = 0;
  while (whole < number.size() && absl::ascii_isdigit(number[whole]))
    ++whole;
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0)
      out.push_back(separator);
    out.push_back(number[i]);
  }
  return out + std::string(number.substr(whole));
}

std::string DigitsOf(uint64_t value, uint64_t base, bool is_upper) {
  std::string out;
  do
    out.push_back((is_upper ? "0123456789ABCDEF" : "0123456789abcdef")[value % base]);
  while (value /= base);
  std::reverse(out.begin(), out.end());
  return out;
}

constexpr int kMostDigits = 1000; // behind a point

std::string RealBody(double value, const Spec &spec) {
  if (!std::isfinite(value))
    return absl::ascii_isupper(spec.type) ? (std::isnan(value) ? "NAN" : "INF")
                                          : (std::isnan(value) ? "nan" : "inf");
  if (!spec.type && spec.precision < 0)
    return RealToString(value);
  const char type = spec.type == '%' ? 'f' : spec.type ? spec.type : 'g';
  const char format[] = {'%', '.', '*', type, 0};
  const int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  const double shown = spec.type == '%' ? value * 100 : value;
  char text[kMostDigits + 400]; // with 309 before the point
  std::snprintf(text, sizeof text, format, precision, shown);
  return absl::StrCat(text, spec.type == '%' ? "%" : "");
}

bool AppendNumber(Run &run, const Value &value, const Spec &spec, std::string &out) {
  const bool as_real = spec.type && absl::StrContains("eEfFgG%", spec.type);
  if (spec.type && !as_real && (!absl::StrContains("bdoxXcn", spec.type) || value.is(Kind::real)))
    return false;
  if (spec.precision > kMostDigits) {
    run.Fail("a precision of more than ", kMostDigits, " digits");
    return true;
  }
  std::string sign, body;
  bool is_negative = false;
  if (as_real || value.is(Kind::real)) {
    is_negative = std::signbit(value.real()) && !std::isnan(value.real());
    body = RealBody(std::fabs(value.real()), spec);
    run.Step(static_cast<int64_t>(32 + body.size()));
  } else if (spec.type == 'c') {
    if (value.integer() < 0 || value.integer() > 0x10ffff)
      return false;
    AppendCharacter(static_cast<uint32_t>(value.integer()), body);
  } else {
    is_negative = value.integer() < 0;
    const uint64_t size = is_negative ? 0 - static_cast<uint64_t>(value.integer())
                                      : static_cast<uint64_t>(value.integer());
    const char type = absl::ascii_tolower(spec.type);
    const uint64_t base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' ? 16 : 10;
    body = DigitsOf(size, base, spec.type == 'X');
    if (spec.is_alternate && base != 10)
      sign = absl::StrCat("0", std::string(1, spec.type));
  }
  if (spec.grouping)
    body = Grouped(body, spec.grouping);
  if (is_negative)
    sign = "-" + sign;
  else if (spec.sign != '-')
    sign = std::string(1, spec.sign) + sign;
  AppendPadded(run, spec, sign, body, /*is_number=*/true, out);
  return true;
}

void AppendString(Run &run, std::string text, const Spec &spec, std::string &out) {
  if (spec.precision >= 0)
    text.resize(run.BytesOf(text, spec.precision));
  AppendPadded(run, spec, "", text, /*is_number=*/false, out);
}

} // namespace

Value Run::FormatPercent(const std::string &pattern, const Value &value) {
  const bool is_tuple = value.is(Kind::list) && value.list().shape == List::Shape::tuple;
  size_t next = 0, named = 0;
  std::string out;
  const auto take = [&]() -> Value {
    if (is_tuple ? next < value.list().items.size() : next == 0)
      return is_tuple ? value.list().items[next++] : (++next, value);
    return Fail("the pattern has more places than there are values");
  };
  Charge(pattern.size(), kRead);
  absl::string_view rest = pattern;
  while (!rest.empty() && !failed()) {
    const size_t text = std::min(rest.find('%'), rest.size());
    if (!Step() || !Grow(out.size(), text + 1))
      break;
    absl::StrAppend(&out, rest.substr(0, text));
    rest.remove_prefix(text);
    if (!absl::ConsumePrefix(&rest, "%"))
      break;
    Spec spec;
    std::optional<Value> given;
    if (absl::ConsumePrefix(&rest, "(")) {
      const size_t end = rest.find(')');
      const Value *member = end == absl::string_view::npos || !value.is(Kind::dict)
                                ? nullptr
                                : Find(value.dict(), Value(std::string(rest.substr(0, end))));
      if (!member)
        return Fail("no value for `%(", rest.substr(0, end), ")`");
      given = *member;
      ++named;
      rest.remove_prefix(end + 1);
    }
    spec.align = '>';
    for (; !rest.empty() && absl::StrContains("-+ #0", rest[0]); rest.remove_prefix(1)) {
      if (rest[0] == '-')
        spec.align = '<';
      else if (rest[0] == '0')
        spec.is_zero = true;
      else if (rest[0] == '#')
        spec.is_alternate = true;
      else
        spec.sign = rest[0] == '+' || spec.sign == '+' ? '+' : ' ';
    }
    const auto number = [&](int64_t &into) {
      if (!absl::ConsumePrefix(&rest, "*"))
        return TakeNumber(rest, into);
      const Value width = take();
      into = width.is(Kind::integer) ? std::clamp<int64_t>(width.integer(), 0, 1 << 30) : 0;
      return true;
    };
    number(spec.width);
    if (absl::ConsumePrefix(&rest, ".")) {
      spec.precision = 0;
      number(spec.precision);
    }
    while (!rest.empty() && absl::StrContains("hlL", rest[0]))
      rest.remove_prefix(1);
    if (rest.empty())
      return Fail("a pattern that ends within `%`");
    spec.type = rest[0];
    rest.remove_prefix(1);
    if (spec.type == '%') {
      out.push_back('%');
      continue;
    }
    const Value item = given ? *given : take();
    if (failed())
      break;
    if (spec.type == 's' || spec.type == 'r' || spec.type == 'a') {
      std::string shown;
      if (spec.type == 's')
        shown = Str(item);
      else
        AppendRepr(item, shown);
      AppendString(*this, std::move(shown), spec, out);
      continue;
    }
    if (spec.type == 'i' || spec.type == 'u')
      spec.type = 'd';
    if (spec.type == 'c' && item.is(Kind::text)) {
      AppendString(*this, item.text(), spec, out);
      continue;
    }
    if (spec.is_zero && spec.align == '>')
      spec.align = 0;
    if (!absl::StrContains("deEfFgGxXoc", spec.type))
      return Fail("a pattern with `%", std::string(1, spec.type), "`");
    const Value whole = spec.type == 'd' && item.is(Kind::real) && std::fabs(item.real()) < 9e18
                            ? Value(static_cast<int64_t>(item.real()))
                            : item;
    if (!item.is_number() || !AppendNumber(*this, whole, spec, out))
      return Fail("`%", std::string(1, spec.type), "` of a `", item.type(), "`");
  }
  // Python takes whatever has items for a mapping, of which not all need be used.
  const bool is_mapping =
      value.is(Kind::dict) || value.is(Kind::undefined) || (value.is(Kind::list) && !is_tuple);
  if (!failed() && named == 0 && !is_mapping && next < (is_tuple ? value.list().items.size() : 1))
    return Fail("the pattern has fewer places than there are values");
  return MakeText(std::move(out));
}

Value Run::FormatBraces(const std::string &pattern, const Args &args) {
  std::string out;
  size_t next = 0;
  bool is_counted = false, is_numbered = false; // `{}` and `{0}`
  Charge(pattern.size(), kRead);
  absl::string_view rest = pattern;
  while (!rest.empty() && !failed()) {
    const size_t text = std::min(rest.find_first_of("{}"), rest.size());
    if (!Step() || !Grow(out.size(), text + 1))
      break;
    absl::StrAppend(&out, rest.substr(0, text));
    rest.remove_prefix(text);
    if (rest.empty())
      break;
    if (absl::StartsWith(rest, "{{") || absl::StartsWith(rest, "}}")) {
      out.push_back(rest[0]);
      rest.remove_prefix(2);
      continue;
    }
    const size_t end = rest.find('}');
    if (rest[0] == '}' || end == absl::string_view::npos ||
        absl::StrContains(rest.substr(1, end), '{'))
      return Fail("a pattern whose braces do not match, or stand within each other");
    absl::string_view field = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    absl::string_view layout;
    if (const size_t colon = field.find(':'); colon != absl::string_view::npos) {
      layout = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    const bool as_repr = absl::ConsumeSuffix(&field, "!r");
    const bool as_text = absl::ConsumeSuffix(&field, "!s");
    // name.attribute[key]
    const size_t name_end = std::min(field.find_first_of(".["), field.size());
    const std::string name(field.substr(0, name_end));
    field.remove_prefix(name_end);
    std::optional<Value> value;
    int64_t index = 0;
    if (name.empty() || IsIndex(name, index)) {
      (name.empty() ? is_counted : is_numbered) = true;
      if (is_counted && is_numbered)
        return Fail("a pattern with `{}` and with numbers such as `{0}`");
      index = name.empty() ? static_cast<int64_t>(next++) : index;
      if (index < static_cast<int64_t>(args.positional.size()))
        value = args.positional[static_cast<size_t>(index)];
    }
    Step(static_cast<int64_t>(args.named.size() / 16));
    for (const auto &[key, given] : args.named)
      if (key == name)
        value = given;
    if (!value)
      return Fail("no value for `{", name, "}`");
    while (!field.empty() && !failed()) {
      const bool is_item = field[0] == '[';
      const size_t stop =
          is_item ? field.find(']') : std::min(field.find_first_of(".[", 1), field.size());
      if (stop == absl::string_view::npos)
        return Fail("a pattern whose brackets do not match");
      const std::string part(field.substr(1, stop - 1));
      value = !is_item               ? Attribute(*value, Value(part))
              : IsIndex(part, index) ? Item(*value, Value(index))
                                     : Item(*value, Value(part));
      field.remove_prefix(std::min(stop + is_item, field.size()));
    }
    std::string shown;
    if (as_repr)
      AppendRepr(*value, shown);
    if (as_text)
      shown = Str(*value);
    if (as_repr || as_text)
      value = Value(std::move(shown));

    Spec spec;
    size_t bytes = 0;
    if (!layout.empty()) {
      CharacterAt(layout, 0, bytes);
      if (layout.size() > bytes && absl::StrContains("<>=^", layout[bytes])) {
        spec.fill = std::string(layout.substr(0, bytes));
        layout.remove_prefix(bytes);
      }
    }
    const auto flag = [&](absl::string_view any) {
      char found = 0;
      if (!layout.empty() && absl::StrContains(any, layout[0])) {
        found = layout[0];
        layout.remove_prefix(1);
      }
      return found;
    };
    spec.align = flag("<>=^");
    if (const char sign = flag("+- "))
      spec.sign = sign;
    spec.is_alternate = flag("#");
    spec.is_zero = flag("0");
    TakeNumber(layout, spec.width);
    spec.grouping = flag(",_");
    if (flag(".")) {
      spec.precision = 0;
      TakeNumber(layout, spec.precision);
    }
    spec.type = flag("sbcdeEfFgGnoxX%");
    if (failed())
      break;
    const bool is_number = value->is_number() && !(value->is(Kind::boolean) && !spec.type);
    if (!layout.empty() ||
        (is_number ? !AppendNumber(*this, *value, spec, out) : spec.type && spec.type != 's'))
      return Fail("a `", value->type(), "` has no such format");
    if (!is_number)
      AppendString(*this, Str(*value), spec, out);
  }
  return MakeText(std::move(out));
}

} // namespace boa::jinja
