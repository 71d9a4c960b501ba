//===- Settings.cpp - Reading of settings ---------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/Settings.h"

#include "frontend/ForeignSpellings.h"
#include "frontend/Printer.h"
#include "runtime/abi/float32.h"

#include <algorithm>

namespace boa::frontend {

std::string listWords(const std::vector<std::string> &words, const char *last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " " + std::string(last) + " " : ", ") + words[i];
  return text;
}

/// A foreign spelling, which is surer than what looks alike, or that.
static std::string suggest(SpellingKind kind, const std::string &name,
                           const std::vector<std::string> &candidates) {
  std::string hint = spellingHint(kind, name);
  return hint.empty() ? didYouMean(name, candidates) : hint;
}

static std::vector<std::string> namesOf(const std::vector<const Setting *> &rows) {
  std::vector<std::string> names;
  for (const Setting *row : rows)
    names.emplace_back(row->name());
  return names;
}

using NamedField = std::pair<std::string, const Field *>;
/// The fields of a block by name: `compute.f32` of compute { f32 = ... }.
static std::vector<NamedField> nameFields(const std::vector<Field> &fields, const std::string &of) {
  std::vector<NamedField> named;
  for (const Field &field : fields)
    if (field.isBlock && !field.label && hasFormats(of + "." + field.key.text))
      for (const Field &inner : field.fields)
        named.emplace_back(field.key.text + "." + inner.key.text, &inner);
    else
      named.emplace_back(field.key.text, &field);
  return named;
}

/// The way to write that there is none, where 0 was written.
static std::string hintForZero(const Setting &setting) {
  return *setting.none
             ? "; leave " + std::string(setting.name()) + " out, or write none, for " + setting.none
             : "";
}

const Expr *findGiven(const GivenSettings &given, std::string_view path) {
  auto found = given.find(path);
  return found == given.end() ? nullptr : found->second;
}

const Setting &rowOf(std::string_view path) {
  for (const Setting &setting : WrittenSettings())
    if (setting.path == path)
      return setting;
  std::abort();
}

SettingReader::SettingReader(const std::vector<Field> &fields, const std::string &of,
                             const std::string &what, const Constants &constants,
                             CheckContext context, GivenSettings &given)
    : SettingReader(settingsOf(of), of, constants, context, given) {
  const std::vector<std::string> names = namesOf(rows);
  const std::vector<NamedField> named = nameFields(fields, of);
  for (const NamedField &each : named) {
    const std::string &name = each.first;
    const Field &field = *each.second;
    const Name &key = field.key;
    const auto row = std::find(names.begin(), names.end(), name);
    if (row == names.end() && hasFormats(of + "." + name)) {
      error(key.location, "expected '" + name + " { ... }'");
      continue;
    }
    // A block with a label has a reader of its own.
    if (row == names.end() && !settingsOf(of + "." + name).empty()) {
      if (!field.isBlock)
        error(key.location, "expected '" + name + " \"...\" { ... }'");
      continue;
    }
    if (row == names.end() && name != key.text) {
      const std::vector<std::string> formats = SplitWords(WordList(NumberFormat()));
      error(key.location, "expected a format, " + listWords(formats) + ", but found '" + key.text +
                              "'" + didYouMean(key.text, formats));
      complete = false;
      continue;
    }
    if (row == names.end()) {
      std::string near = suggest(SpellingKind::Setting, name, names);
      error(key.location, what + " has no setting '" + name + "'" +
                              (near.empty() ? didYouMeanSetting(of + "." + name) : near));
      complete = false;
      continue;
    }
    auto same = [&](const NamedField &other) { return other.first == name; };
    const Field &first = *std::find_if(named.begin(), named.end(), same)->second;
    if (&first != &field) {
      context.diagnostics.error(key.location, "'" + name + "' is set twice")
          .note(first.key.location, "first set here");
      continue;
    }
    const Setting &setting = *rows[size_t(row - names.begin())];
    // Only places may be a block, which TrainChecker reads.
    if (field.isBlock && setting.kind != SettingKind::Place)
      error(key.location, "expected '" + key.text + " = ...'");
    add(setting, field.isBlock ? nullptr : field.value.get());
  }
}

SettingReader SettingReader::readArguments(const Setting &setting, const Expr &call) const {
  SettingReader reader(settingsOf(setting.path, call.name), setting.path, constants, context,
                       given);
  reader.addArguments(call);
  reader.requireAll(call.location, "of " + call.name);
  return reader;
}

void SettingReader::addArguments(const Expr &call) {
  const std::vector<std::string> names = namesOf(rows);
  bool named = false;
  const size_t before = context.diagnostics.count();
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const Argument &argument = call.arguments[i];
    Location location = argument.keyword ? argument.keyword->location : argument.value->location;
    named |= argument.keyword.has_value();
    if (!argument.keyword && named) {
      error(location, "expected the name of an argument after one that has a name");
      continue;
    }
    if (!argument.keyword && i >= names.size()) {
      error(location,
            "expected at most " + std::to_string(names.size()) + " arguments of " + call.name);
      continue;
    }
    const std::string name = argument.keyword ? argument.keyword->text : names[i];
    const auto row = std::find(names.begin(), names.end(), name);
    if (row == names.end()) {
      std::string expected = names.empty() ? "no arguments" : listWords(names);
      error(location, "expected " + expected + " in " + call.name + "(...) but found '" + name +
                          "'" + suggest(SpellingKind::Setting, name, names));
      continue;
    }
    if (find(name)) {
      error(location, "'" + name + "' is given twice");
      continue;
    }
    add(*rows[size_t(row - names.begin())], argument.value.get());
  }
  complete = context.diagnostics.count() == before;
}

void SettingReader::add(const Setting &setting, const Expr *value) {
  if (value && value->isName("none") && *setting.none)
    value = nullptr;
  values.emplace_back(&setting, value);
  if (value)
    given[setting.path] = value;
}

const Expr *SettingReader::find(std::string_view name) const {
  for (const auto &[row, value] : values)
    if (row->name() == name)
      return value;
  return nullptr;
}

void SettingReader::requireAll(Location location, const std::string &where) const {
  for (const Setting *row : rows) {
    auto same = [&](const auto &value) { return value.first == row; };
    if (complete && row->isRequired && std::none_of(values.begin(), values.end(), same))
      error(location, "expected the " + std::string(*row->calls ? "argument '" : "setting '") +
                          std::string(row->name()) + "' " + where);
  }
}

bool SettingReader::hasArguments(const Setting &setting, const Expr &expr) const {
  const bool isWord = setting.kind == SettingKind::Word || setting.kind == SettingKind::Rate;
  if (!isWord || (setting.kind == SettingKind::Rate && isNumber(expr)))
    return false;
  // Of a form nobody else reads the word.
  if (!*setting.key && findWord(setting, expr) < 0)
    return false;
  if (!ListHasWord(setting.list, expr.name))
    return false;
  return expr.kind == Expr::Kind::Name || !settingsOf(setting.path, expr.name).empty();
}

void SettingReader::readMember(const Setting &row, const Expr &expr, std::string &value) const {
  if (row.kind == SettingKind::Data)
    readData(row, expr, value);
  else
    readPath(std::string(row.name()), expr, value);
}

void SettingReader::readMember(const Setting &row, const Expr &expr, int64_t &value) const {
  const std::string name(row.name());
  const std::string word = ListHasWord(row.list, "auto") ? "auto" : "";
  if (!word.empty() && expr.isName("auto")) {
    value = kAuto;
    return;
  }
  std::optional<int64_t> number;
  if (row.kind == SettingKind::Count) {
    const int64_t most = row.most > kMostSteps ? INT64_MAX : int64_t(row.most);
    number = evaluateCount(expr, row.units, constants, int64_t(row.least), most, name,
                           context.diagnostics, hintForZero(row));
  } else {
    const Quantity quantity = row.kind == SettingKind::Speed        ? Quantity::Speed
                              : row.kind == SettingKind::Operations ? Quantity::Compute
                              : row.kind == SettingKind::Time       ? Quantity::Latency
                              : row.kind == SettingKind::Power      ? Quantity::Power
                                                                    : Quantity::Bytes;
    number = evaluateQuantity(expr, quantity, name, context.diagnostics, hintForZero(row), word);
  }
  value = number.value_or(value);
}

void SettingReader::readMember(const Setting &row, const Expr &expr, double &value) const {
  readReal(row, expr, constants, context, value);
}

void SettingReader::readMember(const Setting &row, const Expr &expr, bool &value) const {
  const int at = findWord(row, expr);
  if (at >= 0)
    value = at == 0;
}

void SettingReader::readMember(const Setting &row, const Expr &expr, Placement &value) const {
  readPlacement(row, expr, context, value);
}

bool readReal(const Setting &row, const Expr &expr, const Constants &constants,
              CheckContext context, double &value) {
  auto number = evaluate(expr, constants, context.diagnostics);
  if (!number)
    return false;
  if (row.Contains(number->real)) {
    value = number->real;
    if (IsFloat32(value))
      return true;
    context.diagnostics.error(expr.location, "expected " + std::string(row.name()) +
                                                 " to fit f32: 0, or at least " + kLeastFloat32 +
                                                 " but found " + printExpr(expr));
    return false;
  }
  auto print = [](double limit) {
    Expr literal;
    literal.kind = limit == double(int64_t(limit)) ? Expr::Kind::Integer : Expr::Kind::Real;
    literal.integer = int64_t(limit);
    literal.real = limit;
    return printExpr(literal);
  };
  context.diagnostics.error(expr.location,
                            "expected " + std::string(row.name()) +
                                (row.excludesLeast ? " above " + print(row.least) + " and at most "
                                                   : " between " + print(row.least) + " and ") +
                                print(row.most) + " but found " + printExpr(expr) +
                                (number->real <= row.least ? hintForZero(row) : ""));
  return false;
}

static int findWordOf(const Setting &setting, const std::vector<std::string> &words,
                      const Expr &expr, CheckContext context);

bool readPlacement(const Setting &row, const Expr &expr, CheckContext context, Placement &value) {
  const std::vector<std::string> tiers = SplitWords(WordList(HomeTier()));
  Placement placement;
  placement.parts.clear();
  double left = 1;
  auto add = [&](const Expr &tier, double share, int64_t layers) {
    const int at = findWordOf(row, tiers, tier, context);
    if (at >= 0)
      placement.parts.push_back({HomeTier(at), share, layers});
    return at >= 0;
  };
  if (expr.kind != Expr::Kind::Shares) {
    if (!add(expr, 1, 0))
      return false;
    value = std::move(placement);
    return true;
  }
  for (const Argument &part : expr.arguments) {
    const Expr &tier = *part.value;
    double share = left;
    int64_t layers = 0;
    if (!tier.operands.empty() && !tier.operands[0]->unit.empty()) {
      const Expr &count = *tier.operands[0];
      layers = count.integer;
      if (count.kind == Expr::Kind::Real || layers < 1 || left < 1) {
        context.diagnostics.error(
            count.location,
            count.kind == Expr::Kind::Real
                ? "expected a whole number of layers but found " + printNumber(count.real)
            : layers < 1 ? "expected at least 1 layer but found 0"
                         : "expected numbers of layers before shares, which are of the layers "
                           "behind them");
        return false;
      }
    } else if (!tier.operands.empty()) {
      share = tier.operands[0]->real / 100;
      if (!(share > 0 && share < left)) {
        context.diagnostics.error(
            tier.operands[0]->location,
            "expected a share above 0% that leaves something for the rest but found " +
                printNumber(tier.operands[0]->real) + "% of " + printNumber(left * 100) + "%");
        return false;
      }
    }
    if (!add(tier, share, layers))
      return false;
    left -= layers ? 0 : share;
  }
  value = std::move(placement);
  return true;
}

/// Index of the word that an expression is, or of the call of one that takes arguments; -1 with
/// an error.
static int findWordOf(const Setting &setting, const std::vector<std::string> &words,
                      const Expr &expr, CheckContext context) {
  const bool named = expr.kind == Expr::Kind::Name || expr.kind == Expr::Kind::Call;
  std::vector<std::string> written;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string &word = words[i];
    written.push_back(describeWord(setting, word));
    if (!named || expr.name != word)
      continue;
    if (expr.kind != Expr::Kind::Call || !settingsOf(setting.path, word).empty())
      return int(i);
    context.diagnostics.error(expr.location, "'" + expr.name + "' takes no arguments, but found " +
                                                 printExpr(expr));
    return -1;
  }
  std::string hint;
  if (named || expr.kind == Expr::Kind::String)
    hint = suggest(SpellingKind::Value, expr.name, words);
  // "bf16" for bf16.
  if (expr.kind == Expr::Kind::String && hint.empty() &&
      std::find(words.begin(), words.end(), expr.name) != words.end())
    hint = "; a word stands without quotes";
  context.diagnostics.error(expr.location, "expected " + std::string(setting.name()) + " to be " +
                                               listWords(written) + " but found " +
                                               printExpr(expr) + hint);
  return -1;
}

int SettingReader::findWord(const Setting &setting, const Expr &expr) const {
  return findWordOf(setting, SplitWords(setting.list), expr, context);
}

} // namespace boa::frontend
