//===- Builtins.h - The functions of the language ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_BUILTINS_H
#define BOA_FRONTEND_BUILTINS_H

#include "frontend/Checker.h"

#include <functional>

namespace boa::frontend {

/// The value of an expression in a body.
struct Operand {
  enum class Kind { Error, Number, Activation, Param, Parts };
  Kind kind = Kind::Error;
  /// Activation and Param.
  uint32_t value = 0;
  /// Param: inside transpose(...).
  bool transposed = false;
  double number = 0;
  /// Parts: the values of a split.
  std::vector<uint32_t> parts;

  Operand(Kind kind = Kind::Error, uint32_t value = 0) : kind(kind), value(value) {}
};

struct BuiltinContext {
  const Constants &constants;
  StageSpec &stage;
  const Sources &sources;
  Diagnostics &diagnostics;
  /// Checks an argument that is a tensor.
  std::function<Operand(const Expr &)> evaluateOperand;
};

/// Whether an argument says if something is so, as `causal` of an attention: the word alone,
/// or `causal = true`, or `causal = false`.
bool isFlag(const Argument &argument, const std::string &word);

/// Checks a call of a builtin and appends its operation. A new builtin is an
/// entry of the table in Builtins.cpp and a function that states its shapes.
Operand checkBuiltin(const Expr &call, const BuiltinContext &context);

} // namespace boa::frontend

#endif // BOA_FRONTEND_BUILTINS_H
