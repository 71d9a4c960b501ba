//===- Settings.h - Reading of settings -------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks of fields, and the arguments of calls such as adamw(...), read into the structs of
// the table (runtime/abi/settings.h). Unknown and repeated names are errors when the reader
// is made; a member whose setting is absent keeps its default.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_SETTINGS_H
#define BOA_FRONTEND_SETTINGS_H

#include "frontend/Checker.h"
#include "frontend/SettingTable.h"

#include "runtime/abi/sources.h"

#include <map>
#include <utility>

namespace boa::frontend {

/// The values that were given and are right by themselves, by path: for rules between several
/// settings.
using GivenSettings = std::map<std::string, const Expr *, std::less<>>;
/// Null where it was not given.
const Expr *findGiven(const GivenSettings &given, std::string_view path);
/// The row of a path that there is.
const Setting &rowOf(std::string_view path);

class SettingReader {
public:
  /// The fields of the block at path `of`, whose name is `what` in messages.
  SettingReader(const std::vector<Field> &fields, const std::string &of, const std::string &what,
                const Constants &constants, CheckContext context, GivenSettings &given);

  /// Reports required settings that are absent, unless some name was wrong.
  void requireAll(Location location, const std::string &where) const;

  /// Reads the settings of this block, and those inside their values, into a struct.
  template <typename Settings> void read(Settings &settings) const {
    visit(settings);
    for (const auto &[row, expr] : values)
      if (expr && hasArguments(*row, *expr))
        readArguments(*row, *expr).read(settings);
  }

private:
  SettingReader(std::vector<const Setting *> rows, std::string of, const Constants &constants,
                CheckContext context, GivenSettings &given)
      : rows(std::move(rows)), of(std::move(of)), constants(constants), context(context),
        given(given) {}
  /// The arguments of a call in the value of a setting. Without keywords they fill the rows of
  /// the table in order.
  SettingReader readArguments(const Setting &setting, const Expr &call) const;
  void addArguments(const Expr &call);
  /// Whether the value is a call with arguments of its own; reports a word that is unknown.
  bool hasArguments(const Setting &setting, const Expr &expr) const;
  void add(const Setting &setting, const Expr *value);
  const Expr *find(std::string_view name) const;
  void error(Location location, std::string message) const {
    context.diagnostics.error(location, std::move(message));
  }

  template <typename Settings> void visit(Settings &settings) const {
    settings.Visit([&](const Setting &row, auto &member) { visitMember(row, member); });
  }
  template <typename Member> void visitMember(const Setting &row, Member &member) const {
    if constexpr (std::is_class_v<Member> && !std::is_same_v<Member, std::string> &&
                  !std::is_same_v<Member, Placement>) {
      if (row.kind == SettingKind::Section)
        visit(member);
    } else if (*row.path && row.of() == of) {
      const Expr *expr = find(row.name());
      const size_t errors = context.diagnostics.count();
      if (expr)
        readMember(row, *expr, member);
      if (context.diagnostics.count() > errors)
        given.erase(row.path);
    }
  }
  template <typename Settings> void visit(std::vector<Settings> &) const {}

  void readMember(const Setting &row, const Expr &expr, std::string &value) const;
  void readMember(const Setting &row, const Expr &expr, int64_t &value) const;
  void readMember(const Setting &row, const Expr &expr, double &value) const;
  void readMember(const Setting &row, const Expr &expr, bool &value) const;
  void readMember(const Setting &row, const Expr &expr, Placement &value) const;
  template <typename Enum>
  std::enable_if_t<std::is_enum_v<Enum>> readMember(const Setting &row, const Expr &expr,
                                                    Enum &value) const {
    // A rate may be a number: TrainChecker reads it.
    if (row.kind == SettingKind::Rate && isNumber(expr))
      return;
    const int at = findWord(row, expr);
    if (at >= 0)
      value = Enum(at);
  }
  static bool isNumber(const Expr &expr) {
    return expr.kind != Expr::Kind::Call || expr.name == "sqrt";
  }
  int findWord(const Setting &setting, const Expr &expr) const;

  // Paths and sources of data (DataChecker.cpp). Each is false after an error.
  bool readPath(const std::string &name, const Expr &expr, std::string &value) const;
  bool readSource(const Expr &call, DataSource &source) const;
  void readTokenizer(DataSource &source) const;
  void readTemplate(const Expr &form, DataSource &source) const;
  bool readFlag(const char *name, bool absent) const;
  bool readMix(const Expr &call, std::vector<DataSource> &sources) const;
  void readData(const Setting &row, const Expr &expr, std::string &value) const;

  friend class TrainChecker;
  std::vector<const Setting *> rows;
  std::string of;
  const Constants &constants;
  CheckContext context;
  GivenSettings &given;
  /// Null: given as `none`, or wrong.
  std::vector<std::pair<const Setting *, const Expr *>> values;
  bool complete = true;
};

/// Reads one number in the range of a setting; false with an error.
bool readReal(const Setting &row, const Expr &expr, const Constants &constants,
              CheckContext context, double &value);
/// Tiers and shares.
bool readPlacement(const Setting &row, const Expr &expr, CheckContext context, Placement &value);

/// `a, b or c`.
std::string listWords(const std::vector<std::string> &words, const char *last = "or");

} // namespace boa::frontend

#endif // BOA_FRONTEND_SETTINGS_H
