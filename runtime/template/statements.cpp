//===- statements.cpp - What statements do --------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/deeper.h"
#include "runtime/template/objects.h"
#include "runtime/template/run.h"

#include <algorithm>

namespace boa::jinja {
namespace {

std::shared_ptr<Scope> Inner(const std::shared_ptr<Scope> &outer) {
  auto scope = std::make_shared<Scope>();
  scope->parent = outer;
  return scope;
}

} // namespace

void Run::Write(absl::string_view text) {
  if (!failed() && Grow(out->size(), text.size()))
    out->append(text.data(), text.size());
}

Run::Flow Run::Exec(const Body &body) {
  for (const auto &node : body) {
    if (failed())
      break;
    if (const Flow flow = Exec(*node); flow != Flow::normal)
      return flow;
  }
  return Flow::normal;
}

Run::Flow Run::Exec(const Node &node) {
  const Deeper deeper(*this, node.at);
  if (!Step())
    return Flow::normal;
  Flow flow = Flow::normal;
  const auto filtered = [&](Value text) {
    return node.values.empty() ? text : EvalFilter(*node.values[0], &text);
  };
  switch (node.what) {
  case Statement::text:
    Write(node.text);
    break;
  case Statement::print:
    Write(Str(Eval(*node.values[0])));
    break;
  case Statement::loop:
    return ExecFor(node);
  case Statement::choice:
    return ExecIf(node);
  case Statement::set:
    Assign(*node.targets[0], Eval(*node.values[0]));
    break;
  case Statement::set_block:
    Assign(*node.targets[0], filtered(MakeText(Capture(node.bodies[0], Inner(scope), flow))));
    break;
  case Statement::filter:
    Write(Str(filtered(MakeText(Capture(node.bodies[0], Inner(scope), flow)))));
    break;
  case Statement::with: {
    std::vector<Value> values;
    for (const ExprPtr &value : node.values)
      values.push_back(Eval(*value));
    const auto outer = std::exchange(scope, Inner(scope));
    for (size_t i = 0; i < values.size(); ++i)
      Assign(*node.targets[i], values[i]);
    flow = Exec(node.bodies[0]);
    scope = outer;
    break;
  }
  case Statement::macro:
    Assign(*node.targets[0], Keep(std::make_shared<Macro>(node, scope)));
    break;
  case Statement::call: {
    const Value caller = Keep(std::make_shared<Macro>(node, scope));
    Write(Str(EvalCall(*node.values[0], &caller)));
    break;
  }
  case Statement::generation: {
    const bool is_placed = out == &rendered.text;
    const size_t index = rendered.generated.size();
    if (is_placed)
      rendered.generated.push_back({out->size(), 0});
    else if (rendered.unplaced_line == 0)
      rendered.unplaced_line = program.source.LineOf(node.at);
    const auto outer = std::exchange(scope, Inner(scope));
    Exec(node.bodies[0]);
    scope = outer;
    if (is_placed)
      rendered.generated[index].end = out->size();
    break;
  }
  case Statement::stop:
    return Flow::stop;
  case Statement::next:
    return Flow::next;
  }
  return flow;
}

Run::Flow Run::ExecIf(const Node &node) {
  for (size_t i = 0; i < node.bodies.size() && !failed(); ++i)
    if (i == node.values.size() || Truth(Eval(*node.values[i])))
      return failed() ? Flow::normal : Exec(node.bodies[i]);
  return Flow::normal;
}

Run::Flow Run::ExecFor(const Node &node) {
  const Value source = Eval(*node.values[0]);
  at = node.values[0]->at;
  const auto loop =
      std::make_shared<Loop>(*this, Items(source), !node.test && !source.As<Iterator>());
  const auto outer = scope;
  if (node.test)
    loop->passes = [&](const Value &item) {
      const auto inside = std::exchange(scope, Inner(outer));
      Assign(*node.targets[0], item);
      const bool holds = Truth(Eval(*node.test));
      scope = inside;
      return holds;
    };
  Own(loop, loop->items);
  bool is_done = false; // as in jinja2, `else` also follows a loop in which each turn was cut short
  while (loop->Next() && Step()) {
    scope = Inner(outer);
    Assign(*node.targets[0], *loop->current);
    if (node.uses_loop)
      scope->Set(kLoop, Value(std::static_pointer_cast<Object>(loop)));
    const Flow flow = Exec(node.bodies[0]);
    if (flow == Flow::stop)
      break;
    is_done |= flow == Flow::normal;
  }
  loop->passes = nullptr;
  loop->Clear();
  scope = Inner(outer);
  const Flow flow = !is_done && node.bodies.size() > 1 ? Exec(node.bodies[1]) : Flow::normal;
  scope = outer;
  return flow;
}

void Run::Assign(const Expr &target, const Value &value) {
  if (failed())
    return;
  at = target.at;
  if (target.op == Op::name) {
    Step(static_cast<int64_t>(scope->variables.size() / 16));
    scope->Set(target.symbol, value);
    return;
  }
  if (target.op == Op::attribute) {
    const Value of = EvalName(*target.parts[0]);
    auto *space = of.As<Namespace>();
    if (!space)
      Fail("`", target.parts[0]->text, "` is no namespace, so its attributes cannot be set");
    else
      Insert(space->attributes, target.value, value);
    return;
  }
  const std::vector<Value> items = Items(value);
  if (items.size() != target.parts.size()) {
    Fail("expected ", target.parts.size(), " values, found ", items.size());
    return;
  }
  for (size_t i = 0; i < items.size(); ++i)
    Assign(*target.parts[i], items[i]);
}

std::string Run::Capture(const Body &body, std::shared_ptr<Scope> inner, Flow &flow) {
  std::string text;
  const auto outer = std::exchange(scope, std::move(inner));
  std::string *const outer_text = std::exchange(out, &text);
  flow = Exec(body);
  out = outer_text;
  scope = outer;
  return text;
}

Value Run::CallMacro(const Macro &macro, const Args &args) {
  const Signature &signature = macro.node.signature;
  const int32_t called_at = at;
  const size_t count = signature.parameters.size();
  // Each parameter is looked for among those before it.
  if (!Step(static_cast<int64_t>(count + count * count / 32)))
    return Value();
  const auto inner = Inner(macro.scope);
  std::vector<bool> is_given(count);
  for (size_t i = 0; i < std::min(count, args.positional.size()); ++i) {
    inner->Set(signature.parameters[i], args.positional[i]);
    is_given[i] = true;
  }
  if (args.positional.size() > count && !signature.has_varargs)
    return Fail("the macro `", signature.name, "` takes ", count, " arguments, and not ",
                args.positional.size());

  std::vector<std::pair<Value, Value>> more;
  Value caller = Value::Missing("`caller` outside of a call block");
  for (const auto &[name, value] : args.named) {
    size_t i = 0;
    Step(static_cast<int64_t>(count / 16));
    while (i < count && program.symbols[static_cast<size_t>(signature.parameters[i])] != name)
      ++i;
    if (i < count && !is_given[i]) {
      inner->Set(signature.parameters[i], value);
      is_given[i] = true;
    } else if (name == "caller" && signature.has_caller) {
      caller = value;
    } else if (i == count && signature.has_kwargs) {
      Insert(more, Value(name), value);
    } else {
      return Fail("the macro `", signature.name, "` ",
                  i < count ? "is given twice its argument" : "has no argument", " `", name, "`");
    }
  }
  for (size_t i = 0; i < count; ++i)
    if (!is_given[i])
      inner->Set(signature.parameters[i],
                 Value::Missing(absl::StrCat(
                     "the macro `", signature.name, "` is not given its argument `",
                     program.symbols[static_cast<size_t>(signature.parameters[i])], "`")));
  // A default may use the parameters before it.
  const auto outer = std::exchange(scope, inner);
  for (size_t i = count - signature.defaults.size(); i < count && !failed(); ++i)
    if (!is_given[i])
      inner->Set(signature.parameters[i],
                 Eval(*signature.defaults[i + signature.defaults.size() - count]));
  scope = outer;
  if (signature.has_caller && !inner->Has(kCaller))
    inner->Set(kCaller, caller);
  if (signature.has_varargs)
    inner->Set(kVarargs, MakeList(args.positional.size() > count
                                      ? std::vector<Value>(args.positional.begin() +
                                                               static_cast<std::ptrdiff_t>(count),
                                                           args.positional.end())
                                      : std::vector<Value>(),
                                  List::Shape::tuple));
  if (signature.has_kwargs)
    inner->Set(kKwargs, MakeDict(std::move(more)));
  Flow flow = Flow::normal;
  std::string text = Capture(macro.node.bodies[0], inner, flow);
  at = called_at;
  return MakeText(std::move(text));
}

} // namespace boa::jinja
