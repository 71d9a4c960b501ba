//===- settings.cpp - Reading of settings ---------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/settings.h"

#include <algorithm>
#include <map>

namespace boa::frontend {

std::string listWords(const std::vector<std::string> &words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

const std::vector<std::string> &argumentNames(std::string_view setting, std::string_view callee) {
  static const std::map<std::string, std::vector<std::string>, std::less<>> names = {
      {"adamw", {"lr", "betas", "eps", "weight_decay"}},
      {"sgd", {"lr", "momentum"}},
      {"constant", {"peak", "warmup"}},
      {"linear", {"peak", "warmup", "floor"}},
      {"cosine", {"peak", "warmup", "floor"}},
      {"masked", {"probability", "token"}},
      {"every", {"steps", "batches"}},
      {"vertical", {"delay", "prefetch", "recompute"}},
      {"horizontal", {"delay", "prefetch", "recompute"}},
  };
  static const std::vector<std::string> none, commit = {"interval", "keep"};
  if (setting == "commit" && callee == "every")
    return commit;
  auto found = names.find(callee);
  return found == names.end() ? none : found->second;
}

SettingReader SettingReader::ofCall(const Expr &call, const std::vector<std::string> &names,
                                    const Constants &constants, CheckContext context) {
  SettingReader reader(constants, context);
  bool named = false;
  size_t before = context.diagnostics.count();
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const Argument &argument = call.arguments[i];
    Location location = argument.keyword ? argument.keyword->location : argument.value->location;
    named |= argument.keyword.has_value();
    if (!argument.keyword && named) {
      reader.error(location, "expected the name of an argument after one that has a name");
      continue;
    }
    if (!argument.keyword && i >= names.size()) {
      reader.error(location, "expected at most " + std::to_string(names.size()) + " arguments of " +
                                 call.name);
      continue;
    }
    std::string name = argument.keyword ? argument.keyword->text : names[i];
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      std::string expected = names.empty() ? "no arguments" : listWords(names);
      reader.error(location, "expected " + expected + " in " + call.name + "(...) but found '" +
                                 name + "'" + didYouMean(name, names));
      continue;
    }
    if (reader.find(name)) {
      reader.error(location, "'" + name + "' is given twice");
      continue;
    }
    reader.values.emplace_back(name, argument.value.get());
  }
  reader.complete = context.diagnostics.count() == before;
  return reader;
}

SettingReader SettingReader::ofFields(const std::vector<Field> &fields,
                                      const std::vector<std::string> &names,
                                      const std::string &what, const Constants &constants,
                                      CheckContext context) {
  SettingReader reader(constants, context);
  std::vector<const Field *> seen;
  for (const Field &field : fields) {
    const Name &key = field.key;
    if (std::find(names.begin(), names.end(), key.text) == names.end()) {
      reader.error(key.location,
                   what + " has no setting '" + key.text + "'" + didYouMean(key.text, names));
      continue;
    }
    auto same = [&](const Field *other) { return other->key.text == key.text; };
    auto first = std::find_if(seen.begin(), seen.end(), same);
    // Of blocks with a string there may be several: ssd "a" { } ssd "b" { }.
    if (first != seen.end() && !field.labelIsString) {
      context.diagnostics.error(key.location, "'" + key.text + "' is set twice")
          .note((*first)->key.location, "first set here");
      continue;
    }
    seen.push_back(&field);
    if (!field.isBlock)
      reader.values.emplace_back(key.text, field.value.get());
  }
  return reader;
}

const Expr *SettingReader::find(const std::string &name) const {
  for (const auto &[key, value] : values)
    if (key == name)
      return value;
  return nullptr;
}

bool SettingReader::count(const std::string &name, const char *unit, int64_t least, int64_t most,
                          int64_t &value) const {
  const Expr *expr = find(name);
  std::optional<int64_t> count;
  if (expr)
    count = evaluateCount(*expr, unit, constants, least, most, name, context.diagnostics);
  value = count.value_or(value);
  return count.has_value();
}

bool SettingReader::real(const std::string &name, double least, double most, double &value) const {
  const Expr *expr = find(name);
  if (!expr)
    return false;
  auto number = evaluate(*expr, constants, context.diagnostics);
  if (!number)
    return false;
  if (number->real >= least && number->real <= most) {
    value = number->real;
    return true;
  }
  auto print = [](double limit) {
    Expr literal;
    literal.kind = limit == double(int64_t(limit)) ? Expr::Kind::Integer : Expr::Kind::Real;
    literal.integer = int64_t(limit);
    literal.real = limit;
    return printExpr(literal);
  };
  error(expr->location, "expected " + name + " between " + print(least) + " and " + print(most) +
                            " but found " + printExpr(*expr));
  return false;
}

bool SettingReader::flag(const std::string &name, bool &value) const {
  return word(name, Words<bool>{{"true", true}, {"false", false}}, value);
}

bool SettingReader::bytes(const std::string &name, bool perSecond, int64_t &value) const {
  const Expr *expr = find(name);
  std::optional<int64_t> size;
  if (expr)
    size = evaluateBytes(*expr, perSecond, name, context.diagnostics);
  value = size.value_or(value);
  return size.has_value();
}

int SettingReader::findWord(const Expr &expr, const std::string &what,
                            const std::vector<std::string> &words) const {
  bool named = expr.kind == Expr::Kind::Name || expr.kind == Expr::Kind::Call;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!named || expr.name != words[i])
      continue;
    if (expr.kind != Expr::Kind::Call || !argumentNames(what, expr.name).empty())
      return int(i);
    error(expr.location, "'" + expr.name + "' takes no arguments, but found " + printExpr(expr));
    return -1;
  }
  error(expr.location, "expected " + what + " to be " + listWords(words) +
                           (words.size() == 1 ? "(...)" : "") + " but found " + printExpr(expr) +
                           (named ? didYouMean(expr.name, words) : ""));
  return -1;
}

} // namespace boa::frontend
