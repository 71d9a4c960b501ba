//===- Settings.h - Reading of settings -------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What train blocks and machines share: a block of fields, or the arguments of
// a call such as adamw(...), read by name. Which there are and their ranges stand
// in the table (settingtable.h). Unknown and repeated names are errors when the
// reader is made; a field that is absent leaves its default.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_SETTINGS_H
#define BOA_FRONTEND_SETTINGS_H

#include "frontend/Checker.h"
#include "frontend/SettingTable.h"

#include <utility>

namespace boa::frontend {

class SettingReader {
public:
  /// The arguments of a call in the value of setting `of`. Without keywords they
  /// fill the rows of the table in order.
  static SettingReader ofCall(const Expr &call, const std::string &of, const Constants &constants,
                              CheckContext context);
  /// The fields of block `of` that are `key = value`; blocks are left out.
  static SettingReader ofFields(const std::vector<Field> &fields, const std::string &of,
                                const std::string &what, const Constants &constants,
                                CheckContext context);

  /// Null where it is absent, or `none`, which says the same.
  const Expr *find(const std::string &name) const;

  /// Reports what must be given and is not, unless some name was wrong.
  void requireAll(Location location, const std::string &where) const;

  /// Each sets `value` where the setting is given and right, and returns whether
  /// it did.
  bool count(const std::string &name, int64_t &value) const;
  /// One whose greatest value depends on others.
  bool count(const std::string &name, int64_t most, int64_t &value) const;
  bool real(const std::string &name, double &value) const;
  bool flag(const std::string &name, bool &value) const;
  /// Bytes, or a rate or a time by the kind of its row.
  bool quantity(const std::string &name, int64_t &value) const;
  /// The words of the table are the enumerators of T, in order.
  template <typename T> bool word(const std::string &name, T &value) const {
    const Expr *expr = find(name);
    int at = expr ? findWord(*expr, name) : -1;
    if (at >= 0)
      value = T(at);
    return at >= 0;
  }
  /// A tier, or shares of several.
  bool placement(const std::string &name, Placement &value) const;
  /// A value of setting `name`, which stands elsewhere.
  bool realOf(const Expr &expr, const std::string &name, double &value) const;

  /// Index of the word of setting `name` that an expression is, or of the call of
  /// one that takes arguments; -1 with an error.
  int findWord(const Expr &expr, const std::string &name) const;
  void error(Location location, std::string message) const {
    context.diagnostics.error(location, std::move(message));
  }

private:
  SettingReader(std::vector<const Setting *> rows, const Constants &constants, CheckContext context)
      : rows(std::move(rows)), constants(constants), context(context) {}
  const Setting &row(const std::string &name) const;
  void add(const Setting &setting, const Expr *value);

  std::vector<const Setting *> rows;
  const Constants &constants;
  CheckContext context;
  /// Null: given as `none`.
  std::vector<std::pair<std::string, const Expr *>> values;
  bool complete = true;
};

/// `a, b or c`.
std::string listWords(const std::vector<std::string> &words, const char *last = "or");

} // namespace boa::frontend

#endif // BOA_FRONTEND_SETTINGS_H
