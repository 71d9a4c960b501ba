//===- builtins.h - Filters, tests, methods and functions ----- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tables of rows. `parameters` names the arguments behind the value itself, in their order; a `!`
// behind a name: it must be given. "*": the function takes any arguments.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TEMPLATE_BUILTINS_H
#define BOA_RUNTIME_TEMPLATE_BUILTINS_H

#include "runtime/template/run.h"

#include "absl/strings/string_view.h"

#include <optional>
#include <string>
#include <vector>

namespace boa::jinja {

/// The arguments of one call, by the positions of the parameters.
class Given {
public:
  /// Fails if they do not fit. The names end at spaces.
  Given(Run &run, absl::string_view function, absl::string_view parameters, const Args &args);
  bool Has(size_t i) const { return i < slots.size() && slots[i]; }
  /// Also that it is not none.
  bool HasSome(size_t i) const { return Has(i) && !slots[i]->is(Kind::none); }
  const Value &Get(size_t i) const { return *slots[i]; }
  int64_t Integer(size_t i, int64_t otherwise) const;
  bool Bool(size_t i, bool otherwise) const;
  /// The argument's text. Anything else than a text is a failure.
  std::string String(size_t i, absl::string_view otherwise = "") const;
  absl::string_view name() const { return function; }
  const Args &args; // of a function that takes any

private:
  Run &run;
  absl::string_view function;
  std::vector<const Value *> slots;
};

struct Function {
  const char *name, *parameters;
  Value (*call)(Run &run, const Value &self, const Given &given);
};
struct Filter : Function {};
struct Test {
  const char *name, *parameters;
  bool (*holds)(Run &run, const Value &value, const Given &given);
};

const Filter *FindFilter(absl::string_view name);
const Test *FindTest(absl::string_view name);
std::vector<std::string> FilterNames();
std::vector<std::string> TestNames();
/// Of Python's types. `refused`: the type has it, but it would change the value.
const Function *FindMethod(const Value &value, absl::string_view name, bool &refused);
const std::vector<Function> &GlobalFunctions();

/// The parts of the tables.
std::vector<Filter> TextFilters();
std::vector<Filter> NumberFilters();
std::vector<Filter> ListFilters();
std::vector<Filter> ChoosingFilters();
const std::vector<Function> &TextMethods();

/// A value by a path: "a.b.0"; none: the item itself. Missing parts become `otherwise`.
Value ByPath(Run &run, const Value &item, const Value &path, const Value *otherwise = nullptr);
/// Lower case, for texts: what filters compare.
Value IgnoreCase(Run &run, const Value &value);
/// str.replace. A negative `most`: all.
Value ReplaceText(Run &run, absl::string_view text, absl::string_view old, absl::string_view with,
                  int64_t most, bool is_safe);
/// str.strip, of these sides, of white space or the characters of the first argument.
Value StripText(Run &run, const Value &text, const Given &given, int sides);
/// So many parts of a text suffice: the steps do not for more.
int64_t MostParts(Run &run);
/// An iterator over the items.
Value Walk(Run &run, std::vector<Value> items);

} // namespace boa::jinja

#endif // BOA_RUNTIME_TEMPLATE_BUILTINS_H
