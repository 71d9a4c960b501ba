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
  return value.is(Kind::text) ? ParseReal(value.text()) : std::nullopt;
}

Value ToInteger(Run &run, const Value &value, const Given &given) {
  if (value.is_number() && !value.is(Kind::real))
    return Value(value.integer());
  if (value.is(Kind::text)) {
    const int64_t base = given.Integer(1, 10);
    if (base != 0 && (base < 2 || base > 36))
      return run.Fail("the base of a number is 0, or from 2 to 36");
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

Value Round(Run &run, const Value &value, const Given &given) {
  const std::string method = given.String(1, "common");
  const int64_t digits = std::clamp<int64_t>(given.Integer(0, 0), -400, 400);
  if (!value.is_number())
    return run.Fail(value.is(Kind::undefined) ? value.why()
                                              : absl::StrCat("`round` of a `", value.type(), "`"));
  if (method == "ceil" || method == "floor") {
    const double scale = std::pow(10.0, static_cast<double>(digits));
    const double scaled = value.real() * scale;
    return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
  }
  if (method != "common")
    return run.Fail("`round` has the methods common, ceil and floor");
  if (!value.is(Kind::real) && digits >= 0)
    return Value(value.integer());
  double rounded = value.real();
  if (digits >= 0) {
    // Digits of the exact value, half to even: what Python does.
    char text[800];
    std::snprintf(text, sizeof text, "%.*f", static_cast<int>(digits), rounded);
    rounded = ParseReal(text).value_or(rounded);
  } else {
    const double scale = std::pow(10.0, static_cast<double>(-digits));
    rounded = std::nearbyint(rounded / scale) * scale;
  }
  return value.is(Kind::real) ? Value(rounded) : Value(static_cast<int64_t>(rounded));
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
