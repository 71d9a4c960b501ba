//===- run.cpp - Failures and limits of a rendering -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/run.h"

#include "runtime/template/objects.h"
#include "runtime/template/text.h"

#include "absl/container/flat_hash_map.h"

#include <algorithm>

namespace boa::jinja {

Run::Run(const Program &program, const Value &globals, const RenderOptions &options)
    : options(options), program(program), steps(options.steps) {
  absl::flat_hash_map<absl::string_view, Value> known;
  for (const Function &function : GlobalFunctions())
    known[function.name] = Value(std::make_shared<Callable>(function, Value()));
  known["self"] = Value(std::make_shared<Self>());
  if (globals.is(Kind::dict))
    for (const auto &[name, value] : globals.dict().entries)
      if (name.is(Kind::text))
        known[name.text()] = value;
  for (const std::string &name : program.symbols) {
    const auto found = known.find(name);
    this->globals.push_back(found != known.end()
                                ? found->second
                                : Value::Missing(absl::StrCat("`", name, "` is not defined")));
  }
}

absl::StatusOr<Rendered> Run::Execute() {
  scope = std::make_shared<Scope>();
  out = &rendered.text;
  Exec(program.body);
  for (const std::shared_ptr<Object> &object : kept)
    object->Clear();
  scope.reset();
  if (failed())
    return status;
  return std::move(rendered);
}

Value Run::FailAs(absl::StatusCode code, absl::string_view message) {
  if (status.ok())
    status = program.source.Error(code, at, message);
  return Value();
}

bool Run::Step(int64_t count) {
  // A template may name any count.
  steps -= std::min(count, std::max<int64_t>(steps, 0) + 1);
  if (steps < 0 && !failed())
    FailAs(absl::StatusCode::kResourceExhausted,
           absl::StrCat("the template takes more than ", options.steps, " steps"));
  return !failed();
}

bool Run::Grow(size_t size, size_t more) {
  const auto most = static_cast<size_t>(options.bytes);
  if (size > most || more > most - size)
    FailAs(absl::StatusCode::kResourceExhausted,
           absl::StrCat("a text of more than ", options.bytes, " bytes"));
  return !failed() && Charge(more, kCopied);
}

// An empty list takes as much memory as several members.
bool Run::Room(int64_t members) { return Step(members) && Step(16); }

Value Run::MakeText(std::string text, bool is_safe) {
  if (!Step() || !Grow(0, text.size()))
    return Value();
  return Value(std::move(text), is_safe);
}

Value Run::MakeList(std::vector<Value> items, List::Shape shape) {
  if (!Room(static_cast<int64_t>(items.size())))
    return Value();
  Value out = Value::Sequence(std::move(items), shape);
  return out.depth() > kDeepestValue ? Fail("a value nested deeper than ", kDeepestValue) : out;
}

Value Run::MakeDict(std::vector<std::pair<Value, Value>> entries) {
  if (!Room(static_cast<int64_t>(entries.size())))
    return Value();
  Value out = Value::Mapping(std::move(entries));
  return out.depth() > kDeepestValue ? Fail("a value nested deeper than ", kDeepestValue) : out;
}

Value Run::Own(std::shared_ptr<Object> object, const std::vector<Value> &items) {
  for (const Value &item : items)
    object->depth = std::max(object->depth, item.depth() + 1);
  Step(static_cast<int64_t>(items.size()));
  return object->depth > kDeepestValue ? Fail("a value nested deeper than ", kDeepestValue)
                                       : Value(std::move(object));
}

bool Run::Search(size_t text, size_t wanted) {
  // At worst each place is compared to the end, by many bytes at once.
  return Charge(text, kRead) && Charge(text * std::min<size_t>(wanted, 1 << 30) / 8, kCopied);
}

bool Run::Look(const Args &args) {
  for (const Value &value : args.positional)
    Look(value);
  for (const auto &[name, value] : args.named)
    Look(value);
  return !failed();
}

int64_t Run::CountCharacters(absl::string_view text) {
  return Charge(text.size(), kRead) ? jinja::Length(text) : 0;
}

size_t Run::BytesOf(absl::string_view text, int64_t characters) {
  const size_t most = static_cast<size_t>(std::max<int64_t>(characters, 0));
  const size_t looked_at = most < text.size() / 4 ? most * 4 : text.size();
  return Charge(looked_at, kRead) ? ByteOf(text, characters) : 0;
}

Value Run::Keep(std::shared_ptr<Object> object) {
  if (Step(16))
    kept.push_back(object);
  return Value(std::move(object));
}

void Scope::Set(int symbol, Value value) {
  for (auto &[known, old] : variables)
    if (known == symbol) {
      old = std::move(value);
      return;
    }
  variables.emplace_back(symbol, std::move(value));
}

bool Scope::Has(int symbol) const {
  for (const auto &[known, value] : variables)
    if (known == symbol)
      return true;
  return false;
}

} // namespace boa::jinja
