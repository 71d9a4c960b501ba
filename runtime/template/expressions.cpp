//===- expressions.cpp - The values of expressions ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/deeper.h"
#include "runtime/template/objects.h"
#include "runtime/template/run.h"

#include "absl/strings/match.h"

#include <algorithm>

namespace boa::jinja {

Value Run::Eval(const Expr &expr) {
  const Deeper deeper(*this, expr.at);
  if (!Step())
    return Value();
  const auto part = [&](size_t i) { return Eval(*expr.parts[i]); };
  const auto part_or_none = [&](size_t i) { return expr.parts[i] ? part(i) : Value(None()); };
  switch (expr.op) {
  case Op::literal:
    return expr.value;
  case Op::name:
    return EvalName(expr);
  case Op::list:
  case Op::tuple: {
    std::vector<Value> items;
    for (size_t i = 0; i < expr.parts.size() && !failed(); ++i)
      items.push_back(part(i));
    at = expr.at;
    return MakeList(std::move(items), expr.op == Op::list ? List::Shape::list : List::Shape::tuple);
  }
  case Op::dict:
    return EvalDict(expr);
  case Op::attribute: {
    const Value of = part(0);
    at = expr.at;
    return Attribute(of, expr.value);
  }
  case Op::item: {
    const Value of = part(0), key = part(1);
    at = expr.at;
    return Item(of, key);
  }
  case Op::slice: {
    const Value of = part(0), from = part_or_none(1), to = part_or_none(2), by = part_or_none(3);
    at = expr.at;
    return Slice(of, from, to, by);
  }
  case Op::call:
    return EvalCall(expr, nullptr);
  case Op::filter:
    return EvalFilter(expr, nullptr);
  case Op::test: {
    const Value value = part(0);
    const Args args = EvalArgs(expr.args);
    at = expr.at;
    if (!expr.test)
      return Fail("no test `", expr.text, "`");
    const Given given(*this, expr.test->name, expr.test->parameters, args);
    return Look(value) && Look(args) ? Value(expr.test->holds(*this, value, given)) : Value();
  }
  case Op::logical_not:
    return Value(!Truth(part(0)));
  case Op::logical_and:
  case Op::logical_or: {
    Value left = part(0);
    return Truth(left) == (expr.op == Op::logical_or) ? left : part(1);
  }
  case Op::negative: {
    const Value value = part(0);
    at = expr.at;
    return Negative(value);
  }
  case Op::positive: {
    const Value value = part(0);
    at = expr.at;
    return value.is_number() ? Binary("+", Value(int64_t{0}), value) : Negative(value);
  }
  case Op::binary: {
    const Value left = part(0), right = part(1);
    at = expr.at;
    return failed() ? Value() : Binary(expr.text, left, right);
  }
  case Op::concat:
    return EvalConcat(expr);
  case Op::compare:
    return EvalCompare(expr);
  case Op::conditional:
    if (Truth(part(0)))
      return part(1);
    return expr.parts[2] ? part(2) : Value::Missing("an `if` without `else`, which was false");
  }
  return Value();
}

Value Run::EvalName(const Expr &expr) {
  size_t passed = 0;
  for (const Scope *block = scope.get(); block; block = block->parent.get()) {
    passed += 1 + block->variables.size();
    for (const auto &[symbol, value] : block->variables)
      if (symbol == expr.symbol)
        return Step(static_cast<int64_t>(passed / 16)) ? value : Value();
  }
  Step(static_cast<int64_t>(passed / 16));
  return globals[static_cast<size_t>(expr.symbol)];
}

Value Run::EvalConcat(const Expr &expr) {
  std::string text;
  for (const ExprPtr &part : expr.parts) {
    const std::string more = Str(Eval(*part));
    at = expr.at;
    if (failed() || !Grow(text.size(), more.size()))
      return Value();
    text += more;
  }
  return Value(std::move(text));
}

Value Run::EvalDict(const Expr &expr) {
  std::vector<std::pair<Value, Value>> entries;
  for (size_t i = 0; i < expr.parts.size() && !failed(); i += 2) {
    Value key = Eval(*expr.parts[i]), value = Eval(*expr.parts[i + 1]);
    at = expr.at;
    Insert(entries, std::move(key), std::move(value));
  }
  return MakeDict(std::move(entries));
}

Value Run::EvalCompare(const Expr &expr) {
  Value left = Eval(*expr.parts[0]);
  for (size_t i = 0; i < expr.operators.size() && !failed(); ++i) {
    Value right = Eval(*expr.parts[i + 1]);
    at = expr.at;
    const std::string &op = expr.operators[i];
    const bool holds = op == "=="       ? Equal(left, right)
                       : op == "!="     ? !Equal(left, right)
                       : op == "in"     ? Contains(right, left)
                       : op == "not in" ? !Contains(right, left)
                       : op[0] == '<'   ? Less(left, right, op == "<=")
                                        : Less(right, left, op == ">=");
    if (!holds)
      return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Args Run::EvalArgs(const CallArgs &args) {
  Args out;
  for (const ExprPtr &value : args.positional)
    out.positional.push_back(Eval(*value));
  for (const auto &[name, value] : args.named)
    out.named.emplace_back(name, Eval(*value));
  if (args.more)
    for (Value &value : Items(Eval(*args.more)))
      out.positional.push_back(std::move(value));
  if (args.more_named) {
    const Value more = Eval(*args.more_named);
    if (!more.is(Kind::dict))
      Fail("`**` expects a `dict`, and not a `", more.type(), "`");
    else if (Room(static_cast<int64_t>(more.dict().entries.size())))
      for (const auto &[name, value] : more.dict().entries)
        out.named.emplace_back(Str(name), value);
  }
  return out;
}

Value Run::EvalCall(const Expr &expr, const Value *caller) {
  const Value callee = Eval(*expr.parts[0]);
  Args args = EvalArgs(expr.args);
  if (caller)
    args.named.emplace_back("caller", *caller);
  at = expr.at;
  return failed() ? Value() : Call(callee, args);
}

Value Run::EvalFilter(const Expr &expr, const Value *block) {
  const Value value = !expr.parts[0] ? *block
                      : block        ? EvalFilter(*expr.parts[0], block)
                                     : Eval(*expr.parts[0]);
  const Args args = EvalArgs(expr.args);
  at = expr.at;
  if (!expr.filter)
    return Fail("no filter `", expr.text, "`");
  const Given given(*this, expr.filter->name, expr.filter->parameters, args);
  return Look(value) && Look(args) ? expr.filter->call(*this, value, given) : Value();
}

} // namespace boa::jinja
