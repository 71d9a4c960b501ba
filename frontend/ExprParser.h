//===- ExprParser.h - Tokens to expressions ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lower half of the parser: the cursor over tokens, and expressions. The
// upper half (parser.cpp) derives from it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_EXPRPARSER_H
#define BOA_FRONTEND_EXPRPARSER_H

#include "frontend/AST.h"
#include "frontend/Token.h"

#include <algorithm>

namespace boa::frontend {

class ExprParser {
public:
  ExprParser(const Sources &sources, std::vector<Token> tokens, Diagnostics &diagnostics)
      : sources(sources), tokens(std::move(tokens)), diagnostics(diagnostics) {}

  /// One expression and nothing after it.
  ExprPtr parseLoneValue();

protected:
  //===--------------------------------------------------------------------===//
  // Tokens
  //===--------------------------------------------------------------------===//

  const Token &token(size_t ahead = 0) const {
    return tokens[std::min(at + ahead, tokens.size() - 1)];
  }
  bool is(TokenKind kind) const { return token().is(kind); }
  bool isName(std::string_view name) const { return token().isName(name); }
  Token take() {
    Token taken = token();
    if (at + 1 < tokens.size())
      ++at;
    return taken;
  }
  bool takeIf(TokenKind kind) {
    if (!is(kind))
      return false;
    take();
    return true;
  }
  Location previous() const { return tokens[at == 0 ? 0 : at - 1].location; }

  bool fail(const std::string &expected) {
    diagnostics.error(token().location,
                      "expected " + expected + " but found " + describe(token(), sources));
    return false;
  }
  bool expect(TokenKind kind, const char *where) {
    return takeIf(kind) || fail(std::string(describe(kind)) + " " + where);
  }
  bool expectName(Name &name, const char *what) {
    if (!is(TokenKind::Name))
      return fail(what);
    if (isReserved(token().text)) {
      diagnostics.error(token().location, "expected " + std::string(what) + " but found '" +
                                              token().text + "', a word of the language");
      return false;
    }
    Token taken = take();
    name = {taken.text, taken.location};
    return true;
  }

  //===--------------------------------------------------------------------===//
  // Expressions: null after an error
  //===--------------------------------------------------------------------===//

  ExprPtr parseExpr() { return parseSum(); }

  const Sources &sources;
  std::vector<Token> tokens;
  Diagnostics &diagnostics;
  size_t at = 0;

private:
  ExprPtr parseSum();
  ExprPtr parseProduct();
  ExprPtr parseUnary();
  ExprPtr parsePrimary();
  void failAtMethod(const Expr &expr);
  bool atShare();
  bool atLayers(size_t ahead);
  ExprPtr parseShares(ExprPtr first);
  ExprPtr parseNumber();
  bool atSource();
  bool parseArguments(Expr &expr, bool keywords);
  bool parseArgumentsOf(Expr &expr, bool keywords);
  ExprPtr binary(ExprPtr left, char op, ExprPtr right);
  ExprPtr make(Expr::Kind kind, Location location) {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->location = location;
    return expr;
  }
  /// Sets the depth from the parts. Returns false, with an error, if it is too deep.
  bool measure(Expr &expr) {
    for (const ExprPtr &operand : expr.operands)
      expr.depth = std::max(expr.depth, operand->depth + 1);
    for (const Argument &argument : expr.arguments)
      expr.depth = std::max(expr.depth, argument.value->depth + 1);
    return expr.depth <= Expr::kMaxDepth || tooDeep(expr.location);
  }
  bool tooDeep(Location location) {
    diagnostics.error(location, "the expression nests more than " +
                                    std::to_string(Expr::kMaxDepth) + " deep");
    return false;
  }

  /// Whether the arguments of `mix` are read, where a share stands before its source: 0.7
  /// tokens("a"). The tree is that of 0.7 * tokens("a").
  bool inMix = false;
  /// Open parentheses and signs: bounds the recursion of the parser itself.
  int open = 0;
};

} // namespace boa::frontend

#endif // BOA_FRONTEND_EXPRPARSER_H
