//===- objects.h - Objects that a rendering makes ------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TEMPLATE_OBJECTS_H
#define BOA_RUNTIME_TEMPLATE_OBJECTS_H

#include "runtime/template/builtins.h"
#include "runtime/template/run.h"

#include <functional>

namespace boa::jinja {

/// namespace(...): the only thing that can be changed.
class Namespace : public Object {
public:
  absl::string_view type() const override { return "Namespace"; }
  void Clear() override { attributes.clear(); }
  std::vector<std::pair<Value, Value>> attributes;
};

/// A macro, or the block of a call, which is called `caller`.
class Macro : public Object {
public:
  Macro(const Node &node, std::shared_ptr<Scope> scope) : node(node), scope(std::move(scope)) {}
  absl::string_view type() const override { return "Macro"; }
  void Clear() override { scope.reset(); }
  const Node &node;
  std::shared_ptr<Scope> scope; // that it is written in
};

/// `self`, which has the blocks of a template: here, none.
class Self : public Object {
public:
  absl::string_view type() const override { return "TemplateReference"; }
};

/// A method of a value, or a function.
class Callable : public Object {
public:
  Callable(const Function &function, Value self) : function(function), self(std::move(self)) {}
  absl::string_view type() const override { return "function"; }
  const Function &function;
  Value self;
};

/// What map, select and others give: it can be walked through once.
class Iterator : public Object {
public:
  explicit Iterator(std::vector<Value> items) : items(std::move(items)) {}
  absl::string_view type() const override { return "generator"; }
  std::vector<Value> items;
  size_t next = 0;
};

/// cycler(...) and joiner(...)
class Cycler : public Object {
public:
  absl::string_view type() const override { return is_joiner ? "Joiner" : "Cycler"; }
  bool is_joiner = false;
  std::vector<Value> items;
  size_t next = 0;
};

/// `loop`
class Loop : public Object {
public:
  Loop(Run &run, std::vector<Value> items, bool has_length);
  absl::string_view type() const override { return "LoopContext"; }
  void Clear() override { changed.reset(); }
  /// The next item that passes the loop's test.
  bool Next();
  Value Attribute(const std::string &name);
  int64_t length();

  Run &run;
  std::vector<Value> items;
  bool has_length; // without a look for those that pass
  /// Whether the loop's test holds for an item.
  std::function<bool(const Value &)> passes;
  size_t next = 0;     // of `items`
  int64_t index0 = -1; // of the current item
  std::optional<Value> current, previous, after;
  std::optional<Value> changed; // the arguments of the last loop.changed()

private:
  std::optional<Value> Pull();
};

} // namespace boa::jinja

#endif // BOA_RUNTIME_TEMPLATE_OBJECTS_H
