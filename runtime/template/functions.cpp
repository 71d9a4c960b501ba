//===- functions.cpp - Functions, and methods of what is no string --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/objects.h"

#include "absl/strings/match.h"

#include <algorithm>

namespace boa::jinja {
namespace {

using Shape = List::Shape;

Value Range(Run &run, const Value &, const Given &given) {
  constexpr int64_t kMost = 100'000; // as jinja2's sandbox has it
  const bool has_begin = given.Has(1);
  const int64_t begin = has_begin ? given.Integer(0, 0) : 0;
  const int64_t end = given.Integer(has_begin ? 1 : 0, 0), step = given.Integer(2, 1);
  if (step == 0)
    return run.Fail("the step of a range is 0");
  std::vector<Value> items;
  for (int64_t i = begin; (step > 0 ? i < end : i > end) && !run.failed();) {
    if (items.size() >= kMost)
      return run.Fail("a range of more than ", kMost, " numbers");
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i))
      break;
  }
  return run.failed() ? Value() : run.MakeList(std::move(items), Shape::range);
}

/// dict(mapping or pairs, name=value...), and the same for a namespace.
std::vector<std::pair<Value, Value>> Entries(Run &run, const Given &given) {
  std::vector<std::pair<Value, Value>> entries;
  if (given.args.positional.size() > 1)
    run.Fail("`", given.name(), "` takes one mapping, and arguments with a name");
  if (!given.args.positional.empty()) {
    const Value &from = given.args.positional[0];
    if (from.is(Kind::dict)) {
      entries = from.dict().entries;
    } else {
      for (const Value &item : run.Items(from)) {
        const std::vector<Value> pair = run.Items(item);
        if (pair.size() != 2)
          run.Fail("`", given.name(), "` expects pairs, found ", pair.size(), " values");
        if (run.failed())
          break;
        run.Insert(entries, pair[0], pair[1]);
      }
    }
  }
  for (const auto &[name, value] : given.args.named)
    run.Insert(entries, Value(name), value);
  return entries;
}

Value MakeNamespace(Run &run, const Value &, const Given &given) {
  auto space = std::make_shared<Namespace>();
  space->attributes = Entries(run, given);
  for (const auto &[name, value] : space->attributes)
    if (!name.is(Kind::text))
      return run.Fail("an attribute whose name is a `", name.type(), "`");
  return run.Keep(std::move(space));
}

Value MakeCycler(Run &run, const Value &, const Given &given) {
  if (given.args.positional.empty())
    return run.Fail("`cycler` needs items");
  auto cycler = std::make_shared<Cycler>();
  cycler->items = given.args.positional;
  return run.Own(cycler, cycler->items);
}

Value MakeJoiner(Run &run, const Value &, const Given &given) {
  auto joiner = std::make_shared<Cycler>();
  joiner->is_joiner = true;
  joiner->items = {given.Has(0) ? given.Get(0) : Value(", ")};
  return run.Own(joiner, joiner->items);
}

Value RaiseException(Run &run, const Value &, const Given &given) {
  return run.FailAs(absl::StatusCode::kFailedPrecondition,
                    absl::StrCat("the template refuses this: ", run.Str(given.Get(0))));
}

Value RefuseLipsum(Run &run, const Value &, const Given &) {
  return run.Fail("`lipsum` is not done: it makes texts at random");
}

Value Now(Run &run, const Value &, const Given &given) {
  const std::string format = given.String(0);
  if (!run.options.now)
    return run.Fail("`strftime_now` needs a date, and none is given");
  constexpr size_t kLongest = 256;
  if (format.size() > kLongest)
    return run.Fail("a format of more than ", kLongest, " bytes");
  if (!run.Step(static_cast<int64_t>(8 * format.size())))
    return Value();
  // Python writes microseconds there, and no zone.
  for (size_t i = 0; i + 1 < format.size(); ++i)
    if (format[i] == '%' && absl::StrContains("fzZ", format[++i]))
      return run.Fail("`strftime_now` has no `%", format.substr(i, 1), "`");
  constexpr size_t kMost = 4096;
  char text[1 + kMost + 1];
  // A text that does not fit has the size 0, as an empty one has. The space tells them apart.
  const size_t size =
      std::strftime(text, sizeof text, absl::StrCat(" ", format).c_str(), &*run.options.now);
  if (size == 0)
    return run.Fail("`strftime_now` makes a text of more than ", kMost, " bytes");
  return run.MakeText(std::string(text + 1, size - 1));
}

std::vector<Value> Members(Run &run, const Value &dict, Shape shape) {
  std::vector<Value> out;
  for (const auto &[key, value] : dict.dict().entries)
    out.push_back(shape == Shape::keys     ? key
                  : shape == Shape::values ? value
                                           : run.MakeList({key, value}, Shape::tuple));
  return out;
}

template <Shape shape> Value ViewOf(Run &run, const Value &self, const Given &) {
  return run.MakeList(Members(run, self, shape), shape);
}

const std::vector<Function> &DictMethods() {
  static const std::vector<Function> methods = {
      {"copy", "", [](Run &, const Value &self, const Given &) { return self; }},
      {"get", "key! default",
       [](Run &run, const Value &self, const Given &given) {
         const Value *found = run.Find(self.dict(), given.Get(0));
         return found ? *found : given.Has(1) ? given.Get(1) : Value(None());
       }},
      {"items", "", ViewOf<Shape::items>},
      {"keys", "", ViewOf<Shape::keys>},
      {"values", "", ViewOf<Shape::values>},
  };
  return methods;
}

const std::vector<Function> &ListMethods() {
  static const std::vector<Function> methods = {
      {"copy", "", [](Run &, const Value &self, const Given &) { return self; }},
      {"count", "value!",
       [](Run &run, const Value &self, const Given &given) {
         int64_t count = 0;
         for (const Value &item : self.list().items)
           count += run.Equal(item, given.Get(0));
         return Value(count);
       }},
      {"index", "value!",
       [](Run &run, const Value &self, const Given &given) {
         const std::vector<Value> &items = self.list().items;
         for (size_t i = 0; i < items.size(); ++i)
           if (run.Equal(items[i], given.Get(0)))
             return Value(static_cast<int64_t>(i));
         return run.Fail("`index` does not find the value");
       }},
  };
  return methods;
}

const std::vector<Function> &LoopMethods() {
  static const std::vector<Function> methods = {
      {"changed", "*",
       [](Run &run, const Value &self, const Given &given) {
         auto *loop = self.As<Loop>();
         const Value now = run.MakeList(given.args.positional);
         const bool is_new = !loop->changed || !run.Equal(*loop->changed, now);
         loop->changed = now;
         return Value(is_new);
       }},
      {"cycle", "*",
       [](Run &run, const Value &self, const Given &given) {
         const std::vector<Value> &items = given.args.positional;
         const auto index = static_cast<size_t>(std::max<int64_t>(self.As<Loop>()->index0, 0));
         return items.empty() ? run.Fail("`loop.cycle` needs items") : items[index % items.size()];
       }},
  };
  return methods;
}

const std::vector<Function> &CyclerMethods() {
  static const std::vector<Function> methods = {
      {"next", "",
       [](Run &, const Value &self, const Given &) {
         auto *cycler = self.As<Cycler>();
         return cycler->items[cycler->next++ % cycler->items.size()];
       }},
      {"reset", "",
       [](Run &, const Value &self, const Given &) {
         self.As<Cycler>()->next = 0;
         return Value(None());
       }},
  };
  return methods;
}

} // namespace

const std::vector<Function> &GlobalFunctions() {
  static const std::vector<Function> functions = {
      {"cycler", "*", MakeCycler},
      {"dict", "*",
       [](Run &run, const Value &, const Given &given) {
         return run.MakeDict(Entries(run, given));
       }},
      {"joiner", "sep", MakeJoiner},
      {"lipsum", "*", RefuseLipsum},
      {"namespace", "*", MakeNamespace},
      {"raise_exception", "message!", RaiseException},
      {"range", "start! stop step", Range},
      {"strftime_now", "format!", Now},
  };
  return functions;
}

const Function *FindMethod(const Value &value, absl::string_view name, bool &refused) {
  static const std::vector<Function> none;
  const auto *cycler = value.As<Cycler>();
  const bool is_list = value.is(Kind::list) && value.list().shape <= Shape::range;
  const std::vector<Function> &methods = value.is(Kind::text)           ? TextMethods()
                                         : value.is(Kind::dict)         ? DictMethods()
                                         : is_list                      ? ListMethods()
                                         : value.As<Loop>()             ? LoopMethods()
                                         : cycler && !cycler->is_joiner ? CyclerMethods()
                                                                        : none;
  const bool is_tuple = is_list && value.list().shape != Shape::list;
  for (const Function &method : methods)
    if (name == method.name && !(is_tuple && name == "copy"))
      return &method;
  const auto any = [&](std::initializer_list<absl::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  refused = (value.is(Kind::dict) && any({"clear", "pop", "popitem", "setdefault", "update"})) ||
            (is_list && !is_tuple &&
             any({"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"}));
  return nullptr;
}

} // namespace boa::jinja
