//===- parser_expressions.cpp - Expressions of a template -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/builtins.h"
#include "runtime/template/parser.h"

#include "runtime/support/nearest.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>

namespace boa::jinja {
namespace {

constexpr int kDeepestExpression = 200;

/// Counts an expression that is open while it lives.
class Nested {
public:
  explicit Nested(int &depth) : depth(depth) { ++depth; }
  ~Nested() { --depth; }

private:
  int &depth;
};

std::string NoSuch(absl::string_view kind, const std::string &name,
                   const std::vector<std::string> &names) {
  const std::string nearest = NearestWord(name, names);
  return absl::StrCat("no ", kind, " `", name, "`",
                      nearest.empty() ? "" : absl::StrCat("; did you mean `", nearest, "`?"));
}

} // namespace

ExprPtr Parser::Make(Op op, int32_t at) const {
  auto expr = std::make_unique<Expr>();
  expr->op = op;
  expr->at = at;
  return expr;
}

ExprPtr Parser::Finish(ExprPtr expr) {
  const auto add = [&](const ExprPtr &part) {
    if (part)
      expr->depth = std::max(expr->depth, part->depth + 1);
  };
  for (const ExprPtr &part : expr->parts)
    add(part);
  for (const ExprPtr &part : expr->args.positional)
    add(part);
  for (const auto &[name, part] : expr->args.named)
    add(part);
  add(expr->args.more);
  add(expr->args.more_named);
  if (expr->depth > kDeepestExpression)
    FailAt(expr->at, absl::StrCat("an expression nested deeper than ", kDeepestExpression));
  return expr;
}

bool Parser::IsTupleEnd() const {
  return Current().kind == Token::Kind::block_end || Current().kind == Token::Kind::print_end ||
         Current().kind == Token::Kind::end || IsOp(")") || IsName("recursive");
}

ExprPtr Parser::ParseTuple(bool with_conditional, bool in_parentheses) {
  const int32_t at = Current().at;
  std::vector<ExprPtr> parts;
  bool is_tuple = false;
  while (status.ok()) {
    if (!parts.empty())
      Expect(",");
    if (IsTupleEnd())
      break;
    parts.push_back(with_conditional ? ParseExpression() : ParseOr());
    if (!IsOp(","))
      break;
    is_tuple = true;
  }
  if (!is_tuple && !parts.empty())
    return std::move(parts[0]);
  if (!is_tuple && !in_parentheses)
    Fail(absl::StrCat("expected an expression, found ", Found()));
  ExprPtr tuple = Make(Op::tuple, at);
  tuple->parts = std::move(parts);
  return Finish(std::move(tuple));
}

ExprPtr Parser::ParseExpression() {
  const Nested nested(depth);
  if (depth > kDeepestExpression)
    Fail(absl::StrCat("an expression nested deeper than ", kDeepestExpression));
  ExprPtr value = ParseOr();
  while (status.ok() && IsName("if")) {
    ExprPtr conditional = Make(Op::conditional, Current().at);
    ++next;
    conditional->parts.push_back(ParseOr());
    conditional->parts.push_back(std::move(value));
    conditional->parts.push_back(SkipName("else") ? ParseExpression() : nullptr);
    value = Finish(std::move(conditional));
  }
  return value;
}

ExprPtr Parser::ParseOr() {
  ExprPtr left = ParseAnd();
  while (status.ok() && IsName("or")) {
    ExprPtr expr = Make(Op::logical_or, Current().at);
    ++next;
    expr->parts.push_back(std::move(left));
    expr->parts.push_back(ParseAnd());
    left = Finish(std::move(expr));
  }
  return left;
}

ExprPtr Parser::ParseAnd() {
  ExprPtr left = ParseNot();
  while (status.ok() && IsName("and")) {
    ExprPtr expr = Make(Op::logical_and, Current().at);
    ++next;
    expr->parts.push_back(std::move(left));
    expr->parts.push_back(ParseNot());
    left = Finish(std::move(expr));
  }
  return left;
}

ExprPtr Parser::ParseNot() {
  if (!IsName("not"))
    return ParseCompare();
  const Nested nested(depth);
  if (depth > kDeepestExpression)
    Fail(absl::StrCat("an expression nested deeper than ", kDeepestExpression));
  ExprPtr expr = Make(Op::logical_not, Current().at);
  SkipName("not");
  expr->parts.push_back(ParseNot());
  return Finish(std::move(expr));
}

ExprPtr Parser::ParseCompare() {
  ExprPtr first = ParseBinary(0);
  ExprPtr expr;
  while (status.ok()) {
    std::string op;
    const int32_t at = Current().at;
    for (const char *known : {"==", "!=", "<", "<=", ">", ">="})
      if (IsOp(known))
        op = known;
    if (IsName("in"))
      op = "in";
    if (IsName("not") && tokens[next + 1].kind == Token::Kind::name &&
        tokens[next + 1].text == "in") {
      op = "not in";
      ++next;
    }
    if (op.empty())
      break;
    ++next;
    if (!expr) {
      expr = Make(Op::compare, at);
      expr->parts.push_back(std::move(first));
    }
    expr->operators.push_back(op);
    expr->parts.push_back(ParseBinary(0));
  }
  return expr ? Finish(std::move(expr)) : std::move(first);
}

ExprPtr Parser::ParseBinary(int level) {
  if (level == 4)
    return ParseUnary(/*with_filter=*/true);
  static const std::vector<const char *> operators[] = {
      {"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}};
  const auto is_operator = [&] {
    return std::any_of(operators[level].begin(), operators[level].end(),
                       [&](const char *op) { return IsOp(op); });
  };
  ExprPtr left = ParseBinary(level + 1);
  while (status.ok() && is_operator()) {
    const bool is_concat = level == 1;
    ExprPtr expr = Make(is_concat ? Op::concat : Op::binary, Current().at);
    expr->text = Current().text;
    expr->parts.push_back(std::move(left));
    do {
      ++next;
      expr->parts.push_back(ParseBinary(level + 1));
    } while (status.ok() && is_concat && is_operator());
    left = Finish(std::move(expr));
  }
  return left;
}

ExprPtr Parser::ParseUnary(bool with_filter) {
  ExprPtr expr;
  if (IsOp("-") || IsOp("+")) {
    const Nested nested(depth);
    if (depth > kDeepestExpression)
      Fail(absl::StrCat("an expression nested deeper than ", kDeepestExpression));
    expr = Make(IsOp("-") ? Op::negative : Op::positive, Current().at);
    if (status.ok())
      ++next;
    expr->parts.push_back(ParseUnary(/*with_filter=*/false));
    expr = Finish(std::move(expr));
  } else {
    expr = ParsePrimary();
  }
  expr = ParsePostfix(std::move(expr));
  return with_filter ? ParseFilters(std::move(expr), /*starts_inline=*/false) : std::move(expr);
}

ExprPtr Parser::ParsePrimary() {
  const Token &token = Current();
  ExprPtr expr = Make(Op::literal, token.at);
  if (token.kind == Token::Kind::name) {
    ++next;
    const absl::string_view name = token.text;
    if (name == "true" || name == "True" || name == "false" || name == "False") {
      expr->value = Value(name[0] == 't' || name[0] == 'T');
    } else if (name == "none" || name == "None") {
      expr->value = Value(None());
    } else {
      expr->op = Op::name;
      expr->text = token.text;
      expr->symbol = Intern(expr->text);
      is_used[static_cast<size_t>(expr->symbol)] = true;
    }
  } else if (token.kind == Token::Kind::literal) {
    ++next;
    expr->value = token.value;
    if (token.value.is(Kind::text) && Current().kind == Token::Kind::literal &&
        Current().value.is(Kind::text)) {
      std::string joined = token.value.text();
      for (; Current().kind == Token::Kind::literal && Current().value.is(Kind::text); ++next)
        joined += Current().value.text();
      expr->value = Value(std::move(joined));
    }
  } else if (IsOp("(")) {
    ++next;
    expr = ParseTuple(/*with_conditional=*/true, /*in_parentheses=*/true);
    Expect(")");
  } else if (IsOp("[") || IsOp("{")) {
    expr = ParseListOrDict(IsOp("{"));
  } else {
    Fail(absl::StrCat("expected an expression, found ", Found()));
  }
  return expr;
}

ExprPtr Parser::ParseListOrDict(bool is_dict) {
  const char *end = is_dict ? "}" : "]";
  ExprPtr expr = Make(is_dict ? Op::dict : Op::list, Current().at);
  ++next;
  while (status.ok() && !IsOp(end)) {
    if (!expr->parts.empty())
      Expect(",");
    if (IsOp(end))
      break;
    expr->parts.push_back(ParseExpression());
    if (is_dict) {
      Expect(":");
      expr->parts.push_back(ParseExpression());
    }
  }
  Expect(end);
  return Finish(std::move(expr));
}

ExprPtr Parser::ParsePostfix(ExprPtr of) {
  while (status.ok()) {
    if (IsOp(".") || IsOp("[")) {
      of = ParseSubscript(std::move(of));
    } else if (IsOp("(")) {
      ExprPtr call = Make(Op::call, Current().at);
      call->parts.push_back(std::move(of));
      call->args = ParseArgs();
      of = Finish(std::move(call));
    } else {
      break;
    }
  }
  return of;
}

ExprPtr Parser::ParseSubscript(ExprPtr of) {
  ExprPtr expr = Make(Op::item, Current().at);
  expr->parts.push_back(std::move(of));
  if (SkipOp(".")) {
    const Token &token = Current();
    if (token.kind == Token::Kind::name) {
      expr->op = Op::attribute;
      expr->value = Value(token.text);
      ++next;
    } else if (token.kind == Token::Kind::literal && token.value.is(Kind::integer)) {
      expr->parts.push_back(Make(Op::literal, token.at));
      expr->parts.back()->value = token.value;
      ++next;
    } else {
      Fail(absl::StrCat("expected the name of an attribute, found ", Found()));
    }
    return Finish(std::move(expr));
  }
  Expect("[");
  ExprPtr first = IsOp(":") ? nullptr : ParseExpression();
  if (SkipOp(":")) {
    expr->op = Op::slice;
    expr->parts.push_back(std::move(first));
    expr->parts.push_back(IsOp(":") || IsOp("]") ? nullptr : ParseExpression());
    expr->parts.push_back(SkipOp(":") && !IsOp("]") ? ParseExpression() : nullptr);
  } else {
    expr->parts.push_back(std::move(first));
  }
  Expect("]");
  return Finish(std::move(expr));
}

CallArgs Parser::ParseArgs() {
  CallArgs args;
  const int32_t at = Current().at;
  bool in_order = true;
  Expect("(");
  for (bool is_first = true; status.ok() && !IsOp(")"); is_first = false) {
    if (!is_first)
      Expect(",");
    if (IsOp(")"))
      break;
    if (SkipOp("*")) {
      in_order &= !args.more && !args.more_named;
      args.more = ParseExpression();
    } else if (SkipOp("**")) {
      in_order &= !args.more_named;
      args.more_named = ParseExpression();
    } else if (Current().kind == Token::Kind::name && tokens[next + 1].kind == Token::Kind::op &&
               tokens[next + 1].text == "=") {
      in_order &= !args.more_named;
      const std::string name = Current().text;
      next += 2;
      args.named.emplace_back(name, ParseExpression());
    } else {
      in_order &= !args.more && !args.more_named && args.named.empty();
      args.positional.push_back(ParseExpression());
    }
  }
  Expect(")");
  if (!in_order)
    FailAt(at, "arguments with a name stand behind those without one");
  return args;
}

ExprPtr Parser::ParseFilters(ExprPtr of, bool starts_inline) {
  const bool is_block = !of;
  while (status.ok()) {
    if (starts_inline || IsOp("|")) {
      if (!starts_inline)
        ++next;
      starts_inline = false;
      ExprPtr expr = Make(Op::filter, Current().at);
      expr->text = ExpectName("the name of a filter");
      expr->filter = FindFilter(expr->text);
      // A branch may look first: {% if 'from_json' is filter %}
      if (status.ok() && !expr->filter && choices == 0)
        FailAt(expr->at, NoSuch("filter", expr->text, FilterNames()));
      expr->parts.push_back(std::move(of));
      if (IsOp("("))
        expr->args = ParseArgs();
      of = Finish(std::move(expr));
    } else if (!is_block && IsName("is")) {
      of = ParseTest(std::move(of));
    } else if (!is_block && IsOp("(")) {
      of = ParsePostfix(std::move(of));
    } else {
      break;
    }
  }
  return of;
}

ExprPtr Parser::ParseTest(ExprPtr of) {
  const int32_t at = Current().at;
  ++next;
  const bool is_negated = SkipName("not");
  ExprPtr expr = Make(Op::test, Current().at);
  expr->text = ExpectName("the name of a test");
  expr->test = FindTest(expr->text);
  if (status.ok() && !expr->test && choices == 0)
    FailAt(expr->at, NoSuch("test", expr->text, TestNames()));
  expr->parts.push_back(std::move(of));
  if (IsOp("(")) {
    expr->args = ParseArgs();
  } else if ((Current().kind == Token::Kind::name && !IsName("else") && !IsName("or") &&
              !IsName("and")) ||
             Current().kind == Token::Kind::literal || IsOp("[") || IsOp("{")) {
    if (IsName("is"))
      Fail("a test of a test; put the first into parentheses");
    expr->args.positional.push_back(ParsePostfix(ParsePrimary()));
  }
  expr = Finish(std::move(expr));
  if (!is_negated)
    return expr;
  ExprPtr negated = Make(Op::logical_not, at);
  negated->parts.push_back(std::move(expr));
  return Finish(std::move(negated));
}

} // namespace boa::jinja
