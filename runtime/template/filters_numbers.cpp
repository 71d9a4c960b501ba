//===- filters_numbers.cpp - Filters of numbers ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/builtins.h"
#include "runtime/template/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace boa::jinja {
namespace {

/// The value as a float: nothing if it is none.
std::optional<double> RealOf(Run &run, const Value &value) {
  if (value.is_number())
    return value.real();
  if (value.is(Kind::undefined))
    run.Fail(value.why());
  return value.is(Kind::text) && run.Charge(value.text().size(), Run::kChanged)
             ? ParseReal(value.text())
             : std::nullopt;
}

Value ToInteger(Run &run, const Value &value, const Given &given) {
  if (value.is_number() && !value.is(Kind::real))
    return Value(value.integer());
  if (value.is(Kind::text)) {
    const int64_t base = given.Integer(1, 10);
    if (base != 0 && (base < 2 || base > 36))
      return run.Fail("the base of a number is 0, or from 2 to 36");
    if (!run.Charge(value.text().size(), Run::kRead))
      return Value();
    if (const auto integer = ParseInteger(value.text(), static_cast<int>(base)))
      return Value(*integer);
  }
  const std::optional<double> real = RealOf(run, value);
  if (real && std::fabs(*real) < 9e18)
    return Value(static_cast<int64_t>(*real));
  if (real && std::isfinite(*real))
    return run.Fail("a number of more than 64 bits");
  return given.Has(0) ? given.Get(0) : Value(int64_t{0});
}

Value ToReal(Run &run, const Value &value, const Given &given) {
  const std::optional<double> real = RealOf(run, value);
  return real ? Value(*real) : given.Has(0) ? given.Get(0) : Value(0.0);
}

/// A number with so many zeros at its end, half to even.
Value RoundInteger(Run &run, int64_t value, int64_t zeros) {
  constexpr int64_t kHalf = 5'000'000'000'000'000'000; // of ten to the 19th, which has over 64 bits
  constexpr char kTooLarge[] = "a number of more than 64 bits";
  if (zeros > 18)
    return zeros == 19 && (value > kHalf || value < -kHalf) ? run.Fail(kTooLarge)
                                                            : Value(int64_t{0});
  int64_t unit = 1;
  for (int64_t i = 0; i < zeros; ++i)
    unit *= 10;
  const int64_t rest = value % unit, over = std::abs(rest);
  int64_t rounded = value - rest;
  const bool is_away = over > unit / 2 || (over == unit / 2 && rounded / unit % 2 != 0);
  if (is_away && __builtin_add_overflow(rounded, value < 0 ? -unit : unit, &rounded))
    return run.Fail(kTooLarge);
  return Value(rounded);
}

/// To so many digits behind the point, as Python does it.
Value RoundReal(Run &run, double value, int64_t digits) {
  // 17 digits tell a number from all others.
  if (!std::isfinite(value) || value == 0 ||
      static_cast<double>(digits) > 17 - std::log10(std::fabs(value)))
    return Value(value);
  if (digits < -308)
    return Value(0.0 * value);
  double rounded = 0;
  if (digits >= 0) {
    // Digits of the exact value, half to even: at most 340 of them.
    run.Step(32 + digits);
    char text[400];
    std::snprintf(text, sizeof text, "%.*f", static_cast<int>(digits), value);
    rounded = ParseReal(text).value_or(value);
  } else {
    const double scale = std::pow(10.0, static_cast<double>(-digits));
    rounded = std::nearbyint(value / scale) * scale;
  }
  return std::isfinite(rounded) ? Value(rounded) : run.Fail("the rounded number is too large");
}

Value Round(Run &run, const Value &value, const Given &given) {
  const std::string method = given.String(1, "common");
  const int64_t digits = std::clamp<int64_t>(given.Integer(0, 0), -400, 400);
  if (!value.is_number())
    return run.Fail(value.is(Kind::undefined) ? value.why()
                                              : absl::StrCat("`round` of a `", value.type(), "`"));
  if (method == "ceil" || method == "floor") {
    const double scale = std::pow(10.0, static_cast<double>(digits));
    const double scaled = value.real() * scale;
    if (scale == 0 || !std::isfinite(scaled))
      return run.Fail("`", method, "` does not round to ", digits, " digits");
    return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
  }
  if (method != "common")
    return run.Fail("`round` has the methods common, ceil and floor");
  if (value.is(Kind::real))
    return RoundReal(run, value.real(), digits);
  return digits >= 0 ? Value(value.integer()) : RoundInteger(run, value.integer(), -digits);
}

Value Absolute(Run &run, const Value &value, const Given &) {
  if (value.is(Kind::real))
    return Value(std::fabs(value.real()));
  if (value.is_number())
    return value.integer() < 0 ? run.Negative(value) : Value(value.integer());
  return run.Fail(value.is(Kind::undefined) ? value.why()
                                            : absl::StrCat("`abs` of a `", value.type(), "`"));
}

} // namespace

std::vector<Filter> NumberFilters() {
  return {
      {{"abs", "", Absolute}},
      {{"float", "default", ToReal}},
      {{"int", "default base", ToInteger}},
      {{"round", "precision method", Round}},
  };
}

} // namespace boa::jinja
