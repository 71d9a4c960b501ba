//===- tests.cpp - What may stand behind `is` -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/objects.h"
#include "runtime/template/text.h"

namespace boa::jinja {
namespace {

/// value % divisor == wanted
bool Remainder(Run &run, const Value &value, const Value &divisor, int64_t wanted) {
  return run.Equal(run.Binary("%", value, divisor), Value(wanted)) && !run.failed();
}

template <bool (*holds)(absl::string_view)>
bool HasCase(Run &run, const Value &value, const Given &) {
  const std::string text = run.Str(value);
  return run.Charge(text.size(), Run::kChanged) && holds(text);
}

const std::vector<Test> &Tests() {
  using V = const Value &;
  using G = const Given &;
  static const auto equal = [](Run &run, V value, G given) {
    return run.Equal(value, given.Get(0));
  };
  static const auto unequal = [](Run &run, V value, G given) {
    return !run.Equal(value, given.Get(0));
  };
  static const auto less = [](Run &run, V value, G given) { return run.Less(value, given.Get(0)); };
  static const auto greater = [](Run &run, V value, G given) {
    return run.Less(given.Get(0), value);
  };
  static const auto at_most = [](Run &run, V value, G given) {
    return run.Less(value, given.Get(0), true);
  };
  static const auto at_least = [](Run &run, V value, G given) {
    return run.Less(given.Get(0), value, true);
  };
  static const std::vector<Test> tests = {
      {"!=", "other!", unequal},
      {"<", "other!", less},
      {"<=", "other!", at_most},
      {"==", "other!", equal},
      {">", "other!", greater},
      {">=", "other!", at_least},
      {"boolean", "", [](Run &, V value, G) { return value.is(Kind::boolean); }},
      {"callable", "",
       [](Run &, V value, G) {
         const auto *cycler = value.As<Cycler>();
         return value.is(Kind::undefined) || value.As<Macro>() || value.As<Callable>() ||
                value.As<Loop>() || (cycler && cycler->is_joiner);
       }},
      {"defined", "", [](Run &, V value, G) { return !value.is(Kind::undefined); }},
      {"divisibleby", "num!",
       [](Run &run, V value, G given) { return Remainder(run, value, given.Get(0), 0); }},
      {"eq", "other!", equal},
      {"equalto", "other!", equal},
      {"escaped", "", [](Run &, V value, G) { return value.is_safe(); }},
      {"even", "",
       [](Run &run, V value, G) { return Remainder(run, value, Value(int64_t{2}), 0); }},
      {"false", "", [](Run &, V value, G) { return value.is(Kind::boolean) && !value.boolean(); }},
      {"filter", "",
       [](Run &, V value, G) { return value.is(Kind::text) && FindFilter(value.text()); }},
      {"float", "", [](Run &, V value, G) { return value.is(Kind::real); }},
      {"ge", "other!", at_least},
      {"greaterthan", "other!", greater},
      {"gt", "other!", greater},
      {"in", "seq!", [](Run &run, V value, G given) { return run.Contains(given.Get(0), value); }},
      {"integer", "", [](Run &, V value, G) { return value.is(Kind::integer); }},
      {"iterable", "", [](Run &run, V value, G) { return run.IsIterable(value); }},
      {"le", "other!", at_most},
      {"lessthan", "other!", less},
      {"lower", "", HasCase<IsLower>},
      {"lt", "other!", less},
      {"mapping", "", [](Run &, V value, G) { return value.is(Kind::dict); }},
      {"ne", "other!", unequal},
      {"none", "", [](Run &, V value, G) { return value.is(Kind::none); }},
      {"number", "", [](Run &, V value, G) { return value.is_number(); }},
      {"odd", "", [](Run &run, V value, G) { return Remainder(run, value, Value(int64_t{2}), 1); }},
      {"sameas", "other!", [](Run &, V value, G given) { return value.IsSame(given.Get(0)); }},
      {"sequence", "",
       [](Run &, V value, G) {
         return value.is(Kind::undefined) || value.is(Kind::text) || value.is(Kind::dict) ||
                (value.is(Kind::list) && value.list().shape <= List::Shape::range);
       }},
      {"string", "", [](Run &, V value, G) { return value.is(Kind::text); }},
      {"test", "",
       [](Run &, V value, G) { return value.is(Kind::text) && FindTest(value.text()); }},
      {"true", "", [](Run &, V value, G) { return value.is(Kind::boolean) && value.boolean(); }},
      {"undefined", "", [](Run &, V value, G) { return value.is(Kind::undefined); }},
      {"upper", "", HasCase<IsUpper>},
  };
  return tests;
}

} // namespace

const Test *FindTest(absl::string_view name) {
  for (const Test &test : Tests())
    if (name == test.name)
      return &test;
  return nullptr;
}

std::vector<std::string> TestNames() {
  std::vector<std::string> names;
  for (const Test &test : Tests())
    names.emplace_back(test.name);
  return names;
}

} // namespace boa::jinja
