//===- AST.h - The tree that the parser builds ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The source as a tree, with locations and without meaning: names are unresolved,
// units are text. One kind of expression serves dimensions, tensor code and
// settings; the checker decides which of them a place allows. A tree is at most
// kMaxDepth deep, so that walks may recurse.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_AST_H
#define BOA_FRONTEND_AST_H

#include "frontend/Source.h"

#include <memory>
#include <optional>

namespace boa::frontend {

struct Name {
  std::string text;
  Location location;
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

/// An argument of a call, or an element of a tuple (then without a keyword).
struct Argument {
  std::optional<Name> keyword;
  ExprPtr value;
};

struct Expr {
  static constexpr int kMaxDepth = 200;
  enum class Kind {
    Integer,
    Real,
    String,
    Object, // of JSON
    Name,
    Member,
    Negate,
    Binary,
    Call,
    Tuple,
    Shares
  };

  Kind kind;
  Location location;
  int depth = 1;

  /// Integer and Real (both filled): the value, and its unit: "sequences", "MiB", "MB/s".
  int64_t integer = 0;
  double real = 0;
  std::string unit;
  Location unitLocation;
  /// The name of Name, the callee of Call, the stage of Member, the contents of
  /// String, the text of Object.
  std::string name;
  /// The parameter of Member.
  std::string member;
  /// Binary: + - * / %.
  char op = 0;
  /// Negate: one; Binary: two.
  std::vector<ExprPtr> operands;
  /// Call and Tuple. Shares, `host 2 layers, host 40%, ssd`: names, each but the last with a
  /// number of layers or a percentage as its operand.
  std::vector<Argument> arguments;

  bool isName(std::string_view text) const { return kind == Kind::Name && name == text; }
};

/// The type of an argument or a result: `[context, width]`, `[context] token`, `loss`.
struct TypeSyntax {
  enum class Kind { Tensor, Tokens, Loss };
  Kind kind = Kind::Tensor;
  Location location;
  std::vector<ExprPtr> dims;
};

/// `name: type`, `name: type = stage` or `name: type = stage[1]`, of a stage.
struct ArgumentSyntax {
  Name name;
  TypeSyntax type;
  /// The stage whose result it is, if that is named, and the number of the result.
  std::optional<Name> from;
  int64_t result = 0;
};

/// `param name: [dims] = init as "NAME"`, `let a, b = value` or `return value`.
struct Statement {
  enum class Kind { Param, Let, Return };
  Kind kind;
  Location location;
  /// One for Param, one or several for Let, none for Return.
  std::vector<Name> names;
  /// Param: its shape.
  std::vector<ExprPtr> dims;
  Location dimsLocation;
  /// The initialisation, or the value.
  ExprPtr value;
  /// Param: the name of its tensor in a folder of Hugging Face, if it is given, and the word `as`
  /// before it.
  std::optional<Name> external;
  Location asLocation;
};

struct StageSyntax {
  Name name;
  Location location;
  bool isLayer = false;
  std::vector<ArgumentSyntax> arguments;
  std::vector<TypeSyntax> results;
  Location resultsLocation;
  /// Of a layer.
  ExprPtr repeat;
  std::vector<Statement> body;
  Location end;
};

/// `name = value` of a model's head.
struct ConstantSyntax {
  Name name;
  ExprPtr value;
};

struct ModelSyntax {
  Name name;
  Location location;
  std::vector<ConstantSyntax> constants;
  std::vector<StageSyntax> stages;
};

/// `key = value`, or `key [label] { fields }`.
struct Field {
  Name key;
  /// `cpu` of `device cpu`, "state" of `ssd "state"`.
  std::optional<Name> label;
  bool labelIsString = false;
  ExprPtr value;
  bool isBlock = false;
  std::vector<Field> fields;
  /// Its last token.
  Location end;
};

struct TrainSyntax {
  Name model;
  Location location;
  std::vector<Field> fields;
  /// The brace at its end.
  Location end;
};

struct PlanSyntax {
  Location location;
  std::vector<Field> fields;
  /// The brace at its end.
  Location end;
};

struct MachineSyntax {
  Name name;
  Location location;
  std::vector<Field> fields;
};

/// All files that were given together.
struct Program {
  std::vector<ModelSyntax> models;
  std::vector<TrainSyntax> trains;
  std::vector<PlanSyntax> plans;
  std::vector<MachineSyntax> machines;
};

} // namespace boa::frontend

#endif // BOA_FRONTEND_AST_H
