//===- ExprParser.cpp - Tokens to expressions -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function a level of the grammar on top of parser.cpp. Depth is bounded
// twice: of the recursion here, and of the tree, which a long sum makes deep
// without recursion.
//
//===----------------------------------------------------------------------===//
#include "frontend/ExprParser.h"

#include "frontend/ForeignSpellings.h"

#include <utility>

namespace boa::frontend {

ExprPtr ExprParser::binary(ExprPtr left, char op, ExprPtr right) {
  if (!right)
    return nullptr;
  ExprPtr expr = make(Expr::Kind::Binary, join(left->location, right->location));
  expr->op = op;
  expr->operands.push_back(std::move(left));
  expr->operands.push_back(std::move(right));
  return measure(*expr) ? std::move(expr) : nullptr;
}

ExprPtr ExprParser::parseSum() {
  ExprPtr left = parseProduct();
  while (left && (is(TokenKind::Plus) || is(TokenKind::Minus))) {
    char op = take().is(TokenKind::Plus) ? '+' : '-';
    left = binary(std::move(left), op, parseProduct());
  }
  return left;
}

ExprPtr ExprParser::parseProduct() {
  ExprPtr left = parseUnary();
  if (left && (left->kind == Expr::Kind::Real || left->kind == Expr::Kind::Integer) &&
      left->unit.empty() && atSource())
    return binary(std::move(left), '*', parseUnary());
  while (left && (is(TokenKind::Star) || is(TokenKind::Slash) || is(TokenKind::Percent))) {
    TokenKind kind = take().kind;
    char op = kind == TokenKind::Star ? '*' : kind == TokenKind::Slash ? '/' : '%';
    left = binary(std::move(left), op, parseUnary());
  }
  return left;
}

ExprPtr ExprParser::parseUnary() {
  if (open >= Expr::kMaxDepth) {
    tooDeep(token().location);
    return nullptr;
  }
  ++open;
  ExprPtr result;
  if (is(TokenKind::Minus)) {
    Location minus = take().location;
    if (ExprPtr operand = parseUnary()) {
      result = make(Expr::Kind::Negate, join(minus, operand->location));
      result->operands.push_back(std::move(operand));
      if (!measure(*result))
        result = nullptr;
    }
  } else {
    result = parsePrimary();
  }
  --open;
  return result;
}

ExprPtr ExprParser::parseNumber() {
  Token number = take();
  ExprPtr expr =
      make(number.is(TokenKind::Real) ? Expr::Kind::Real : Expr::Kind::Integer, number.location);
  expr->integer = number.integer;
  expr->real = number.real;
  // A unit stands on the line of its number; before `write = 2`, `place {` or
  // `ssd "state"` there is none.
  if (!is(TokenKind::Name) || token().firstOfLine || atSource() || isReserved(token().text) ||
      token(1).is(TokenKind::Equals) || token(1).is(TokenKind::LeftBrace) ||
      token(1).is(TokenKind::String))
    return expr;
  Token unit = take();
  expr->unit = unit.text;
  expr->unitLocation = unit.location;
  if (is(TokenKind::Slash) && token(1).isName("s")) {
    take();
    expr->unit += "/s";
    expr->unitLocation = join(unit.location, take().location);
  }
  expr->location = join(expr->location, expr->unitLocation);
  return expr;
}

bool ExprParser::atSource() {
  return inMix && is(TokenKind::Name) && token(1).is(TokenKind::LeftParen);
}

ExprPtr ExprParser::parsePrimary() {
  const Token &first = token();
  Location start = first.location;
  ExprPtr expr;
  switch (first.kind) {
  case TokenKind::Integer:
  case TokenKind::Real:
    return parseNumber();
  case TokenKind::String:
    expr = make(Expr::Kind::String, start);
    expr->name = take().text;
    return expr;
  case TokenKind::Object:
    expr = make(Expr::Kind::Object, start);
    expr->name = take().text;
    return expr;
  case TokenKind::LeftParen: {
    expr = make(Expr::Kind::Tuple, start);
    if (!parseArguments(*expr, /*keywords=*/false))
      return nullptr;
    // (a) is a, with its parentheses in the printed place. An object keeps them: without, its '{'
    // may stand where a block begins.
    if (expr->arguments.size() == 1 && expr->arguments.front().value->kind != Expr::Kind::Object) {
      ExprPtr inner = std::move(expr->arguments.front().value);
      inner->location = expr->location;
      return inner;
    }
    return expr;
  }
  case TokenKind::Name:
    break;
  default:
    fail("a value");
    return nullptr;
  }
  Name name;
  if (!expectName(name, "a value"))
    return nullptr;
  if (is(TokenKind::LeftParen)) {
    expr = make(Expr::Kind::Call, start);
    expr->name = name.text;
    return parseArguments(*expr, /*keywords=*/true) ? std::move(expr) : nullptr;
  }
  expr = make(Expr::Kind::Name, start);
  expr->name = name.text;
  if (takeIf(TokenKind::Dot)) {
    Name member;
    if (!expectName(member, "the name of a parameter after '.'"))
      return nullptr;
    expr->kind = Expr::Kind::Member;
    expr->member = member.text;
    expr->location = join(start, member.location);
    if (is(TokenKind::LeftParen) || is(TokenKind::Dot)) {
      failAtMethod(*expr);
      return nullptr;
    }
  }
  return atShare() ? parseShares(std::move(expr)) : std::move(expr);
}

/// `nn.Linear(...)`, `x.view(...)`, `torch.nn.functional.gelu(x)`.
void ExprParser::failAtMethod(const Expr &expr) {
  Location whole = expr.location;
  std::string last = expr.member;
  while (is(TokenKind::Dot) && token(1).is(TokenKind::Name)) {
    take();
    last = token().text;
    whole = join(whole, take().location);
  }
  std::string hint = findSpelling(SpellingKind::Function, last);
  if (hint.empty())
    hint = findSpelling(SpellingKind::Word, expr.name);
  if (hint.empty())
    hint = "a function stands by itself, and STAGE.NAME is another stage's parameter";
  diagnostics.error(whole, "there is no '" + std::string(sources.text(whole)) + "': " + hint);
}

bool ExprParser::atShare() {
  return (is(TokenKind::Integer) || is(TokenKind::Real)) && !token().firstOfLine &&
         (token(1).is(TokenKind::Percent) || atLayers(1));
}

bool ExprParser::atLayers(size_t ahead) {
  const Token &unit = token(ahead);
  return (unit.isName("layers") || unit.isName("layer")) && !unit.firstOfLine &&
         !token(ahead + 1).is(TokenKind::Equals);
}

ExprPtr ExprParser::parseShares(ExprPtr first) {
  ExprPtr expr = make(Expr::Kind::Shares, first->location);
  for (ExprPtr next = std::move(first);;) {
    bool last = !atShare();
    if (!last) {
      Token number = take();
      const bool layers = atLayers(0);
      Token unit = take();
      ExprPtr share = make(number.is(TokenKind::Integer) ? Expr::Kind::Integer : Expr::Kind::Real,
                           join(number.location, unit.location));
      share->integer = number.integer;
      share->real = number.is(TokenKind::Real) ? number.real : double(number.integer);
      if (layers)
        share->unit = unit.text;
      next->operands.push_back(std::move(share));
    }
    expr->location = join(expr->location, previous());
    expr->arguments.push_back({std::nullopt, std::move(next)});
    if (last)
      return measure(*expr) ? std::move(expr) : nullptr;
    Name name;
    if (!expect(TokenKind::Comma, "and another place for the rest") ||
        !expectName(name, "where the rest is"))
      return nullptr;
    next = make(Expr::Kind::Name, name.location);
    next->name = name.text;
  }
}

bool ExprParser::parseArguments(Expr &expr, bool keywords) {
  const bool outer = std::exchange(inMix, expr.kind == Expr::Kind::Call && expr.name == "mix");
  const bool good = parseArgumentsOf(expr, keywords);
  inMix = outer;
  return good;
}

bool ExprParser::parseArgumentsOf(Expr &expr, bool keywords) {
  take();
  while (!is(TokenKind::RightParen)) {
    Argument argument;
    if (keywords && is(TokenKind::Name) && token(1).is(TokenKind::Equals)) {
      Token keyword = take();
      argument.keyword = Name{keyword.text, keyword.location};
      take();
    }
    argument.value = parseExpr();
    if (!argument.value)
      return false;
    expr.arguments.push_back(std::move(argument));
    if (!takeIf(TokenKind::Comma))
      break;
  }
  if (!expect(TokenKind::RightParen, keywords ? "after the arguments" : "after the values"))
    return false;
  expr.location = join(expr.location, previous());
  return measure(expr);
}

ExprPtr ExprParser::parseLoneValue() {
  ExprPtr value = parseExpr();
  if (value && !is(TokenKind::End)) {
    fail("the end of the value");
    return nullptr;
  }
  return value;
}

} // namespace boa::frontend
