//===- Settings.cpp - Reading of settings ---------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/Settings.h"

#include "frontend/Habits.h"
#include "frontend/Printer.h"

#include <algorithm>

namespace boa::frontend {

std::string listWords(const std::vector<std::string> &words, const char *last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " " + std::string(last) + " " : ", ") + words[i];
  return text;
}

/// A habit's spelling, which is surer than what looks alike, or that.
static std::string suggest(HabitKind kind, const std::string &name,
                           const std::vector<std::string> &candidates) {
  std::string habit = habitHint(kind, name);
  return habit.empty() ? didYouMean(name, candidates) : habit;
}

static std::vector<std::string> namesOf(const std::vector<const Setting *> &rows) {
  std::vector<std::string> names;
  for (const Setting *row : rows)
    names.push_back(row->name);
  return names;
}

/// How to say that there is to be none, where 0 was written.
static std::string insteadOfZero(const Setting &setting) {
  return setting.absent.empty()
             ? ""
             : "; leave " + setting.name + " out, or write none, for " + setting.absent;
}

SettingReader SettingReader::ofCall(const Expr &call, const std::string &of,
                                    const Constants &constants, CheckContext context) {
  SettingReader reader(settingsOf(of, call.name), constants, context);
  std::vector<std::string> names = namesOf(reader.rows);
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
                                 name + "'" + suggest(HabitKind::Setting, name, names));
      continue;
    }
    if (reader.find(name)) {
      reader.error(location, "'" + name + "' is given twice");
      continue;
    }
    reader.add(reader.row(name), argument.value.get());
  }
  reader.complete = context.diagnostics.count() == before;
  return reader;
}

SettingReader SettingReader::ofFields(const std::vector<Field> &fields, const std::string &of,
                                      const std::string &what, const Constants &constants,
                                      CheckContext context) {
  SettingReader reader(settingsOf(of), constants, context);
  std::vector<std::string> names = namesOf(reader.rows);
  std::vector<const Field *> seen;
  for (const Field &field : fields) {
    const Name &key = field.key;
    if (std::find(names.begin(), names.end(), key.text) == names.end()) {
      std::string near = suggest(HabitKind::Setting, key.text, names);
      reader.error(key.location,
                   what + " has no setting '" + key.text + "'" +
                       (near.empty() ? didYouMeanSetting(of + "." + key.text) : near));
      reader.complete = false;
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
    reader.add(reader.row(key.text), field.isBlock ? nullptr : field.value.get());
  }
  return reader;
}

const Setting &SettingReader::row(const std::string &name) const {
  return **std::find_if(rows.begin(), rows.end(),
                        [&](const Setting *row) { return row->name == name; });
}

void SettingReader::add(const Setting &setting, const Expr *value) {
  bool none = value && value->isName("none") && !setting.absent.empty();
  values.emplace_back(setting.name, none ? nullptr : value);
}

const Expr *SettingReader::find(const std::string &name) const {
  for (const auto &[key, value] : values)
    if (key == name)
      return value;
  return nullptr;
}

void SettingReader::requireAll(Location location, const std::string &where) const {
  for (const Setting *row : rows) {
    auto given = [&](const auto &value) { return value.first == row->name; };
    if (complete && row->isRequired() && std::none_of(values.begin(), values.end(), given))
      error(location, "expected the " +
                          std::string(row->calls.empty() ? "setting '" : "argument '") + row->name +
                          "' " + where);
  }
}

bool SettingReader::count(const std::string &name, int64_t &value) const {
  return count(name, rows.empty() ? 0 : row(name).most, value);
}

bool SettingReader::count(const std::string &name, int64_t most, int64_t &value) const {
  const Expr *expr = find(name);
  std::optional<int64_t> count;
  if (expr)
    count = evaluateCount(*expr, row(name).unit, constants, row(name).least, most, name,
                          context.diagnostics, insteadOfZero(row(name)));
  value = count.value_or(value);
  return count.has_value();
}

bool SettingReader::real(const std::string &name, double &value) const {
  const Expr *expr = find(name);
  return expr && realOf(*expr, name, value);
}

bool SettingReader::realOf(const Expr &expr, const std::string &name, double &value) const {
  const Setting &setting = row(name);
  double least = setting.realLeast, most = setting.realMost;
  auto number = evaluate(expr, constants, context.diagnostics);
  if (!number)
    return false;
  if ((setting.above ? number->real > least : number->real >= least) && number->real <= most) {
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
  error(expr.location, "expected " + name +
                           (setting.above ? " above " + print(least) + " and at most "
                                          : " between " + print(least) + " and ") +
                           print(most) + " but found " + printExpr(expr) +
                           (number->real <= least ? insteadOfZero(setting) : ""));
  return false;
}

bool SettingReader::flag(const std::string &name, bool &value) const {
  int at = value ? 0 : 1;
  bool given = word(name, at);
  value = at == 0;
  return given;
}

bool SettingReader::quantity(const std::string &name, int64_t &value) const {
  const Expr *expr = find(name);
  const SettingKind kind = row(name).kind;
  const Quantity what = kind == SettingKind::Speed     ? Quantity::Speed
                        : kind == SettingKind::Compute ? Quantity::Compute
                        : kind == SettingKind::Latency ? Quantity::Latency
                                                       : Quantity::Bytes;
  std::optional<int64_t> given;
  if (expr)
    given = evaluateQuantity(*expr, what, name, context.diagnostics, insteadOfZero(row(name)));
  value = given.value_or(value);
  return given.has_value();
}

bool SettingReader::placement(const std::string &name, Placement &value) const {
  const Expr *expr = find(name);
  if (!expr)
    return false;
  Placement placement;
  placement.parts.clear();
  double left = 1;
  auto add = [&](const Expr &tier, double share) {
    int at = findWord(tier, name);
    if (at >= 0)
      placement.parts.push_back({Tier(at), share});
    left -= share;
    return at >= 0;
  };
  if (expr->kind != Expr::Kind::Shares) {
    if (!add(*expr, 1))
      return false;
    value = std::move(placement);
    return true;
  }
  for (const Argument &part : expr->arguments) {
    const Expr &tier = *part.value;
    double share = left;
    if (!tier.operands.empty()) {
      share = tier.operands[0]->real / 100;
      if (!(share > 0 && share < left)) {
        error(tier.operands[0]->location,
              "expected a share above 0% that leaves something for the rest but found " +
                  printNumber(tier.operands[0]->real) + "% of " + printNumber(left * 100) + "%");
        return false;
      }
    }
    if (!add(tier, share))
      return false;
  }
  value = std::move(placement);
  return true;
}

int SettingReader::findWord(const Expr &expr, const std::string &name) const {
  const Setting &setting = row(name);
  bool named = expr.kind == Expr::Kind::Name || expr.kind == Expr::Kind::Call;
  std::vector<std::string> written;
  for (size_t i = 0; i < setting.words.size(); ++i) {
    const std::string &word = setting.words[i];
    written.push_back(describeWord(setting, word));
    if (!named || expr.name != word)
      continue;
    if (expr.kind != Expr::Kind::Call || !settingsOf(setting.path(), word).empty())
      return int(i);
    error(expr.location, "'" + expr.name + "' takes no arguments, but found " + printExpr(expr));
    return -1;
  }
  std::string hint;
  if (named || expr.kind == Expr::Kind::String)
    hint = suggest(HabitKind::Value, expr.name, setting.words);
  // "bf16" for bf16.
  if (expr.kind == Expr::Kind::String && hint.empty() &&
      std::find(setting.words.begin(), setting.words.end(), expr.name) != setting.words.end())
    hint = "; a word stands without quotes";
  error(expr.location, "expected " + name + " to be " + listWords(written) + " but found " +
                           printExpr(expr) + hint);
  return -1;
}

} // namespace boa::frontend
