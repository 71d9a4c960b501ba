//===- run.h - One rendering of a template -------------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rendering goes on after its first failure until each loop and statement has returned. Only that
// failure is reported: values that are computed after it are not used.
//
// A step pays for 100 nanoseconds of work at most, and for the memory of one member of a list. Work
// that may be larger is charged before it is done.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TEMPLATE_RUN_H
#define BOA_RUNTIME_TEMPLATE_RUN_H

#include "runtime/template/ast.h"
#include "runtime/template/template.h"
#include "runtime/template/value.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boa::jinja {

class Macro;

/// Arguments of a call.
struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// Variables of a block. What is set in it is not seen outside.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<int, Value>> variables; // by symbol
  void Set(int symbol, Value value);
  bool Has(int symbol) const;
};

class Run {
public:
  Run(const Program &program, const Value &globals, const RenderOptions &options);
  absl::StatusOr<Rendered> Execute();

  // run.cpp: failures and limits.
  template <typename... Parts> Value Fail(const Parts &...parts) {
    return FailAs(absl::StatusCode::kInvalidArgument, absl::StrCat(parts...));
  }
  Value FailAs(absl::StatusCode code, absl::string_view message);
  bool failed() const { return !status.ok(); }
  /// False, and a failure, if the limit is reached.
  bool Step(int64_t count = 1);
  /// Work on a text, and the bytes of it that a step pays for.
  enum Work : int64_t {
    kCopied = 64, // or compared with another
    kRead = 16,   // character by character
    kChanged = 4, // to other characters or a number, or asked for its case
  };
  /// All work that is as large as a text is counted here.
  bool Charge(size_t bytes, Work work) { return Step(static_cast<int64_t>(bytes) / work); }
  /// Whether a text of `size` bytes may have `more`. Counts them as work.
  bool Grow(size_t size, size_t more);
  /// Whether a list may be made with so many members. Counts it as work.
  bool Room(int64_t members);
  Value MakeText(std::string text, bool is_safe = false);
  Value MakeList(std::vector<Value> items, List::Shape shape = List::Shape::list);
  Value MakeDict(std::vector<std::pair<Value, Value>> entries);
  /// An object that holds the items.
  Value Own(std::shared_ptr<Object> object, const std::vector<Value> &items);
  /// For the end of the rendering: the object may hold itself.
  Value Keep(std::shared_ptr<Object> object);
  /// The work to look for one text in another, and to look at texts at all.
  bool Search(size_t text, size_t wanted);
  bool Look(const Value &value) {
    return !value.is(Kind::text) || Charge(value.text().size(), kCopied);
  }
  bool Look(const Args &args);
  /// The number of characters of a text, and the bytes of the first ones.
  int64_t CountCharacters(absl::string_view text);
  size_t BytesOf(absl::string_view text, int64_t characters);
  int64_t steps_left() const { return steps; }
  const RenderOptions &options;

  // values.cpp
  bool Truth(const Value &value);
  std::string Str(const Value &value);
  void AppendRepr(const Value &value, std::string &out);
  bool Equal(const Value &left, const Value &right);
  /// Left < right, or left <= right.
  bool Less(const Value &left, const Value &right, bool or_equal = false);
  bool Contains(const Value &container, const Value &item);
  bool IsIterable(const Value &value);
  std::vector<Value> Items(const Value &value);
  int64_t Length(const Value &value);
  /// json.dumps. `indent`: none, or what each level adds.
  struct JsonStyle {
    std::optional<std::string> indent;
    std::string item = ", ", member = ": ";
    bool is_ascii = false, is_sorted = false;
  };
  void AppendJson(const Value &value, const JsonStyle &style, std::string &out, int level = 0);

  // access.cpp
  /// value.name, which is a text
  Value Attribute(const Value &value, const Value &name);
  /// value[key]
  Value Item(const Value &value, const Value &key);
  Value Slice(const Value &value, const Value &from, const Value &to, const Value &step);
  Value Call(const Value &callee, const Args &args);
  Value CallMacro(const Macro &macro, const Args &args);
  Value AttributeOfMacro(const Signature &signature, const std::string &name);
  bool IsKey(const Value &known, const Value &key);
  /// The member of a mapping; null if there is none.
  const Value *Find(const Dict &dict, const Value &key);
  /// Adds a member, or gives it another value.
  void Insert(std::vector<std::pair<Value, Value>> &entries, Value key, Value value);

  // operators.cpp
  Value Binary(absl::string_view op, const Value &left, const Value &right);
  Value Negative(const Value &value);
  /// pattern % value
  Value FormatPercent(const std::string &pattern, const Value &value);
  /// pattern.format(...)
  Value FormatBraces(const std::string &pattern, const Args &args);

  // expressions.cpp
  Value Eval(const Expr &expr);

private:
  enum class Flow { normal, stop, next };
  friend class Deeper;

  // expressions.cpp
  Value EvalName(const Expr &expr);
  Value EvalCompare(const Expr &expr);
  Value EvalConcat(const Expr &expr);
  Value EvalDict(const Expr &expr);
  Value EvalCall(const Expr &expr, const Value *caller);
  Value EvalFilter(const Expr &expr, const Value *block);
  Args EvalArgs(const CallArgs &args);

  // statements.cpp
  Flow Exec(const Body &body);
  Flow Exec(const Node &node);
  Flow ExecFor(const Node &node);
  Flow ExecIf(const Node &node);
  void Write(absl::string_view text);
  void Assign(const Expr &target, const Value &value);
  /// The body's output, in a scope of its own.
  std::string Capture(const Body &body, std::shared_ptr<Scope> inner, Flow &flow);

  const Program &program;
  std::vector<Value> globals; // by symbol
  absl::Status status;
  int32_t at = 0; // in the source: what is being computed
  int64_t steps = 0;
  int depth = 0;
  std::shared_ptr<Scope> scope;
  std::string *out = nullptr;
  Rendered rendered;
  std::vector<std::shared_ptr<Object>> kept;
};

} // namespace boa::jinja

#endif // BOA_RUNTIME_TEMPLATE_RUN_H
