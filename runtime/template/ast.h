//===- ast.h - What a template consists of -------------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TEMPLATE_AST_H
#define BOA_RUNTIME_TEMPLATE_AST_H

#include "runtime/template/source.h"
#include "runtime/template/value.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace boa::jinja {

struct Filter;
struct Test;
struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArgs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more, more_named; // *more, **more_named
};

enum class Op {
  literal,
  name,
  list,
  tuple,
  dict,      // keys and values in turn
  attribute, // value: the name
  item,
  slice, // of parts[0]; null parts were left out
  call,
  filter, // parts[0]: of what; null in a filter block
  test,
  logical_not,
  negative,
  positive,
  logical_and,
  logical_or,
  binary, // text
  concat,
  compare,     // parts[i] operators[i] parts[i + 1]
  conditional, // parts: condition, value, other value or null
};

struct Expr {
  Op op;
  int32_t at;
  int depth = 1;    // of the tree below
  int symbol = -1;  // of a name: an index into Program::symbols
  std::string text; // a name, or an operator
  Value value;
  std::vector<ExprPtr> parts;
  std::vector<std::string> operators;
  CallArgs args;
  const Filter *filter = nullptr;
  const Test *test = nullptr;
};

struct Node;
using Body = std::vector<std::unique_ptr<Node>>;

/// Of a macro, or of the block of a call.
struct Signature {
  std::string name;
  std::vector<int> parameters;                                      // symbols
  std::vector<ExprPtr> defaults;                                    // of the last parameters
  bool has_caller = false, has_varargs = false, has_kwargs = false; // which names it uses
};

enum class Statement {
  text,
  print,
  loop,
  choice,
  set,
  set_block,
  macro,
  call,
  filter,
  with,
  generation,
  stop, // break
  next, // continue
};

struct Node {
  Statement what;
  int32_t at;
  std::string text;
  // A target is a name, a tuple of targets, or the attribute of a name.
  std::vector<ExprPtr> targets;
  std::vector<ExprPtr> values; // of `choice`, its conditions; the last may be missing
  ExprPtr test;                // of a loop
  bool uses_loop = false;      // `loop` is in its body
  std::vector<Body> bodies;
  Signature signature;
};

struct Program {
  Source source;
  std::vector<std::string> symbols;
  Body body;
  bool has_generation = false;
};

/// Symbols with a meaning of their own are the first of every program.
enum Symbol { kLoop, kCaller, kVarargs, kKwargs, kOwnSymbols };

} // namespace boa::jinja

#endif // BOA_RUNTIME_TEMPLATE_AST_H
