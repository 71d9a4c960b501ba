//===- Printer.cpp - The tree as text -------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What --emit=ast prints, and how messages show an expression. Parentheses are
// put back where precedence asks for them; numbers are printed with the fewest
// digits that read back the same.
//
//===----------------------------------------------------------------------===//
#include "frontend/Printer.h"

#include "frontend/ExprEvaluator.h"

#include <charconv>

namespace boa::frontend {

static std::string printReal(double value) {
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, end.ptr);
  // 1e-05 and 0.5 read back as reals; 3 would not.
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string printNumber(double value) {
  if (value == double(int64_t(value)))
    return std::to_string(int64_t(value));
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end.ptr);
}

/// How tightly an expression binds: 0 sum, 1 product, 2 sign, 3 the rest.
static int precedence(const Expr &expr) {
  if (expr.kind == Expr::Kind::Binary)
    return expr.op == '+' || expr.op == '-' ? 0 : 1;
  return expr.kind == Expr::Kind::Negate ? 2 : 3;
}

static std::string printAt(const Expr &expr, int least) {
  std::string text = printExpr(expr);
  return precedence(expr) < least ? "(" + text + ")" : text;
}

static std::string printArguments(const std::vector<Argument> &arguments) {
  std::string text = "(";
  for (const Argument &argument : arguments) {
    if (text.size() > 1)
      text += ", ";
    if (argument.keyword)
      text += argument.keyword->text + " = ";
    text += printExpr(*argument.value);
  }
  return text + ")";
}

std::string printExpr(const Expr &expr) {
  std::string unit = expr.unit.empty() ? "" : " " + expr.unit;
  switch (expr.kind) {
  case Expr::Kind::Integer:
    return std::to_string(expr.integer) + unit;
  case Expr::Kind::Real:
    return printReal(expr.real) + unit;
  case Expr::Kind::String:
    return "\"" + expr.name + "\"";
  case Expr::Kind::Object:
  case Expr::Kind::Name:
    return expr.name;
  case Expr::Kind::Member:
    return expr.name + "." + expr.member;
  case Expr::Kind::Negate:
    return "-" + printAt(*expr.operands[0], 2);
  case Expr::Kind::Binary: {
    int level = precedence(expr);
    return printAt(*expr.operands[0], level) + " " + expr.op + " " +
           printAt(*expr.operands[1], level + 1);
  }
  case Expr::Kind::Call:
    return expr.name + printArguments(expr.arguments);
  case Expr::Kind::Tuple:
    return printArguments(expr.arguments);
  case Expr::Kind::Shares: {
    std::string text;
    for (const Argument &part : expr.arguments) {
      text += (text.empty() ? "" : ", ") + part.value->name;
      for (const ExprPtr &share : part.value->operands)
        text += " " + (share->unit.empty() ? printNumber(share->real) + "%" : printExpr(*share));
    }
    return text;
  }
  }
  return "";
}

static std::string printDims(const std::vector<ExprPtr> &dims) {
  std::string text = "[";
  for (const ExprPtr &dim : dims)
    text += (text.size() > 1 ? ", " : "") + printExpr(*dim);
  return text + "]";
}

static std::string printType(const TypeSyntax &type) {
  if (type.kind == TypeSyntax::Kind::Loss)
    return "loss";
  return printDims(type.dims) + (type.kind == TypeSyntax::Kind::Tokens ? " token" : "");
}

static std::string printStatement(const Statement &statement) {
  switch (statement.kind) {
  case Statement::Kind::Param:
    return "param " + statement.names[0].text + ": " + printDims(statement.dims) + " = " +
           printExpr(*statement.value) +
           (statement.external ? " as \"" + statement.external->text + "\"" : "");
  case Statement::Kind::Let: {
    std::string names;
    for (const Name &name : statement.names)
      names += (names.empty() ? "" : ", ") + name.text;
    return "let " + names + " = " + printExpr(*statement.value);
  }
  case Statement::Kind::Return:
    return "return " + printExpr(*statement.value);
  }
  return "";
}

static std::string printStage(const StageSyntax &stage) {
  std::string text = stage.isLayer ? "layer " : "stage ";
  text += stage.name.text + "(";
  bool first = true;
  for (const ArgumentSyntax &argument : stage.arguments) {
    text += (first ? "" : ", ") + argument.name.text + ": " + printType(argument.type);
    if (argument.from)
      text += " = " + argument.from->text;
    if (argument.result != 0)
      text += "[" + std::to_string(argument.result) + "]";
    first = false;
  }
  std::string results;
  for (const TypeSyntax &type : stage.results)
    results += (results.empty() ? "" : ", ") + printType(type);
  text += ") -> " + (stage.results.size() == 1 ? results : "(" + results + ")");
  if (stage.repeat)
    text += " repeat " + printExpr(*stage.repeat);
  text += " {\n";
  for (const Statement &statement : stage.body)
    text += "    " + printStatement(statement) + "\n";
  return text + "  }\n";
}

static std::string printFields(const std::vector<Field> &fields, const std::string &indent) {
  std::string text = "{\n";
  for (const Field &field : fields)
    text += printField(field, indent + "  ");
  return text + indent + "}\n";
}

std::string printField(const Field &field, const std::string &indent) {
  std::string text = indent + field.key.text;
  if (field.label)
    text += field.labelIsString ? " \"" + field.label->text + "\"" : " " + field.label->text;
  return text + (field.isBlock ? " " + printFields(field.fields, indent)
                               : " = " + printExpr(*field.value) + "\n");
}

std::string printProgram(const Program &program) {
  std::string text;
  auto separate = [&] { text += text.empty() ? "" : "\n"; };
  for (const ModelSyntax &model : program.models) {
    separate();
    text += "model " + model.name.text;
    if (!model.constants.empty()) {
      text += "(";
      bool first = true;
      for (const ConstantSyntax &constant : model.constants) {
        text += (first ? "" : ", ") + constant.name.text + " = " + printExpr(*constant.value);
        first = false;
      }
      text += ")";
    }
    text += " {\n";
    bool first = true;
    for (const StageSyntax &stage : model.stages) {
      text += (first ? "  " : "\n  ") + printStage(stage);
      first = false;
    }
    text += "}\n";
  }
  for (const TrainSyntax &train : program.trains) {
    separate();
    text += "train " + train.model.text + " " + printFields(train.fields, "");
  }
  for (const PlanSyntax &plan : program.plans) {
    separate();
    text += "plan " + printFields(plan.fields, "");
  }
  for (const MachineSyntax &machine : program.machines) {
    separate();
    text += "machine " + machine.name.text + " " + printFields(machine.fields, "");
  }
  return text;
}

} // namespace boa::frontend
