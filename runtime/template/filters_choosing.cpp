//===- filters_choosing.cpp - Filters that ask a filter or a test for each item -===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/builtins.h"
#include "runtime/template/deeper.h"

namespace boa::jinja {
namespace {

/// The arguments from `begin` on.
Args From(Run &run, const Args &args, size_t begin) {
  run.Room(static_cast<int64_t>(args.positional.size()));
  Args out = args;
  out.positional.erase(out.positional.begin(),
                       out.positional.begin() + static_cast<std::ptrdiff_t>(begin));
  return out;
}

/// The argument `i`, which names a filter or a test.
std::string NameAt(Run &run, const Args &args, size_t i) {
  if (args.positional[i].is(Kind::text))
    return args.positional[i].text();
  run.Fail("a `", args.positional[i].type(), "` names no filter or test");
  return "";
}

/// map(attribute="a.b", default=x), or map("filter", its arguments)
Value MapItems(Run &run, const Value &value, const Given &given) {
  std::vector<Value> out;
  if (!run.Truth(value))
    return Walk(run, {});
  const Value *path = nullptr, *otherwise = nullptr;
  for (const auto &[name, argument] : given.args.named) {
    path = name == "attribute" ? &argument : path;
    otherwise = name == "default" && !argument.is(Kind::none) ? &argument : otherwise;
  }
  if (given.args.positional.empty()) {
    if (!path)
      return run.Fail("`map` needs the name of a filter, or `attribute=`");
    for (const Value &item : run.Items(value)) {
      if (run.failed())
        break;
      out.push_back(ByPath(run, item, *path, otherwise));
    }
    return Walk(run, std::move(out));
  }
  const std::string name = NameAt(run, given.args, 0);
  const Filter *filter = FindFilter(name);
  if (!filter)
    return run.Fail("no filter `", name, "`");
  const Args rest = From(run, given.args, 1);
  const Given arguments(run, filter->name, filter->parameters, rest);
  for (const Value &item : run.Items(value)) {
    const Deeper deeper(run); // map("map", "map", ...)
    if (!run.Step() || !run.Look(item) || !run.Look(rest))
      break;
    out.push_back(filter->call(run, item, arguments));
  }
  return Walk(run, std::move(out));
}

/// select("test", its arguments), selectattr("a.b", "test", its arguments). Without a test, what is
/// true is kept.
template <bool keeps, bool by_attribute>
Value Choose(Run &run, const Value &value, const Given &given) {
  const size_t first = by_attribute;
  if (!run.Truth(value))
    return Walk(run, {});
  if (given.args.positional.size() < first)
    return run.Fail("`", given.name(), "` needs the name of an attribute");
  const Test *test = nullptr;
  Args rest;
  if (given.args.positional.size() > first) {
    const std::string name = NameAt(run, given.args, first);
    test = FindTest(name);
    if (!test)
      return run.Fail("no test `", name, "`");
    rest = From(run, given.args, first + 1);
  }
  const Given arguments(run, test ? test->name : "", test ? test->parameters : "", rest);
  std::vector<Value> out;
  for (const Value &item : run.Items(value)) {
    const Deeper deeper(run);
    if (!run.Step() || !run.Look(item) || !run.Look(rest))
      break;
    const Value asked = by_attribute ? ByPath(run, item, given.args.positional[0]) : item;
    if ((test ? test->holds(run, asked, arguments) : run.Truth(asked)) == keeps)
      out.push_back(item);
  }
  return Walk(run, std::move(out));
}

} // namespace

std::vector<Filter> ChoosingFilters() {
  return {
      {{"map", "*", MapItems}},
      {{"reject", "*", Choose<false, false>}},
      {{"rejectattr", "*", Choose<false, true>}},
      {{"select", "*", Choose<true, false>}},
      {{"selectattr", "*", Choose<true, true>}},
  };
}

} // namespace boa::jinja
