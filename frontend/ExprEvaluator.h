//===- ExprEvaluator.h - Constant expressions and units ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates expressions over numbers and the constants of a model. Integers are
// 64 bits and every operation on them is checked; `/` of integers must divide.
// A real that is not finite is an error. Units: sequences, steps and tokens
// count ones; KiB, MiB, GiB, TiB are powers of 1024 bytes, kB, MB, GB, TB powers
// of 1000; with /s they are bytes per second; s, min and h are times.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_EXPREVALUATOR_H
#define BOA_FRONTEND_EXPREVALUATOR_H

#include "frontend/AST.h"

#include <map>

namespace boa::frontend {

/// A number: `real` is filled for integers too.
struct Number {
  bool isInteger = true;
  int64_t integer = 0;
  double real = 0;
  static Number ofInteger(int64_t value) { return {true, value, double(value)}; }
  static Number ofReal(double value) { return {false, 0, value}; }
};

/// Constants by name, with the place that gave the value.
struct ConstantValue {
  Number value;
  Location location;
};
using Constants = std::map<std::string, ConstantValue, std::less<>>;

/// The expression as one writes it, with the fewest parentheses: `3 * width`.
std::string printExpr(const Expr &expr);

/// `width = 32`, or `32` where the expression is the number itself.
std::string printWithValue(const std::string &text, int64_t value);

/// Adds to an error about `expr` where the constant that it names was set, when
/// that is another text: an option, say.
void noteOrigin(const Expr &expr, const Constants &constants, Diagnostic &diagnostic);

/// Whether an expression is built of numbers and constants alone, so that it
/// can be evaluated as a number.
bool isNumeric(const Expr &expr, const Constants &constants);

/// The value of an expression, or none after an error. Numbers with units are
/// refused: they mean something only in settings.
std::optional<Number> evaluate(const Expr &expr, const Constants &constants,
                               Diagnostics &diagnostics);

/// A whole number in [least, most]. `what` names it in messages; the message for a number
/// that is too small ends with `below`.
std::optional<int64_t> evaluateInteger(const Expr &expr, const Constants &constants, int64_t least,
                                       int64_t most, const std::string &what,
                                       Diagnostics &diagnostics, const std::string &below = "");

/// A setting of a whole number in [least, most], optionally with `unit`.
std::optional<int64_t> evaluateCount(const Expr &expr, const char *unit, const Constants &constants,
                                     int64_t least, int64_t most, const std::string &what,
                                     Diagnostics &diagnostics, const std::string &below = "");

/// Quantities with units of their own: a size (`256 MiB`), a speed (`200 MB/s`),
/// operations in a second (`300 TFLOP/s`), a short time (`80 us`, in nanoseconds), a power
/// (`400 W`).
enum class Quantity { Bytes, Speed, Compute, Latency, Power };

/// A setting of at least 1. The message for less ends with `below`. The one for something else
/// says that `word` is possible, too, if there is one.
std::optional<int64_t> evaluateQuantity(const Expr &expr, Quantity quantity,
                                        const std::string &what, Diagnostics &diagnostics,
                                        const std::string &below = "",
                                        const std::string &word = "");

/// An interval of `200 steps` or of time, `5 min`: one of the two is above 0.
struct Interval {
  int64_t steps = 0;
  double seconds = 0;
};
std::optional<Interval> evaluateInterval(const Expr &expr, const Constants &constants,
                                         const std::string &what, Diagnostics &diagnostics);

/// The length of a training, `400 steps` or `3 epochs`: one of the two is above 0.
struct Duration {
  int64_t steps = 0;
  double epochs = 0;
};
std::optional<Duration> evaluateDuration(const Expr &expr, const Constants &constants,
                                         const std::string &what, Diagnostics &diagnostics);

} // namespace boa::frontend

#endif // BOA_FRONTEND_EXPREVALUATOR_H
