//===- ExprEvaluator.cpp - Constant expressions and units -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each failure is reported once, at the smallest expression that causes it, and
// yields no value; callers go on with the rest of the program.
//
//===----------------------------------------------------------------------===//
#include "frontend/ExprEvaluator.h"

#include "runtime/abi/settings.h"

#include <cmath>

namespace boa::frontend {

std::string printWithValue(const std::string &text, int64_t value) {
  std::string number = std::to_string(value);
  return text == number ? text : text + " = " + number;
}

void noteOrigin(const Expr &expr, const Constants &constants, Diagnostic &diagnostic) {
  auto found = expr.kind == Expr::Kind::Name ? constants.find(expr.name) : constants.end();
  if (found != constants.end() && found->second.location.file != expr.location.file)
    diagnostic.note(found->second.location, "'" + expr.name + "' is set here");
}

//===----------------------------------------------------------------------===//
// Constant expressions
//===----------------------------------------------------------------------===//

static bool isLiteral(const Expr &expr) {
  return expr.kind == Expr::Kind::Integer || expr.kind == Expr::Kind::Real;
}

bool isNumeric(const Expr &expr, const Constants &constants) {
  switch (expr.kind) {
  case Expr::Kind::Integer:
  case Expr::Kind::Real:
    return true;
  case Expr::Kind::Name:
    return constants.find(expr.name) != constants.end();
  case Expr::Kind::Negate:
    return isNumeric(*expr.operands[0], constants);
  case Expr::Kind::Binary:
    return isNumeric(*expr.operands[0], constants) && isNumeric(*expr.operands[1], constants);
  case Expr::Kind::Call:
    return expr.name == "sqrt";
  default:
    return false;
  }
}

static std::optional<Number> binaryIntegers(const Expr &expr, int64_t a, int64_t b,
                                            Diagnostics &diagnostics) {
  int64_t result = 0;
  bool overflow = false;
  switch (expr.op) {
  case '+':
    overflow = __builtin_add_overflow(a, b, &result);
    break;
  case '-':
    overflow = __builtin_sub_overflow(a, b, &result);
    break;
  case '*':
    overflow = __builtin_mul_overflow(a, b, &result);
    break;
  default:
    if (b == 0) {
      diagnostics.error(expr.operands[1]->location, "division by zero");
      return std::nullopt;
    }
    // The one quotient that does not fit.
    if (b == -1) {
      overflow = expr.op == '/' && __builtin_sub_overflow(int64_t(0), a, &result);
      break;
    }
    result = expr.op == '/' ? a / b : a % b;
    if (expr.op == '/' && a % b != 0) {
      diagnostics.error(expr.location,
                        "expected " + printWithValue(printExpr(*expr.operands[1]), b) +
                            " to divide " + printWithValue(printExpr(*expr.operands[0]), a));
      return std::nullopt;
    }
  }
  if (overflow) {
    diagnostics.error(expr.location, "the value of " + printExpr(expr) + " does not fit 64 bits");
    return std::nullopt;
  }
  return Number::ofInteger(result);
}

static std::optional<Number> finite(const Expr &expr, double value, Diagnostics &diagnostics) {
  if (std::isfinite(value))
    return Number::ofReal(value);
  diagnostics.error(expr.location, "the value of " + printExpr(expr) + " is not finite");
  return std::nullopt;
}

static std::vector<std::string> namesOf(const Constants &constants) {
  std::vector<std::string> names;
  for (const auto &entry : constants)
    names.push_back(entry.first);
  return names;
}

std::optional<Number> evaluate(const Expr &expr, const Constants &constants,
                               Diagnostics &diagnostics) {
  switch (expr.kind) {
  case Expr::Kind::Integer:
  case Expr::Kind::Real:
    if (!expr.unit.empty()) {
      diagnostics.error(expr.unitLocation,
                        "expected a number without a unit but found '" + expr.unit + "'");
      return std::nullopt;
    }
    return expr.kind == Expr::Kind::Integer ? Number::ofInteger(expr.integer)
                                            : Number::ofReal(expr.real);
  case Expr::Kind::Name: {
    auto found = constants.find(expr.name);
    if (found != constants.end())
      return found->second.value;
    diagnostics.error(expr.location, "no constant is named '" + expr.name + "'" +
                                         didYouMean(expr.name, namesOf(constants)));
    return std::nullopt;
  }
  case Expr::Kind::Negate: {
    auto value = evaluate(*expr.operands[0], constants, diagnostics);
    if (!value)
      return std::nullopt;
    // A literal is at most 2^63 - 1, so that only computed values could be -2^63.
    if (value->isInteger && value->integer != INT64_MIN)
      return Number::ofInteger(-value->integer);
    return Number::ofReal(-value->real);
  }
  case Expr::Kind::Binary: {
    auto left = evaluate(*expr.operands[0], constants, diagnostics);
    auto right = evaluate(*expr.operands[1], constants, diagnostics);
    if (!left || !right)
      return std::nullopt;
    if (left->isInteger && right->isInteger)
      return binaryIntegers(expr, left->integer, right->integer, diagnostics);
    double a = left->real, b = right->real;
    if ((expr.op == '/' || expr.op == '%') && b == 0) {
      diagnostics.error(expr.operands[1]->location, "division by zero");
      return std::nullopt;
    }
    return finite(expr,
                  expr.op == '+'   ? a + b
                  : expr.op == '-' ? a - b
                  : expr.op == '*' ? a * b
                  : expr.op == '/' ? a / b
                                   : std::fmod(a, b),
                  diagnostics);
  }
  case Expr::Kind::Call: {
    if (expr.name != "sqrt" || expr.arguments.size() != 1 || expr.arguments[0].keyword) {
      diagnostics.error(expr.location, "expected a number but found '" + expr.name +
                                           "(...)'; of functions only sqrt(x) gives one");
      return std::nullopt;
    }
    auto value = evaluate(*expr.arguments[0].value, constants, diagnostics);
    if (!value)
      return std::nullopt;
    return finite(expr, std::sqrt(value->real), diagnostics);
  }
  case Expr::Kind::String:
  case Expr::Kind::Object:
  case Expr::Kind::Member:
  case Expr::Kind::Tuple:
  case Expr::Kind::Shares:
    break;
  }
  diagnostics.error(expr.location, "expected a number but found " + printExpr(expr));
  return std::nullopt;
}

std::optional<int64_t> evaluateInteger(const Expr &expr, const Constants &constants, int64_t least,
                                       int64_t most, const std::string &what,
                                       Diagnostics &diagnostics, const std::string &below) {
  auto value = evaluate(expr, constants, diagnostics);
  if (!value)
    return std::nullopt;
  if (!value->isInteger) {
    noteOrigin(expr, constants,
               diagnostics.error(expr.location, "expected " + what +
                                                    " to be a whole number but found " +
                                                    printExpr(expr)));
    return std::nullopt;
  }
  if (value->integer < least || value->integer > most) {
    noteOrigin(expr, constants,
               diagnostics.error(expr.location, "expected " + what + " between " +
                                                    std::to_string(least) + " and " +
                                                    std::to_string(most) + " but found " +
                                                    std::to_string(value->integer) +
                                                    (value->integer < least ? below : "")));
    return std::nullopt;
  }
  return value->integer;
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

std::optional<int64_t> evaluateCount(const Expr &expr, const char *unit, const Constants &constants,
                                     int64_t least, int64_t most, const std::string &what,
                                     Diagnostics &diagnostics, const std::string &below) {
  // Of -16 sequences the sign is wrong, not the unit.
  bool negative = expr.kind == Expr::Kind::Negate;
  const Expr &number = negative ? *expr.operands[0] : expr;
  if (!isLiteral(number) || number.unit.empty())
    return evaluateInteger(expr, constants, least, most, what, diagnostics, below);
  if (unit && number.unit == unit) {
    Expr bare;
    bare.kind = number.kind;
    bare.location = expr.location;
    bare.integer = negative ? -number.integer : number.integer;
    bare.real = negative ? -number.real : number.real;
    return evaluateInteger(bare, constants, least, most, what, diagnostics, below);
  }
  diagnostics.error(number.unitLocation,
                    "expected " + what + " " +
                        (unit ? "in " + std::string(unit) : std::string("without a unit")) +
                        " but found '" + number.unit + "'");
  return std::nullopt;
}

namespace {

struct Unit {
  std::string name;
  int64_t size;
};

/// The units of a quantity, the least first, and an example of it.
struct Units {
  std::vector<Unit> units;
  const char *example;
};

Units makeUnits(Quantity quantity) {
  const std::vector<Unit> bytes = {{"B", 1},
                                   {"KiB", int64_t(1) << 10},
                                   {"MiB", int64_t(1) << 20},
                                   {"GiB", int64_t(1) << 30},
                                   {"TiB", int64_t(1) << 40},
                                   {"kB", 1000},
                                   {"MB", 1000000},
                                   {"GB", 1000000000},
                                   {"TB", 1000000000000},
                                   {"PB", 1000000000000000}};
  Units result{bytes, "a size such as 256 MiB"};
  switch (quantity) {
  case Quantity::Bytes:
    break;
  case Quantity::Speed:
    result.example = "a speed such as 200 MB/s";
    for (Unit &unit : result.units)
      unit.name += "/s";
    break;
  case Quantity::Compute:
    return {{{"FLOP/s", 1},
             {"MFLOP/s", 1000000},
             {"GFLOP/s", 1000000000},
             {"TFLOP/s", 1000000000000},
             {"PFLOP/s", 1000000000000000}},
            "a speed such as 300 TFLOP/s"};
  case Quantity::Latency:
    return {{{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}}, "a time such as 80 us"};
  case Quantity::Power:
    return {{{"W", 1}, {"kW", 1000}, {"MW", 1000000}}, "a power such as 400 W"};
  }
  return result;
}

} // namespace

std::optional<int64_t> evaluateQuantity(const Expr &expr, Quantity quantity,
                                        const std::string &what, Diagnostics &diagnostics,
                                        const std::string &below, const std::string &word) {
  const Units units = makeUnits(quantity);
  auto tooSmall = [&] {
    diagnostics.error(expr.location, "expected " + what + " of at least 1 " + units.units[0].name +
                                         " but found " + printExpr(expr) + below);
    return std::nullopt;
  };
  if (expr.kind == Expr::Kind::Negate && isLiteral(*expr.operands[0]))
    return tooSmall();
  if (!isLiteral(expr)) {
    diagnostics.error(expr.location, "expected " + what + " to be " + units.example +
                                         (word.empty() ? "" : ", or " + word + ",") +
                                         " but found " + printExpr(expr));
    return std::nullopt;
  }
  if (expr.real == 0)
    return tooSmall();
  if (expr.unit.empty()) {
    diagnostics.error(expr.location, "expected " + what + " with a unit, " + units.example +
                                         ", but found " + printExpr(expr));
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (const Unit &unit : units.units) {
    names.push_back(unit.name);
    if (expr.unit != unit.name)
      continue;
    double value = expr.real * double(unit.size);
    // 2^62: far from where a double cannot tell whole ones from a carry.
    if (!(value < 4.6e18)) {
      diagnostics.error(expr.location, what + " does not fit 64 bits");
      return std::nullopt;
    }
    // Also 0.3 B: no bytes.
    if (value < 1)
      return tooSmall();
    return expr.kind == Expr::Kind::Integer ? expr.integer * unit.size : int64_t(value);
  }
  diagnostics.error(expr.unitLocation, "expected " + what + " to be " + units.example +
                                           " but found the unit '" + expr.unit + "'" +
                                           didYouMean(expr.unit, names));
  return std::nullopt;
}

namespace {

/// What a number with a unit counts where one without counts steps.
struct Countable {
  const char *expected; // "steps, such as 200, or a time, such as 5 min"
  struct Unit {
    const char *name;
    double size; // in the first unit
  };
  std::vector<Unit> units;
  double most; // of the first unit
};

/// One of the two is above 0.
struct StepsOrAmount {
  int64_t steps = 0;
  double amount = 0; // in the first unit
};

} // namespace

static std::optional<StepsOrAmount> evaluateStepsOr(const Countable &other, const Expr &expr,
                                                    const Constants &constants,
                                                    const std::string &what,
                                                    Diagnostics &diagnostics) {
  const bool negative = expr.kind == Expr::Kind::Negate;
  const Expr &number = negative ? *expr.operands[0] : expr;
  if (!isLiteral(number) || number.unit.empty() || number.unit == "steps") {
    auto steps = evaluateCount(expr, "steps", constants, 1, int64_t(kMostSteps), what, diagnostics);
    return steps ? std::optional(StepsOrAmount{*steps, 0}) : std::nullopt;
  }
  std::vector<std::string> names{"steps"};
  for (const Countable::Unit &unit : other.units) {
    names.push_back(unit.name);
    if (number.unit != unit.name)
      continue;
    const double amount = (negative ? -number.real : number.real) * unit.size;
    if (amount > 0 && amount <= other.most)
      return StepsOrAmount{0, amount};
    const std::string least = other.units[0].name;
    diagnostics.error(expr.location, "expected " + what + " above 0 " + least + " and at most " +
                                         std::to_string(int64_t(other.most)) + " " + least +
                                         " but found " + printExpr(expr));
    return std::nullopt;
  }
  diagnostics.error(number.unitLocation, "expected " + what + " to be " + other.expected +
                                             ", but found the unit '" + number.unit + "'" +
                                             didYouMean(number.unit, names));
  return std::nullopt;
}

std::optional<Interval> evaluateInterval(const Expr &expr, const Constants &constants,
                                         const std::string &what, Diagnostics &diagnostics) {
  // At most 30 years: no run is longer, and a nanosecond clock can add it to any time.
  static const Countable times = {
      "steps, such as 200, or a time, such as 5 min", {{"s", 1}, {"min", 60}, {"h", 3600}}, 1e9};
  auto found = evaluateStepsOr(times, expr, constants, what, diagnostics);
  return found ? std::optional(Interval{found->steps, found->amount}) : std::nullopt;
}

std::optional<Duration> evaluateDuration(const Expr &expr, const Constants &constants,
                                         const std::string &what, Diagnostics &diagnostics) {
  static const Countable epochs = {"a number, such as 400, or epochs, such as 3 epochs",
                                   {{"epochs", 1}, {"epoch", 1}},
                                   kMostEpochs};
  auto found = evaluateStepsOr(epochs, expr, constants, what, diagnostics);
  return found ? std::optional(Duration{found->steps, found->amount}) : std::nullopt;
}

} // namespace boa::frontend
