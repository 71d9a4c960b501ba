//===- operators.cpp - Arithmetic of values -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/run.h"
#include "runtime/template/text.h"

#include <algorithm>
#include <cmath>

namespace boa::jinja {
namespace {

constexpr char kTooLarge[] = "a number of more than 64 bits";

bool IsSequence(const Value &value) {
  return value.is(Kind::list) && value.list().shape <= List::Shape::tuple;
}

Value Join(Run &run, const Value &left, const Value &right) {
  if (left.is(Kind::text)) {
    if (!run.Grow(left.text().size(), right.text().size()))
      return Value();
    if (left.is_safe() == right.is_safe())
      return run.MakeText(left.text() + right.text(), left.is_safe());
    if (!run.Grow(0, (left.text().size() + right.text().size()) * 5))
      return Value();
    return run.MakeText(left.is_safe() ? left.text() + EscapeHtml(right.text())
                                       : EscapeHtml(left.text()) + right.text(),
                        /*is_safe=*/true);
  }
  std::vector<Value> items = left.list().items;
  items.insert(items.end(), right.list().items.begin(), right.list().items.end());
  return run.MakeList(std::move(items), left.list().shape);
}

Value Repeat(Run &run, const Value &value, int64_t times) {
  times = std::max<int64_t>(times, 0);
  const int64_t size =
      static_cast<int64_t>(value.is(Kind::text) ? value.text().size() : value.list().items.size());
  int64_t total = 0;
  if (__builtin_mul_overflow(size, times, &total))
    total = INT64_MAX / 2;
  if (value.is(Kind::text)) {
    if (!run.Grow(0, static_cast<size_t>(total)))
      return Value();
    return run.MakeText(Repeated(value.text(), times), value.is_safe());
  }
  std::vector<Value> items;
  if (run.Room(total))
    for (int64_t i = 0; i < times && size > 0; ++i)
      items.insert(items.end(), value.list().items.begin(), value.list().items.end());
  return run.MakeList(std::move(items), value.list().shape);
}

/// Integers, rounded as Python does: towards minus infinity.
Value Integers(Run &run, absl::string_view op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  if (op == "+") {
    overflows = __builtin_add_overflow(a, b, &result);
  } else if (op == "-") {
    overflows = __builtin_sub_overflow(a, b, &result);
  } else if (op == "*") {
    overflows = __builtin_mul_overflow(a, b, &result);
  } else if (op == "**") {
    result = 1;
    // 64 doublings overflow, but for these three numbers.
    for (int64_t i = 0; i < (a == 0 || a == 1 || a == -1 ? b % 2 + 2 * (b > 1) : b) && !overflows;
         ++i)
      overflows = __builtin_mul_overflow(result, a, &result);
  } else { // "//" and "%"
    overflows = a == INT64_MIN && b == -1;
    if (!overflows) {
      const int64_t rest = a % b;
      const bool is_below = rest != 0 && (rest < 0) != (b < 0);
      result = op == "%" ? rest + (is_below ? b : 0) : a / b - is_below;
    } else if (op == "%") {
      return Value(int64_t{0});
    }
  }
  return overflows ? run.Fail(kTooLarge) : Value(result);
}

Value Reals(absl::string_view op, double a, double b) {
  if (op == "+")
    return Value(a + b);
  if (op == "-")
    return Value(a - b);
  if (op == "*")
    return Value(a * b);
  if (op == "/")
    return Value(a / b);
  if (op == "**")
    return Value(std::pow(a, b));
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0))
    rest += b;
  return Value(op == "%" ? rest : std::floor((a - rest) / b + 0.5));
}

} // namespace

Value Run::Binary(absl::string_view op, const Value &left, const Value &right) {
  for (const Value *side : {&left, &right})
    if (side->is(Kind::undefined) && !(op == "%" && left.is(Kind::text)))
      return Fail(side->why());
  if (op == "%" && left.is(Kind::text))
    return FormatPercent(left.text(), right);
  if (left.is_number() && right.is_number()) {
    const bool divides = op == "/" || op == "//" || op == "%";
    if ((divides && right.real() == 0) || (op == "**" && left.real() == 0 && right.real() < 0))
      return Fail("a division by zero");
    if (!left.is(Kind::real) && !right.is(Kind::real) && op != "/" &&
        !(op == "**" && right.integer() < 0))
      return Integers(*this, op, left.integer(), right.integer());
    // A remainder takes up to two thousand subtractions.
    return divides && op != "/" && !Step(64) ? Value() : Reals(op, left.real(), right.real());
  }
  if (op == "+" &&
      ((left.is(Kind::text) && right.is(Kind::text)) ||
       (IsSequence(left) && IsSequence(right) && left.list().shape == right.list().shape)))
    return Join(*this, left, right);
  if (op == "*")
    for (const auto &[value, times] : {std::pair(&left, &right), std::pair(&right, &left)})
      if ((value->is(Kind::text) || IsSequence(*value)) && times->is_number() &&
          !times->is(Kind::real))
        return Repeat(*this, *value, times->integer());
  const bool is_mixed_text = op == "+" && left.is(Kind::text) != right.is(Kind::text);
  return Fail("`", op, "` of a `", left.type(), "` and a `", right.type(), "`",
              is_mixed_text ? "; `~` joins any values as texts" : "");
}

Value Run::Negative(const Value &value) {
  if (value.is(Kind::real))
    return Value(-value.real());
  if (value.is_number())
    return value.integer() == INT64_MIN ? Fail(kTooLarge) : Value(-value.integer());
  return Fail(value.is(Kind::undefined) ? value.why()
                                        : absl::StrCat("`-` of a `", value.type(), "`"));
}

} // namespace boa::jinja
