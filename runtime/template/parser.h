//===- parser.h - Tokens to statements and expressions -------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TEMPLATE_PARSER_H
#define BOA_RUNTIME_TEMPLATE_PARSER_H

#include "runtime/template/ast.h"
#include "runtime/template/lexer.h"

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

namespace boa::jinja {

/// The first error is kept. Behind it the parser stands at the end, so that each loop ends.
class Parser {
public:
  Parser(Program &program, std::vector<Token> tokens);
  absl::Status Run();

private:
  // parser.cpp: statements
  Body ParseBody(std::initializer_list<const char *> ends);
  std::unique_ptr<Node> ParseStatement();
  void ParseFor(Node &node);
  void ParseIf(Node &node);
  void ParseSet(Node &node);
  void ParseWith(Node &node);
  void ParseMacro(Node &node);
  void ParseCallBlock(Node &node);
  void ParseSignature(Signature &signature);
  void ParseMacroBody(Node &node, const char *end);
  ExprPtr ParseTarget(bool with_attribute, bool with_tuple);

  // parser_expressions.cpp
  ExprPtr ParseExpression();
  /// Several, with commas between them, are a tuple.
  ExprPtr ParseTuple(bool with_conditional, bool in_parentheses = false);
  ExprPtr ParseOr();
  ExprPtr ParseAnd();
  ExprPtr ParseNot();
  ExprPtr ParseCompare();
  /// Operators from this level on: 0 has + and -, 1 has ~, 2 has * / // %, 3 has **.
  ExprPtr ParseBinary(int level);
  ExprPtr ParseUnary(bool with_filter);
  ExprPtr ParsePrimary();
  ExprPtr ParsePostfix(ExprPtr of);
  ExprPtr ParseSubscript(ExprPtr of);
  ExprPtr ParseFilters(ExprPtr of, bool starts_inline);
  ExprPtr ParseTest(ExprPtr of);
  ExprPtr ParseListOrDict(bool is_dict);
  CallArgs ParseArgs();

  const Token &Current() const { return tokens[std::min(next, tokens.size() - 1)]; }
  bool IsOp(absl::string_view op) const;
  bool IsName(absl::string_view name) const;
  bool IsTupleEnd() const;
  bool SkipOp(absl::string_view op);
  bool SkipName(absl::string_view name);
  void Expect(absl::string_view op);
  void ExpectBlockEnd();
  std::string ExpectName(absl::string_view what);
  void Fail(absl::string_view message) { FailAt(Current().at, message); }
  void FailAt(int32_t at, absl::string_view message);
  /// For messages.
  std::string Found() const;
  int Intern(const std::string &name);
  ExprPtr Make(Op op, int32_t at) const;
  /// Sets the depth, once all parts are there. A tree that is too deep is an error.
  ExprPtr Finish(ExprPtr expr);

  Program &program;
  std::vector<Token> tokens;
  size_t next = 0;
  absl::Status status;
  absl::flat_hash_map<std::string, int> symbols;
  std::vector<char> is_used; // by symbol, since a loop or macro began
  int depth = 0;             // of statements and parentheses that are open
  int choices = 0;           // `if` statements that are open
  int loops = 0;             // that are open in this macro
  std::vector<int32_t> open; // where the statements begin that are open
};

} // namespace boa::jinja

#endif // BOA_RUNTIME_TEMPLATE_PARSER_H
