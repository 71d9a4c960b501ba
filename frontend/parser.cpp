//===- parser.cpp - Tokens to a tree --------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recursive descent, one token of lookahead (two for a keyword argument). The
// grammar:
//
//   program   = { model | train | machine }
//   model     = "model" NAME [ "(" { NAME "=" expr } ")" ] "{" { stage } "}"
//   stage     = ("stage" | "layer") NAME "(" { NAME ":" type } ")" "->" type
//               [ "repeat" expr ] "{" { statement } "}"
//   type      = "[" { expr } "]" [ "token" ] | "loss"
//   statement = "param" NAME ":" "[" { expr } "]" "=" expr
//             | "let" NAME { "," NAME } "=" expr | "return" expr
//   train     = "train" NAME fields          machine = "machine" NAME fields
//   fields    = "{" { NAME "=" expr | NAME [ NAME | STRING ] fields } "}"
//   expr      = term { ("+" | "-") term }    term = unary { ("*" | "/" | "%") unary }
//   unary     = "-" unary | primary
//   primary   = NUMBER [ UNIT [ "/" "s" ] ] | STRING | NAME [ "." NAME ]
//             | NAME "(" { [ NAME "=" ] expr } ")" | "(" expr { "," expr } ")"
//
// After an error the parser drops tokens up to where the next statement, field,
// stage or item begins; a statement yields at most one error.
//
//===----------------------------------------------------------------------===//
#include "frontend/parser.h"

#include "frontend/lexer.h"

#include <algorithm>

namespace boa::frontend {

namespace {

class Parser {
public:
  Parser(const Sources &sources, std::vector<Token> tokens, Diagnostics &diagnostics)
      : sources(sources), tokens(std::move(tokens)), diagnostics(diagnostics) {}

  void parseProgram(Program &program);
  ExprPtr parseLoneValue();

private:
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

  /// Drops tokens up to one at nesting level 0 that `stop` accepts, or a '}'
  /// that closes what is open here, or the end.
  template <typename Stop> void recover(Stop stop) {
    int level = 0;
    while (!is(TokenKind::End)) {
      if (level == 0 && (is(TokenKind::RightBrace) || stop()))
        return;
      if (is(TokenKind::LeftBrace))
        ++level;
      if (is(TokenKind::RightBrace))
        --level;
      take();
    }
  }
  bool atItem() const {
    return token().firstOfLine && (isName("model") || isName("train") || isName("machine"));
  }
  bool atStage() const { return isName("stage") || isName("layer"); }
  bool atStatement() const { return isName("param") || isName("let") || isName("return"); }

  //===--------------------------------------------------------------------===//
  // Items
  //===--------------------------------------------------------------------===//

  bool parseModel(ModelSyntax &model);
  bool parseStage(StageSyntax &stage);
  bool parseType(TypeSyntax &type);
  bool parseDims(std::vector<ExprPtr> &dims);
  bool parseStatement(Statement &statement);
  bool parseFields(std::vector<Field> &fields, int depth);
  bool parseField(Field &field, int depth);

  //===--------------------------------------------------------------------===//
  // Expressions: null after an error
  //===--------------------------------------------------------------------===//

  ExprPtr parseExpr() { return parseSum(); }
  ExprPtr parseSum();
  ExprPtr parseProduct();
  ExprPtr parseUnary();
  ExprPtr parsePrimary();
  ExprPtr parseNumber();
  bool parseArguments(Expr &expr, bool keywords);
  ExprPtr binary(ExprPtr left, char op, ExprPtr right);
  ExprPtr make(Expr::Kind kind, Location location) {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->location = location;
    return expr;
  }
  /// Sets the depth from the parts; false, with an error, where it is too deep.
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

  const Sources &sources;
  std::vector<Token> tokens;
  Diagnostics &diagnostics;
  size_t at = 0;
  /// Open parentheses and signs: bounds the recursion of the parser itself.
  int open = 0;
};

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

void Parser::parseProgram(Program &program) {
  while (!is(TokenKind::End) && !diagnostics.full()) {
    bool parsed = false;
    Location start = token().location;
    if (isName("model")) {
      ModelSyntax model;
      parsed = parseModel(model);
      if (parsed)
        program.models.push_back(std::move(model));
    } else if (isName("train")) {
      take();
      TrainSyntax train;
      train.location = start;
      parsed = expectName(train.model, "the name of a model") && parseFields(train.fields, 0);
      if (parsed)
        program.trains.push_back(std::move(train));
    } else if (isName("machine")) {
      take();
      MachineSyntax machine;
      machine.location = start;
      parsed = expectName(machine.name, "the name of the machine") &&
               parseFields(machine.fields, 0);
      if (parsed)
        program.machines.push_back(std::move(machine));
    } else {
      std::string hint;
      if (is(TokenKind::Name))
        hint = didYouMean(token().text, {"model", "train", "machine"});
      diagnostics.error(token().location, "expected 'model', 'train' or 'machine' but found " +
                                              describe(token(), sources) + hint);
      take();
    }
    if (!parsed)
      while (!is(TokenKind::End) && !atItem())
        take();
  }
}

bool Parser::parseModel(ModelSyntax &model) {
  model.location = take().location;
  if (!expectName(model.name, "the name of the model"))
    return false;
  if (takeIf(TokenKind::LeftParen)) {
    while (!is(TokenKind::RightParen)) {
      ConstantSyntax constant;
      if (!expectName(constant.name, "the name of a constant") ||
          !expect(TokenKind::Equals, "after the name of a constant"))
        return false;
      constant.value = parseExpr();
      if (!constant.value)
        return false;
      model.constants.push_back(std::move(constant));
      if (!takeIf(TokenKind::Comma))
        break;
    }
    if (!expect(TokenKind::RightParen, "after the constants"))
      return false;
  }
  if (!expect(TokenKind::LeftBrace, "before the stages of the model"))
    return false;
  while (!is(TokenKind::RightBrace)) {
    if (is(TokenKind::End) || diagnostics.full())
      return fail("'}' at the end of the model");
    StageSyntax stage;
    if (!atStage()) {
      std::string hint;
      if (is(TokenKind::Name))
        hint = didYouMean(token().text, {"stage", "layer"});
      diagnostics.error(token().location, "expected 'stage' or 'layer' but found " +
                                              describe(token(), sources) + hint);
      if (atItem())
        return false;
      take();
      recover([&] { return atStage() || atItem(); });
      // The '}' that ends the stage which was not understood.
      if (is(TokenKind::RightBrace) && token(1).is(TokenKind::Name) &&
          (token(1).text == "stage" || token(1).text == "layer"))
        take();
      continue;
    }
    if (parseStage(stage)) {
      model.stages.push_back(std::move(stage));
      continue;
    }
    recover([&] { return atStage() || atItem(); });
    if (atItem())
      return false;
  }
  take();
  return true;
}

bool Parser::parseStage(StageSyntax &stage) {
  stage.isLayer = isName("layer");
  stage.location = take().location;
  if (!expectName(stage.name, "the name of the stage") ||
      !expect(TokenKind::LeftParen, "before the arguments of the stage"))
    return false;
  while (!is(TokenKind::RightParen)) {
    ArgumentSyntax argument;
    if (!expectName(argument.name, "the name of an argument") ||
        !expect(TokenKind::Colon, "after the name of an argument") || !parseType(argument.type))
      return false;
    stage.arguments.push_back(std::move(argument));
    if (!takeIf(TokenKind::Comma))
      break;
  }
  if (!expect(TokenKind::RightParen, "after the arguments of the stage") ||
      !expect(TokenKind::Arrow, "before the result of the stage") || !parseType(stage.result))
    return false;
  if (isName("repeat")) {
    take();
    stage.repeat = parseExpr();
    if (!stage.repeat)
      return false;
  }
  if (!expect(TokenKind::LeftBrace, "before the body of the stage"))
    return false;
  while (!is(TokenKind::RightBrace)) {
    if (is(TokenKind::End) || atStage() || atItem() || diagnostics.full())
      return fail("'}' at the end of stage '" + stage.name.text + "'");
    Statement statement;
    if (parseStatement(statement))
      stage.body.push_back(std::move(statement));
    else
      recover([&] { return atStatement() || atStage() || atItem(); });
  }
  stage.end = take().location;
  return true;
}

bool Parser::parseType(TypeSyntax &type) {
  type.location = token().location;
  if (isName("loss")) {
    take();
    type.kind = TypeSyntax::Kind::Loss;
    return true;
  }
  if (!is(TokenKind::LeftBracket))
    return fail("a type: '[...]', '[...] token' or 'loss',");
  if (!parseDims(type.dims))
    return false;
  if (isName("token")) {
    take();
    type.kind = TypeSyntax::Kind::Tokens;
  }
  type.location = join(type.location, previous());
  return true;
}

bool Parser::parseDims(std::vector<ExprPtr> &dims) {
  if (!expect(TokenKind::LeftBracket, "before the dimensions"))
    return false;
  while (!is(TokenKind::RightBracket)) {
    dims.push_back(parseExpr());
    if (!dims.back())
      return false;
    if (!takeIf(TokenKind::Comma))
      break;
  }
  return expect(TokenKind::RightBracket, "after the dimensions");
}

bool Parser::parseStatement(Statement &statement) {
  statement.location = token().location;
  if (!atStatement()) {
    std::string hint;
    if (is(TokenKind::Name))
      hint = didYouMean(token().text, {"param", "let", "return"});
    diagnostics.error(token().location, "expected 'param', 'let' or 'return' but found " +
                                            describe(token(), sources) + hint);
    take();
    return false;
  }
  std::string word = take().text;
  if (word == "return") {
    statement.kind = Statement::Kind::Return;
    statement.value = parseExpr();
    return statement.value != nullptr;
  }
  Name name;
  if (word == "param") {
    statement.kind = Statement::Kind::Param;
    if (!expectName(name, "the name of a parameter") ||
        !expect(TokenKind::Colon, "after the name of a parameter"))
      return false;
    statement.dimsLocation = token().location;
    if (!parseDims(statement.dims))
      return false;
    statement.dimsLocation = join(statement.dimsLocation, previous());
    if (!expect(TokenKind::Equals, "before the initial value of a parameter"))
      return false;
    statement.names.push_back(std::move(name));
  } else {
    statement.kind = Statement::Kind::Let;
    do {
      if (!expectName(name, "a name after 'let'"))
        return false;
      statement.names.push_back(std::move(name));
    } while (takeIf(TokenKind::Comma));
    if (!expect(TokenKind::Equals, "before the value of 'let'"))
      return false;
  }
  statement.value = parseExpr();
  return statement.value != nullptr;
}

bool Parser::parseFields(std::vector<Field> &fields, int depth) {
  if (!expect(TokenKind::LeftBrace, "before the settings"))
    return false;
  while (!is(TokenKind::RightBrace)) {
    if (is(TokenKind::End) || atItem() || diagnostics.full())
      return fail("'}' at the end of the settings");
    Field field;
    if (parseField(field, depth)) {
      fields.push_back(std::move(field));
      takeIf(TokenKind::Comma);
    } else {
      recover([&] { return token().firstOfLine && is(TokenKind::Name); });
    }
  }
  take();
  return true;
}

bool Parser::parseField(Field &field, int depth) {
  if (!expectName(field.key, "a setting, 'name = value',")) {
    take();
    return false;
  }
  if (takeIf(TokenKind::Equals)) {
    field.value = parseExpr();
    return field.value != nullptr;
  }
  if (!token().firstOfLine && (is(TokenKind::Name) || is(TokenKind::String))) {
    field.labelIsString = is(TokenKind::String);
    Token label = take();
    field.label = Name{label.text, label.location};
  }
  if (!is(TokenKind::LeftBrace))
    return fail("'=' or '{' after '" + field.key.text + "'");
  // A machine's device is the deepest there is.
  if (depth >= 2) {
    diagnostics.error(token().location, "settings nest more than 3 deep");
    return false;
  }
  field.isBlock = true;
  return parseFields(field.fields, depth + 1);
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

ExprPtr Parser::binary(ExprPtr left, char op, ExprPtr right) {
  if (!right)
    return nullptr;
  ExprPtr expr = make(Expr::Kind::Binary, join(left->location, right->location));
  expr->op = op;
  expr->operands.push_back(std::move(left));
  expr->operands.push_back(std::move(right));
  return measure(*expr) ? std::move(expr) : nullptr;
}

ExprPtr Parser::parseSum() {
  ExprPtr left = parseProduct();
  while (left && (is(TokenKind::Plus) || is(TokenKind::Minus))) {
    char op = take().is(TokenKind::Plus) ? '+' : '-';
    left = binary(std::move(left), op, parseProduct());
  }
  return left;
}

ExprPtr Parser::parseProduct() {
  ExprPtr left = parseUnary();
  while (left && (is(TokenKind::Star) || is(TokenKind::Slash) || is(TokenKind::Percent))) {
    TokenKind kind = take().kind;
    char op = kind == TokenKind::Star ? '*' : kind == TokenKind::Slash ? '/' : '%';
    left = binary(std::move(left), op, parseUnary());
  }
  return left;
}

ExprPtr Parser::parseUnary() {
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

ExprPtr Parser::parseNumber() {
  Token number = take();
  ExprPtr expr = make(number.is(TokenKind::Real) ? Expr::Kind::Real : Expr::Kind::Integer,
                      number.location);
  expr->integer = number.integer;
  expr->real = number.real;
  // A unit stands on the line of its number; `read = 1 write = 2` has none.
  if (!is(TokenKind::Name) || token().firstOfLine || isReserved(token().text) ||
      token(1).is(TokenKind::Equals))
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

ExprPtr Parser::parsePrimary() {
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
  case TokenKind::LeftParen: {
    expr = make(Expr::Kind::Tuple, start);
    if (!parseArguments(*expr, /*keywords=*/false))
      return nullptr;
    // (a) is a, with its parentheses in the printed place.
    if (expr->arguments.size() == 1) {
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
  }
  return expr;
}

bool Parser::parseArguments(Expr &expr, bool keywords) {
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

ExprPtr Parser::parseLoneValue() {
  ExprPtr value = parseExpr();
  if (value && !is(TokenKind::End)) {
    fail("the end of the value");
    return nullptr;
  }
  return value;
}

} // namespace

void parse(const Sources &sources, int32_t file, Program &program, Diagnostics &diagnostics) {
  Parser(sources, lex(sources, file, diagnostics), diagnostics).parseProgram(program);
}

ExprPtr parseValue(const Sources &sources, int32_t file, size_t begin,
                   Diagnostics &diagnostics) {
  return Parser(sources, lex(sources, file, diagnostics, begin), diagnostics).parseLoneValue();
}

} // namespace boa::frontend
