//===- settings.h - Reading of settings -----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What train blocks and machines share: a block of fields, or the arguments of
// a call such as adamw(...), read by name. Unknown and repeated names are errors
// when the reader is made; a field that is absent leaves its default.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_SETTINGS_H
#define BOA_FRONTEND_SETTINGS_H

#include "frontend/checker.h"

#include <utility>

namespace boa::frontend {

/// One word of a fixed set, with what it stands for.
template <typename T> using Words = std::vector<std::pair<const char *, T>>;

class SettingReader {
public:
  SettingReader(const Constants &constants, CheckContext context)
      : constants(constants), context(context) {}

  /// The arguments of a call. Without keywords they fill `names` in order.
  static SettingReader ofCall(const Expr &call, const std::vector<std::string> &names,
                              const Constants &constants, CheckContext context);
  /// The fields of a block that are `key = value`; blocks are left out.
  static SettingReader ofFields(const std::vector<Field> &fields,
                                const std::vector<std::string> &names, const std::string &what,
                                const Constants &constants, CheckContext context);

  const Expr *find(const std::string &name) const;

  /// Whether all names were known and given once.
  bool isComplete() const { return complete; }

  /// Each sets `value` where the setting is given and right, and returns whether
  /// it did.
  bool count(const std::string &name, const char *unit, int64_t least, int64_t most,
             int64_t &value) const;
  bool real(const std::string &name, double least, double most, double &value) const;
  bool flag(const std::string &name, bool &value) const;
  bool bytes(const std::string &name, bool perSecond, int64_t &value) const;
  template <typename T> bool word(const std::string &name, const Words<T> &words, T &value) const {
    const Expr *expr = find(name);
    int at = expr ? findWord(*expr, name, namesOf(words)) : -1;
    if (at >= 0)
      value = words[size_t(at)].second;
    return at >= 0;
  }

  /// Index of the name that an expression is, or of the call of one that takes
  /// arguments; -1 with an error.
  int findWord(const Expr &expr, const std::string &what,
               const std::vector<std::string> &words) const;
  void error(Location location, std::string message) const {
    context.diagnostics.error(location, std::move(message));
  }
  template <typename T> static std::vector<std::string> namesOf(const Words<T> &words) {
    std::vector<std::string> names;
    for (const auto &word : words)
      names.push_back(word.first);
    return names;
  }

private:
  const Constants &constants;
  CheckContext context;
  std::vector<std::pair<std::string, const Expr *>> values;
  bool complete = true;
};

/// Names of the arguments of a call in the value of `setting`, in order: of adamw
/// in optimizer, say. What `every` takes depends on the setting.
const std::vector<std::string> &argumentNames(std::string_view setting, std::string_view callee);

/// `a, b or c`.
std::string listWords(const std::vector<std::string> &words);

} // namespace boa::frontend

#endif // BOA_FRONTEND_SETTINGS_H
