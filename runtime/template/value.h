//===- value.h - The values of a template --------------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Python's values, as far as templates of conversations use them. They do not change once they are
// made, so they are shared without copies. Only objects (a namespace, a loop) have a state; these
// belong to one rendering.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TEMPLATE_VALUE_H
#define BOA_RUNTIME_TEMPLATE_VALUE_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace boa::jinja {

class Value;

/// What a missing variable or attribute gives. `why` is the error of one who needs it.
struct Undefined {
  std::shared_ptr<const std::string> why;
};
struct None {};

struct Text {
  std::string bytes;    // UTF-8
  bool is_safe = false; // `| safe` and `| escape`: what is added to it is escaped
};

/// All sequences. Their shapes differ in what they print and in which operations they have.
struct List {
  enum class Shape : uint8_t { list, tuple, range, keys, values, items };
  std::vector<Value> items;
  Shape shape = Shape::list;
  int depth = 1; // of nesting
};

/// In the order of insertion. Looked up one by one: those of conversations are small.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;
};

/// What only a rendering makes: namespaces, macros, loops, iterators.
class Object {
public:
  virtual ~Object() = default;
  virtual absl::string_view type() const = 0;
  /// Lets go of other values: a namespace may hold itself.
  virtual void Clear() {}
  int depth = 0; // of nesting; a namespace or a macro ends a count, since Clear takes it apart
};

enum class Kind { undefined, none, boolean, integer, real, text, list, dict, object };

class Value {
public:
  Value() = default;
  explicit Value(None) : data(None()) {}
  explicit Value(bool value) : data(value) {}
  explicit Value(int64_t value) : data(value) {}
  explicit Value(double value) : data(value) {}
  explicit Value(std::string text, bool is_safe = false);
  explicit Value(const char *text) : Value(std::string(text)) {}
  explicit Value(std::shared_ptr<Object> object) : data(std::move(object)) {}
  static Value Missing(std::string why);
  static Value Sequence(std::vector<Value> items, List::Shape shape = List::Shape::list);
  static Value Mapping(std::vector<std::pair<Value, Value>> entries);
  /// Of a document within the reader's limits. Integers of more than 64 bits are refused, or else
  /// `keep_long` makes them undefined, and why() says so.
  static absl::StatusOr<Value> FromJson(absl::string_view text, bool keep_long = false);

  Kind kind() const { return static_cast<Kind>(data.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_number() const; // also true and false
  bool boolean() const { return std::get<bool>(data); }
  /// Of an integer or a boolean.
  int64_t integer() const;
  /// Of any number.
  double real() const;
  const std::string &text() const { return std::get<TextPtr>(data)->bytes; }
  bool is_safe() const { return is(Kind::text) && std::get<TextPtr>(data)->is_safe; }
  const List &list() const { return *std::get<ListPtr>(data); }
  const Dict &dict() const { return *std::get<DictPtr>(data); }
  const std::shared_ptr<Object> &object() const { return std::get<std::shared_ptr<Object>>(data); }
  /// Null if it is another kind of object, or none.
  template <typename T> T *As() const {
    return is(Kind::object) ? dynamic_cast<T *>(object().get()) : nullptr;
  }
  /// Why it is undefined.
  std::string why() const;

  /// The member of a mapping with this name; null if there is none, or it is no mapping.
  const Value *Find(absl::string_view key) const;
  int depth() const;
  /// The type's name in Python, for errors.
  absl::string_view type() const;
  /// The same object in memory, or the same simple value.
  bool IsSame(const Value &other) const;

private:
  using TextPtr = std::shared_ptr<const Text>;
  using ListPtr = std::shared_ptr<const List>;
  using DictPtr = std::shared_ptr<const Dict>;
  std::variant<Undefined, None, bool, int64_t, double, TextPtr, ListPtr, DictPtr,
               std::shared_ptr<Object>>
      data;
};

/// Deeper values are not made: what walks over them calls itself.
inline constexpr int kDeepestValue = 100;

} // namespace boa::jinja

#endif // BOA_RUNTIME_TEMPLATE_VALUE_H
