//===- Source.cpp - Source text, places in it, diagnostics ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns byte ranges into lines, columns and carets. Assumes nothing about the
// bytes: they may be no UTF-8, hold zeros, or have no newline at all.
//
//===----------------------------------------------------------------------===//
#include "frontend/Source.h"

#include "runtime/support/nearest.h"
#include "runtime/support/printable.h"

#include <algorithm>
#include <cctype>

namespace boa::frontend {

/// What a terminal can show of columns [from, to) of a line, one string each.
/// `more` says whether the line goes on.
static std::vector<std::string> columnsOf(std::string_view line, size_t from, size_t to,
                                          bool &more) {
  std::vector<std::string> columns;
  size_t at = 0;
  for (size_t column = 0; at < line.size() && column < to; ++column) {
    size_t length = Utf8Length(line, at);
    unsigned char byte = static_cast<unsigned char>(line[at]);
    // Those of ASCII, and U+0080 to U+009F.
    bool control = byte < 0x20 || byte == 0x7f ||
                   (length == 2 && byte == 0xc2 && static_cast<unsigned char>(line[at + 1]) < 0xa0);
    bool shown = length > 0 && (!control || byte == '\t');
    if (column >= from)
      columns.push_back(shown ? std::string(line.substr(at, length)) : "?");
    at += std::max<size_t>(length, 1);
  }
  more = at < line.size();
  return columns;
}

Location join(Location first, Location last) {
  if (first.file != last.file || last.end < first.begin)
    return first;
  return {first.file, first.begin, std::max(first.end, last.end)};
}

int32_t Sources::add(std::string name, std::string text, bool isOption) {
  // A byte order mark, as some editors write it, is no part of the text.
  if (!isOption && text.compare(0, 3, "\xef\xbb\xbf") == 0)
    text.erase(0, 3);
  Source source{std::move(name), std::move(text), isOption, {0}};
  for (size_t i = 0; i < source.text.size(); ++i)
    if (source.text[i] == '\n')
      source.lineStarts.push_back(uint32_t(i + 1));
  sources.push_back(std::move(source));
  return int32_t(sources.size() - 1);
}

std::string_view Sources::text(Location location) const {
  if (location.file < 0)
    return {};
  return std::string_view(get(location.file).text)
      .substr(location.begin, location.end - location.begin);
}

/// The line that holds a location, without its newline.
static std::string_view lineOf(const Source &source, uint32_t line) {
  std::string_view text = source.text;
  size_t begin = source.lineStarts[line];
  size_t end = line + 1 < source.lineStarts.size() ? source.lineStarts[line + 1] - 1 : text.size();
  std::string_view result = text.substr(begin, end - begin);
  if (!result.empty() && result.back() == '\r')
    result.remove_suffix(1);
  return result;
}

static uint32_t lineIndex(const Source &source, uint32_t offset) {
  auto next = std::upper_bound(source.lineStarts.begin(), source.lineStarts.end(), offset);
  return uint32_t(next - source.lineStarts.begin()) - 1;
}

/// Column of a byte in a line, from 0, in code points.
static size_t columnOf(std::string_view line, size_t offset) {
  size_t column = 0;
  for (size_t at = 0; at < std::min(offset, line.size()); ++column)
    at += std::max<size_t>(Utf8Length(line, at), 1);
  return column;
}

Position Sources::position(Location location) const {
  if (location.file < 0)
    return {};
  const Source &source = get(location.file);
  uint32_t line = lineIndex(source, location.begin);
  size_t column = columnOf(lineOf(source, line), location.begin - source.lineStarts[line]);
  return {location.file, line + 1, uint32_t(column + 1)};
}

Location Sources::wordAt(Position position) const {
  if (position.file < 0)
    return {};
  const Source &source = get(position.file);
  const std::string_view line = lineOf(source, position.line - 1);
  size_t begin = 0;
  for (uint32_t column = 1; column < position.column && begin < line.size(); ++column)
    begin += std::max<size_t>(Utf8Length(line, begin), 1);
  auto isWord = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  size_t end = begin;
  while (end < line.size() && isWord(static_cast<unsigned char>(line[end])))
    ++end;
  const uint32_t start = source.lineStarts[position.line - 1];
  return {position.file, uint32_t(start + begin), uint32_t(start + std::max(end, begin + 1))};
}

std::string Sources::excerpt(Location location) const {
  if (location.file < 0)
    return {};
  const Source &source = get(location.file);
  uint32_t index = lineIndex(source, location.begin);
  std::string_view line = lineOf(source, index);
  size_t start = source.lineStarts[index];
  size_t begin = columnOf(line, location.begin - start);
  size_t end = std::max(columnOf(line, location.end - start), begin + 1);

  constexpr size_t kWidth = 200;
  size_t from = line.size() > kWidth && begin > kWidth / 2 ? begin - kWidth / 2 : 0;
  size_t to = from + kWidth;
  bool more = false;
  std::vector<std::string> columns = columnsOf(line, from, to, more);
  std::string text = from > 0 ? "..." : "";
  std::string caret = from > 0 ? "   " : "";
  for (const std::string &column : columns)
    text += column;
  if (more)
    text += "...";
  for (size_t i = from; i < begin; ++i)
    caret += i - from < columns.size() && columns[i - from] == "\t" ? '\t' : ' ';
  caret += '^';
  for (size_t i = begin + 1; i < std::min({end, to, from + columns.size()}); ++i)
    caret += '~';
  return text + "\n" + caret + "\n";
}

Diagnostic &Diagnostics::error(Location location, std::string message) {
  constexpr size_t kMaxMessage = 1000;
  if (message.size() > kMaxMessage)
    message = message.substr(0, kMaxMessage) + "...";
  Diagnostic next{location, std::move(message), {}};
  if (diagnostics.size() >= kMaxErrors) {
    truncated = true;
    dropped = std::move(next);
    return dropped;
  }
  diagnostics.push_back(std::move(next));
  return diagnostics.back();
}

std::string Diagnostics::render(const Sources &sources) const {
  std::string out;
  auto print = [&](Location location, const char *kind, const std::string &message) {
    if (location.file >= 0) {
      Position position = sources.position(location);
      out += Printable(sources.get(position.file).name) + ":" + std::to_string(position.line) +
             ":" + std::to_string(position.column) + ": ";
    }
    out += std::string(kind) + ": " + Printable(message) + "\n" + sources.excerpt(location);
  };
  for (const Diagnostic &diagnostic : diagnostics) {
    print(diagnostic.location, "error", diagnostic.message);
    for (const Note &note : diagnostic.notes)
      print(note.location, "note", note.message);
  }
  if (truncated)
    out += "error: too many errors, only the first " + std::to_string(kMaxErrors) + " are shown\n";
  return out;
}

std::string didYouMean(std::string_view name, const std::vector<std::string> &candidates) {
  std::string near = NearestWord(name, candidates);
  // The right word in the wrong form, normal for normal(0.02), needs no hint.
  return near.empty() || near == name ? "" : ", did you mean '" + near + "'?";
}

} // namespace boa::frontend
