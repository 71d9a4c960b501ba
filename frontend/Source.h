//===- Source.h - Source text, places in it, diagnostics --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The texts that were given together, and the errors found in them. A Location
// is a range of bytes of one text; it is turned into line and column only when
// something is printed. Diagnostics are collected, never printed here; after 20
// errors the rest is counted no further, and phases stop at their next check.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_SOURCE_H
#define BOA_FRONTEND_SOURCE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace boa::frontend {

/// Bytes [begin, end) of text `file`; file -1: nowhere.
struct Location {
  int32_t file = -1;
  uint32_t begin = 0;
  uint32_t end = 0;
};

/// From the begin of `first` to the end of `last`, where both are in one text.
Location join(Location first, Location last);

/// A place as people name it; line and column count from 1, columns in code
/// points.
struct Position {
  int32_t file = -1;
  uint32_t line = 0;
  uint32_t column = 0;
};

/// One text: a file, or what stood after a --set.
struct Source {
  std::string name;
  std::string text;
  /// Paths in a file are relative to its folder, those in an option are not.
  bool isOption = false;
  std::vector<uint32_t> lineStarts;
};

class Sources {
public:
  /// Texts longer than this are refused by the lexer.
  static constexpr size_t kMaxBytes = 4u << 20;

  /// Adds a text and returns its index.
  int32_t add(std::string name, std::string text, bool isOption);
  const Source &get(int32_t file) const { return sources[size_t(file)]; }
  size_t size() const { return sources.size(); }
  std::string_view text(Location location) const;
  Position position(Location location) const;
  /// The word that begins at a place of a text, or its one character.
  Location wordAt(Position position) const;
  /// The source line of a location with a caret under it, both indented by
  /// nothing and ended by a newline. Control characters and bytes that are not UTF-8 show as '?';
  /// of a long line, the part around the caret.
  std::string excerpt(Location location) const;

private:
  std::vector<Source> sources;
};

struct Note {
  Location location;
  std::string message;
};

struct Diagnostic {
  Location location;
  std::string message;
  std::vector<Note> notes;
  Diagnostic &note(Location where, std::string text) {
    notes.push_back({where, std::move(text)});
    return *this;
  }
};

class Diagnostics {
public:
  static constexpr size_t kMaxErrors = 20;

  /// Records an error. The reference is valid until the next call.
  Diagnostic &error(Location location, std::string message);
  bool empty() const { return diagnostics.empty(); }
  size_t count() const { return diagnostics.size(); }
  bool full() const { return truncated; }
  const std::vector<Diagnostic> &all() const { return diagnostics; }
  /// All errors in the order in which they were found:
  /// `file:line:col: error: message`, the line, the caret, then the notes.
  std::string render(const Sources &sources) const;

private:
  std::vector<Diagnostic> diagnostics;
  Diagnostic dropped;
  bool truncated = false;
};

/// `, did you mean 'x'?` or "".
std::string didYouMean(std::string_view name, const std::vector<std::string> &candidates);

} // namespace boa::frontend

#endif // BOA_FRONTEND_SOURCE_H
