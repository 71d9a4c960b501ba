//===- BuiltinChecker.h - Calls of builtins, checked ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_BUILTINCHECKER_H
#define BOA_FRONTEND_BUILTINCHECKER_H

#include "frontend/Builtins.h"

#include "runtime/abi/float32.h"

#include <string>
#include <utility>
#include <vector>

namespace boa::frontend {

class BuiltinChecker;

/// A row of the table of builtins (Builtins.cpp).
struct Builtin {
  const char *name;
  const char *signature;
  /// Shapes of the arguments and of the result.
  const char *shapes;
  const char *help;
  size_t least, most;
  /// Keyword arguments, and words that may stand alone (isFlag).
  std::vector<std::string> options, flags;
  Operand (BuiltinChecker::*check)();
};

/// One function for each builtin: its arguments, their shapes, and the operation that it
/// becomes. The rules are those of the ops' verifiers in dialect/, in the terms of
/// the source.
class BuiltinChecker {
public:
  BuiltinChecker(const Expr &call, const Builtin &builtin, const BuiltinContext &context)
      : call(call), builtin(builtin), context(context), stage(context.stage) {}

  Operand linear();
  Operand transpose();
  Operand embedding();
  Operand norm();
  Operand activation();
  /// Rotary embedding, and the scaling of its angles.
  Operand rotary();
  Operand attention();
  Operand crossEntropy();
  Operand split();
  /// Sorts the arguments; false, with an error, where they are not those of the
  /// signature.
  bool match();

private:
  Operand error(Location location, std::string message) {
    context.diagnostics.error(location, std::move(message));
    return Operand();
  }

  //===--------------------------------------------------------------------===//
  // Arguments: none after an error
  //===--------------------------------------------------------------------===//

  std::string found(const Operand &operand) const {
    switch (operand.kind) {
    case Operand::Kind::Number:
      return "a number";
    case Operand::Kind::Parts:
      return "the parts of a split";
    case Operand::Kind::Param:
      return "a parameter " + shape(operand).print();
    default:
      return shape(operand).print();
    }
  }
  const Shape &shape(const Operand &operand) const { return stage.values[operand.value]; }
  const Dim &last(const Operand &operand) const { return shape(operand).dims.back(); }

  /// Argument `i`, which must be an activation (or the tokens).
  std::optional<Operand> activationAt(size_t i, const std::string &what,
                                      Shape::Kind kind = Shape::Kind::Tensor) {
    const Expr &expr = *positional[i];
    Operand operand = context.evaluateOperand(expr);
    if (operand.kind == Operand::Kind::Error)
      return std::nullopt;
    if (operand.kind == Operand::Kind::Activation && shape(operand).kind == kind)
      return operand;
    error(expr.location, "expected " + what + " of " + call.name + " to be " +
                             (kind == Shape::Kind::Tokens ? "tokens" : "an activation") +
                             " but found " + found(operand));
    return std::nullopt;
  }

  /// Argument `i`, which must be a parameter of `rank` dimensions.
  std::optional<Operand> paramAt(size_t i, const std::string &what, size_t rank,
                                 bool mayTranspose = false) {
    const Expr &expr = *positional[i];
    Operand operand = context.evaluateOperand(expr);
    if (operand.kind == Operand::Kind::Error)
      return std::nullopt;
    if (operand.kind != Operand::Kind::Param) {
      error(expr.location, "expected " + what + " of " + call.name +
                               " to be a parameter but found " + found(operand));
      return std::nullopt;
    }
    if (operand.transposed && !mayTranspose) {
      error(expr.location, "transpose(...) can stand only as the weight of "
                           "linear(x, transpose(w))");
      return std::nullopt;
    }
    if (shape(operand).dims.size() != rank) {
      error(expr.location, "expected " + what + " of " + call.name + " to have " +
                               std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions") +
                               " but found " + shape(operand).print());
      return std::nullopt;
    }
    return operand;
  }

  /// A parameter of one dimension, as long as `dim`.
  std::optional<Operand> vectorAt(size_t i, const std::string &what, Dim dim) {
    auto operand = paramAt(i, what, 1);
    if (!operand || last(*operand).value == dim.value)
      return operand;
    Shape wanted;
    wanted.dims = {dim};
    error(positional[i]->location, "expected " + what + " of " + call.name + " to be " +
                                       wanted.print() + " but found " + shape(*operand).print());
    return std::nullopt;
  }

  const Expr *option(const char *name) const {
    for (const auto &[keyword, value] : options)
      if (keyword == name)
        return value;
    return nullptr;
  }
  /// A flag: false where it is not given.
  bool isSet(const std::string &word) const {
    for (const auto &[name, value] : flags)
      if (name == word)
        return value;
    return false;
  }
  bool isGiven(const std::string &word) const {
    for (const auto &[name, value] : flags)
      if (name == word)
        return true;
    return false;
  }
  /// `scaling = llama3(factor = 8, context = 8192)`: false, with an error, where it is wrong.
  bool readScaling(const Expr &expr, RotaryScaling &scaling);
  std::optional<int64_t> integer(const Expr &expr, const std::string &what) {
    return evaluateInteger(expr, context.constants, 1, INT32_MAX, what, context.diagnostics);
  }
  std::optional<double> positive(const Expr *expr, double fallback, const std::string &what,
                                 double most) {
    if (!expr)
      return fallback;
    auto value = evaluate(*expr, context.constants, context.diagnostics);
    if (!value)
      return std::nullopt;
    if (value->real > 0 && value->real <= most) {
      if (IsFloat32(value->real))
        return value->real;
      error(expr->location, "expected " + what +
                                " to fit f32, in which kernels compute: at least " +
                                std::string(kLeastFloat32) + " but found " + printExpr(*expr));
      return std::nullopt;
    }
    error(expr->location, "expected " + what + " to be positive and at most " +
                              std::to_string(int64_t(most)) + " but found " + printExpr(*expr));
    return std::nullopt;
  }
  bool divides(int64_t heads, const std::string &what, const Dim &dim, const Expr &expr) {
    if (dim.value % heads == 0)
      return true;
    noteOrigin(expr, context.constants,
               context.diagnostics.error(expr.location, "expected " + what + " = " +
                                                            std::to_string(heads) + " to divide " +
                                                            printWithValue(dim.text, dim.value)));
    return false;
  }
  /// Refuses an activation that is not [time, width].
  bool isSequence(const Operand &operand, size_t i) {
    if (shape(operand).dims.size() == 2)
      return true;
    error(positional[i]->location,
          "expected an activation [time, width] but found " + shape(operand).print());
    return false;
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  Operation operation(OperationKind kind, std::vector<uint32_t> operands) {
    Operation result;
    result.kind = kind;
    result.operands = std::move(operands);
    result.name = call.name;
    result.position = context.sources.position(call.location);
    return result;
  }
  uint32_t addResult(Operation &operation, Shape shape) {
    stage.values.push_back(std::move(shape));
    stage.valuePositions.push_back(operation.position);
    operation.results.push_back(uint32_t(stage.values.size() - 1));
    return operation.results.back();
  }
  Operand finish(Operation operation, Shape shape) {
    uint32_t value = addResult(operation, std::move(shape));
    stage.operations.push_back(std::move(operation));
    return {Operand::Kind::Activation, value};
  }

  const Expr &call;
  const Builtin &builtin;
  const BuiltinContext &context;
  StageSpec &stage;
  std::vector<const Expr *> positional;
  std::vector<std::pair<std::string, const Expr *>> options;
  std::vector<std::pair<std::string, bool>> flags;
};

} // namespace boa::frontend

#endif // BOA_FRONTEND_BUILTINCHECKER_H
