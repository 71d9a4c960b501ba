//===- parser.cpp - Statements of a template ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/parser.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>

namespace boa::jinja {
namespace {

constexpr int kDeepestNesting = 100;
constexpr const char *kStatements[] = {"break",      "call", "continue", "filter", "for",
                                       "generation", "if",   "macro",    "set",    "with"};

} // namespace

Parser::Parser(Program &program, std::vector<Token> tokens)
    : program(program), tokens(std::move(tokens)) {
  for (const char *name : {"loop", "caller", "varargs", "kwargs"})
    Intern(name);
}

absl::Status Parser::Run() {
  program.body = ParseBody({});
  return status;
}

int Parser::Intern(const std::string &name) {
  const auto [it, is_new] = symbols.emplace(name, static_cast<int>(program.symbols.size()));
  if (is_new) {
    program.symbols.push_back(name);
    is_used.push_back(false);
  }
  return it->second;
}

void Parser::FailAt(int32_t at, absl::string_view message) {
  if (status.ok())
    status = program.source.Error(absl::StatusCode::kInvalidArgument, at, message);
  next = tokens.size() - 1;
}

std::string Parser::Found() const {
  const Token &token = Current();
  switch (token.kind) {
  case Token::Kind::data:
  case Token::Kind::end:
    return "the end of the template";
  case Token::Kind::block_begin:
    return "`{%`";
  case Token::Kind::block_end:
    return "`%}`";
  case Token::Kind::print_begin:
    return "`{{`";
  case Token::Kind::print_end:
    return "`}}`";
  case Token::Kind::literal:
    return token.value.is(Kind::text) ? "a string" : "a number";
  case Token::Kind::name:
  case Token::Kind::op:
    break;
  }
  return absl::StrCat("`", token.text, "`");
}

bool Parser::IsOp(absl::string_view op) const {
  return Current().kind == Token::Kind::op && Current().text == op;
}
bool Parser::IsName(absl::string_view name) const {
  return Current().kind == Token::Kind::name && Current().text == name;
}
bool Parser::SkipOp(absl::string_view op) { return IsOp(op) && ++next; }
bool Parser::SkipName(absl::string_view name) { return IsName(name) && ++next; }

void Parser::Expect(absl::string_view op) {
  if (!SkipOp(op))
    Fail(absl::StrCat("expected `", op, "`, found ", Found()));
}

void Parser::ExpectBlockEnd() {
  if (Current().kind == Token::Kind::block_end)
    ++next;
  else
    Fail(absl::StrCat("expected `%}`, found ", Found()));
}

std::string Parser::ExpectName(absl::string_view what) {
  if (Current().kind != Token::Kind::name) {
    Fail(absl::StrCat("expected ", what, ", found ", Found()));
    return "";
  }
  return tokens[next++].text;
}

/// Up to one of the tags that end it, which is left to the caller.
Body Parser::ParseBody(std::initializer_list<const char *> ends) {
  Body body;
  const auto add = [&](Statement what, int32_t at) -> Node & {
    body.push_back(std::make_unique<Node>());
    body.back()->what = what;
    body.back()->at = at;
    return *body.back();
  };
  if (++depth > kDeepestNesting)
    Fail(absl::StrCat("statements nested deeper than ", kDeepestNesting));
  while (status.ok()) {
    const Token &token = Current();
    if (token.kind == Token::Kind::data) {
      add(Statement::text, token.at).text = token.text;
      ++next;
    } else if (token.kind == Token::Kind::print_begin) {
      Node &node = add(Statement::print, token.at);
      ++next;
      node.values.push_back(ParseTuple(true));
      if (Current().kind != Token::Kind::print_end)
        Fail(absl::StrCat("expected `}}`, found ", Found()));
      ++next;
    } else if (token.kind == Token::Kind::block_begin) {
      ++next;
      if (std::any_of(ends.begin(), ends.end(), [&](const char *end) { return IsName(end); }))
        break;
      if (ends.size() > 0 && Current().kind == Token::Kind::name &&
          (absl::StartsWith(Current().text, "end") || IsName("else") || IsName("elif")))
        Fail(absl::StrCat("expected `", absl::StrJoin(ends, "`, `"), "` for line ",
                          program.source.LineOf(open.back()), ", found ", Found()));
      else if (auto node = ParseStatement())
        body.push_back(std::move(node));
    } else {
      if (ends.size() > 0)
        Fail(absl::StrCat("expected `{% ", *(ends.end() - 1), " %}` for line ",
                          program.source.LineOf(open.back()), ", found ", Found()));
      break;
    }
  }
  --depth;
  return body;
}

std::unique_ptr<Node> Parser::ParseStatement() {
  auto node = std::make_unique<Node>();
  node->at = Current().at;
  const std::string name = ExpectName("a statement");
  const auto body = [&](const char *end) {
    ExpectBlockEnd();
    node->bodies.push_back(ParseBody({end}));
    ++next;
  };
  if (!status.ok())
    return node;
  open.push_back(node->at);
  if (name == "for") {
    ParseFor(*node);
  } else if (name == "if") {
    ParseIf(*node);
  } else if (name == "set") {
    ParseSet(*node);
  } else if (name == "with") {
    ParseWith(*node);
  } else if (name == "macro") {
    ParseMacro(*node);
  } else if (name == "call") {
    ParseCallBlock(*node);
  } else if (name == "filter") {
    node->what = Statement::filter;
    node->values.push_back(ParseFilters(nullptr, /*starts_inline=*/true));
    body("endfilter");
  } else if (name == "generation") {
    node->what = Statement::generation;
    program.has_generation = true;
    const int outer = std::exchange(loops, 0);
    body("endgeneration");
    loops = outer;
  } else if (name == "break" || name == "continue") {
    node->what = name == "break" ? Statement::stop : Statement::next;
    if (loops == 0)
      FailAt(node->at, absl::StrCat("`", name, "` outside of a loop"));
  } else {
    FailAt(node->at,
           absl::StrCat("no statement `", name, "`; there are ", absl::StrJoin(kStatements, ", ")));
  }
  open.pop_back();
  ExpectBlockEnd();
  return node;
}

void Parser::ParseFor(Node &node) {
  node.what = Statement::loop;
  ++loops;
  node.targets.push_back(ParseTarget(/*with_attribute=*/false, /*with_tuple=*/true));
  if (!SkipName("in"))
    Fail(absl::StrCat("expected `in`, found ", Found()));
  node.values.push_back(ParseTuple(/*with_conditional=*/false));
  if (SkipName("if"))
    node.test = ParseExpression();
  if (IsName("recursive"))
    Fail("recursive loops are not done; a macro that calls itself does the same");
  ExpectBlockEnd();
  const char outer = std::exchange(is_used[kLoop], 0);
  node.bodies.push_back(ParseBody({"else", "endfor"}));
  --loops;
  node.uses_loop = is_used[kLoop];
  is_used[kLoop] = outer || node.uses_loop;
  if (SkipName("else")) {
    ExpectBlockEnd();
    node.bodies.push_back(ParseBody({"endfor"}));
  }
  SkipName("endfor");
}

void Parser::ParseIf(Node &node) {
  node.what = Statement::choice;
  ++choices;
  for (bool is_last = false; !is_last && status.ok();) {
    node.values.push_back(ParseTuple(/*with_conditional=*/false));
    ExpectBlockEnd();
    node.bodies.push_back(ParseBody({"elif", "else", "endif"}));
    if (SkipName("elif"))
      continue;
    is_last = true;
    if (SkipName("else")) {
      ExpectBlockEnd();
      node.bodies.push_back(ParseBody({"endif"}));
    }
    SkipName("endif");
  }
  --choices;
}

void Parser::ParseSet(Node &node) {
  node.what = Statement::set;
  node.targets.push_back(ParseTarget(/*with_attribute=*/true, /*with_tuple=*/true));
  if (SkipOp("=")) {
    node.values.push_back(ParseTuple(/*with_conditional=*/true));
    return;
  }
  node.what = Statement::set_block;
  if (Current().kind != Token::Kind::block_end && !IsOp("|"))
    Fail(absl::StrCat("expected `=`, found ", Found()));
  if (IsOp("|"))
    node.values.push_back(ParseFilters(nullptr, /*starts_inline=*/false));
  ExpectBlockEnd();
  node.bodies.push_back(ParseBody({"endset"}));
  SkipName("endset");
}

void Parser::ParseWith(Node &node) {
  node.what = Statement::with;
  while (status.ok() && Current().kind != Token::Kind::block_end) {
    if (!node.targets.empty())
      Expect(",");
    node.targets.push_back(ParseTarget(/*with_attribute=*/false, /*with_tuple=*/true));
    Expect("=");
    node.values.push_back(ParseExpression());
  }
  ExpectBlockEnd();
  node.bodies.push_back(ParseBody({"endwith"}));
  SkipName("endwith");
}

void Parser::ParseMacro(Node &node) {
  node.what = Statement::macro;
  node.targets.push_back(ParseTarget(/*with_attribute=*/false, /*with_tuple=*/false));
  if (!status.ok())
    return;
  node.signature.name = node.targets[0]->text;
  ParseSignature(node.signature);
  ParseMacroBody(node, "endmacro");
}

void Parser::ParseCallBlock(Node &node) {
  node.what = Statement::call;
  node.signature.name = "caller";
  if (IsOp("("))
    ParseSignature(node.signature);
  const int32_t at = Current().at;
  node.values.push_back(ParseExpression());
  if (status.ok() && node.values[0]->op != Op::call)
    FailAt(at, "expected the call of a macro");
  ParseMacroBody(node, "endcall");
}

void Parser::ParseSignature(Signature &signature) {
  Expect("(");
  while (status.ok() && !IsOp(")")) {
    if (!signature.parameters.empty())
      Expect(",");
    const ExprPtr target = ParseTarget(/*with_attribute=*/false, /*with_tuple=*/false);
    if (!target)
      return;
    signature.parameters.push_back(target->symbol);
    if (SkipOp("="))
      signature.defaults.push_back(ParseExpression());
    else if (!signature.defaults.empty())
      FailAt(target->at, absl::StrCat("the parameter `", target->text,
                                      "` needs a default, as the one before it has"));
  }
  Expect(")");
}

void Parser::ParseMacroBody(Node &node, const char *end) {
  ExpectBlockEnd();
  const int outer_loops = std::exchange(loops, 0);
  const std::vector<char> outer(is_used.begin(), is_used.begin() + kOwnSymbols);
  for (const Symbol own : {kCaller, kVarargs, kKwargs})
    is_used[own] = false;
  node.bodies.push_back(ParseBody({end}));
  SkipName(end);
  node.signature.has_caller = is_used[kCaller];
  node.signature.has_varargs = is_used[kVarargs];
  node.signature.has_kwargs = is_used[kKwargs];
  for (const Symbol own : {kCaller, kVarargs, kKwargs})
    is_used[own] = outer[own];
  loops = outer_loops;
}

ExprPtr Parser::ParseTarget(bool with_attribute, bool with_tuple) {
  const int32_t at = Current().at;
  std::vector<ExprPtr> parts;
  bool is_tuple = false;
  do {
    if (is_tuple && (IsName("in") || IsOp("=") || IsOp(")")))
      break;
    ExprPtr part;
    if (with_tuple && SkipOp("(")) {
      if (++depth > kDeepestNesting)
        Fail(absl::StrCat("nested deeper than ", kDeepestNesting));
      part = ParseTarget(/*with_attribute=*/false, with_tuple);
      --depth;
      Expect(")");
    } else {
      part = Make(Op::name, Current().at);
      part->text = ExpectName("the name of a variable");
      for (const char *own : {"true", "false", "none", "True", "False", "None"})
        if (part->text == own)
          FailAt(part->at, absl::StrCat("`", own, "` cannot be set"));
      if (part->text == "loop" && loops > 0)
        FailAt(part->at, "`loop` cannot be set within a loop");
      part->symbol = Intern(part->text);
      if (with_attribute && SkipOp(".")) {
        ExprPtr attribute = Make(Op::attribute, Current().at);
        attribute->value = Value(ExpectName("the name of an attribute"));
        attribute->parts.push_back(std::move(part));
        part = std::move(attribute);
      }
    }
    parts.push_back(std::move(part));
  } while (status.ok() && with_tuple && SkipOp(",") && (is_tuple = true));
  if (!is_tuple)
    return std::move(parts[0]);
  ExprPtr tuple = Make(Op::tuple, at);
  tuple->parts = std::move(parts);
  return tuple;
}

} // namespace boa::jinja
