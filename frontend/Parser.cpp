//===- Parser.cpp - Tokens to a tree --------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recursive descent, one token of lookahead (two for a keyword argument). The
// grammar:
//
//   program   = { model | train | plan | machine }
//   model     = "model" NAME [ "(" { NAME "=" expr } ")" ] "{" { stage } "}"
//   stage     = ("stage" | "layer") NAME "(" { NAME ":" type [ "=" NAME [ "[" NUMBER "]" ] ] } ")"
//               "->" ( type | "(" type { "," type } ")" ) [ "repeat" expr ] "{" { statement } "}"
//   type      = "[" { expr } "]" [ "token" ] | "loss"
//   statement = "param" NAME ":" "[" { expr } "]" "=" expr [ "as" STRING ]
//             | "let" NAME { "," NAME } "=" expr | "return" expr
//   train     = "train" NAME fields          plan = "plan" fields
//   machine   = "machine" NAME fields
//   fields    = "{" { NAME "=" expr | NAME [ NAME | STRING ] fields } "}"
//   expr      = term { ("+" | "-") term }    term = unary { ("*" | "/" | "%") unary }
//   unary     = "-" unary | primary
//   primary   = NUMBER [ UNIT [ "/" "s" ] ] | STRING | OBJECT | NAME [ "." NAME ]
//             | NAME "(" { [ NAME "=" ] expr } ")" | "(" expr { "," expr } ")"
//
// After an error the parser drops tokens up to where the next statement, field,
// stage or item begins; a statement yields at most one error.
//
//===----------------------------------------------------------------------===//
#include "frontend/Parser.h"

#include "frontend/ExprParser.h"
#include "frontend/ForeignSpellings.h"
#include "frontend/Lexer.h"

namespace boa::frontend {

namespace {

class Parser : public ExprParser {
public:
  using ExprParser::ExprParser;

  void parseProgram(Program &program);

private:
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
  /// What to write instead of the name that stands here, or "".
  std::string suggest(const std::vector<std::string> &words) const {
    if (!is(TokenKind::Name))
      return "";
    std::string hint = spellingHint(SpellingKind::Word, token().text);
    return hint.empty() ? didYouMean(token().text, words) : hint;
  }
  bool atItem() const {
    return token().firstOfLine &&
           (isName("model") || isName("train") || isName("plan") || isName("machine"));
  }
  bool atStage() const { return isName("stage") || isName("layer"); }
  bool atStatement() const { return isName("param") || isName("let") || isName("return"); }

  //===--------------------------------------------------------------------===//
  // Items
  //===--------------------------------------------------------------------===//

  bool parseModel(ModelSyntax &model);
  bool parseStage(StageSyntax &stage);
  bool parseResults(StageSyntax &stage);
  bool parseType(TypeSyntax &type);
  bool parseDims(std::vector<ExprPtr> &dims);
  bool parseStatement(Statement &statement);
  bool parseFields(std::vector<Field> &fields, int depth);
  bool parseField(Field &field, int depth);
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
      train.end = previous();
      if (parsed)
        program.trains.push_back(std::move(train));
    } else if (isName("plan")) {
      take();
      PlanSyntax plan;
      plan.location = start;
      parsed = parseFields(plan.fields, 0);
      plan.end = previous();
      if (parsed)
        program.plans.push_back(std::move(plan));
    } else if (isName("machine")) {
      take();
      MachineSyntax machine;
      machine.location = start;
      parsed =
          expectName(machine.name, "the name of the machine") && parseFields(machine.fields, 0);
      if (parsed)
        program.machines.push_back(std::move(machine));
    } else {
      std::string hint = suggest({"model", "train", "plan", "machine"});
      diagnostics.error(token().location,
                        "expected 'model', 'train', 'plan' or 'machine' but found " +
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
      std::string hint = suggest({"stage", "layer"});
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
    if (takeIf(TokenKind::Equals)) {
      if (!expectName(argument.from.emplace(), "the name of an earlier stage"))
        return false;
      if (takeIf(TokenKind::LeftBracket)) {
        argument.result = token().integer;
        if (!expect(TokenKind::Integer, "of a result") ||
            !expect(TokenKind::RightBracket, "after the number of a result"))
          return false;
      }
    }
    stage.arguments.push_back(std::move(argument));
    if (!takeIf(TokenKind::Comma))
      break;
  }
  if (!expect(TokenKind::RightParen, "after the arguments of the stage") ||
      !expect(TokenKind::Arrow, "before the result of the stage") || !parseResults(stage))
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

bool Parser::parseResults(StageSyntax &stage) {
  stage.resultsLocation = token().location;
  const bool several = takeIf(TokenKind::LeftParen);
  do {
    if (!parseType(stage.results.emplace_back()))
      return false;
  } while (several && takeIf(TokenKind::Comma));
  if (several && !expect(TokenKind::RightParen, "after the results of the stage"))
    return false;
  stage.resultsLocation = join(stage.resultsLocation, previous());
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
    std::string hint = suggest({"param", "let", "return"});
    // `h = ...`
    if (hint.empty() && is(TokenKind::Name) && token(1).is(TokenKind::Equals))
      hint = "; write let " + token().text + " = ...";
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
  if (!statement.value || statement.kind != Statement::Kind::Param || !isName("as"))
    return statement.value != nullptr;
  statement.asLocation = take().location;
  if (!is(TokenKind::String))
    return fail("the name of a tensor, \"...\", after 'as'");
  Token text = take();
  statement.external = Name{text.text, text.location};
  return true;
}

bool Parser::parseFields(std::vector<Field> &fields, int depth) {
  if (!expect(TokenKind::LeftBrace, "before the settings"))
    return false;
  while (!is(TokenKind::RightBrace)) {
    if (is(TokenKind::End) || atItem() || diagnostics.full())
      return fail("'}' at the end of the settings");
    Field field;
    if (parseField(field, depth)) {
      field.end = previous();
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
    // recover() drops a '{' with all that it opens.
    if (!is(TokenKind::LeftBrace))
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
  // A rate of a machine's device, by format, is the deepest there is.
  if (depth >= 2) {
    diagnostics.error(token().location, "settings nest more than 3 deep");
    return false;
  }
  field.isBlock = true;
  return parseFields(field.fields, depth + 1);
}

} // namespace

void parse(const Sources &sources, int32_t file, Program &program, Diagnostics &diagnostics) {
  Parser(sources, lex(sources, file, diagnostics), diagnostics).parseProgram(program);
}

ExprPtr parseValue(const Sources &sources, int32_t file, size_t begin, Diagnostics &diagnostics) {
  return ExprParser(sources, lex(sources, file, diagnostics, begin), diagnostics).parseLoneValue();
}

} // namespace boa::frontend
