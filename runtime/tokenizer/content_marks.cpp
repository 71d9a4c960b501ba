//===- content_marks.cpp - Contents of messages stay text -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/content_marks.h"

#include "runtime/support/printable.h"
#include "runtime/support/refuse.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

#include <algorithm>

namespace boa {

using jinja::Kind;
using jinja::Value;

static constexpr int kMarks = 32; // U+FDD0 to U+FDEF

static std::string MarkAt(int i) { return absl::StrFormat("\xef\xb7%c", char(0x90 + i)); }

/// As JSON writes it where it writes ASCII alone.
static std::string EscapedMark(absl::string_view mark) {
  return absl::StrFormat("\\ufd%02x", int(uint8_t(mark[2])) + 0x40);
}

/// Whether a text of the value passes.
template <typename Test> static bool AnyText(const Value &value, const Test &test) {
  const auto any = [&](const Value &part) { return AnyText(part, test); };
  switch (value.kind()) {
  case Kind::text:
    return test(value.text());
  case Kind::list:
    return std::any_of(value.list().items.begin(), value.list().items.end(), any);
  case Kind::dict:
    return std::any_of(value.dict().entries.begin(), value.dict().entries.end(),
                       [&](const auto &entry) { return any(entry.first) || any(entry.second); });
  default:
    return false;
  }
}

size_t Unmarked::PlaceOf(size_t marked) const {
  size_t taken = 0;
  for (const auto &[at, bytes] : removed) {
    if (at >= marked)
      break;
    taken += std::min(bytes, marked - at);
  }
  return marked - taken;
}

ContentMarks::ContentMarks(const Tokenizer &tokenizer, const std::vector<int32_t> &structure,
                           const std::vector<int32_t> &of_answers) {
  const auto has = [](const std::vector<int32_t> &ids, const AddedToken &token) {
    return std::find(ids.begin(), ids.end(), token.id) != ids.end();
  };
  for (const AddedToken &token : tokenizer.added_tokens())
    if (token.special || has(structure, token))
      tokens.push_back(token);
  for (const AddedToken &token : tokens) { // that stay where they are from now on
    finder.Add(token, token.content);
    if (!has(of_answers, token))
      answer_finder.Add(token, token.content);
  }
}

static std::string MarkText(const AddedFinder &finder, const std::string &text,
                            absl::string_view mark) {
  std::string out;
  size_t done = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!finder.MayBeginAt(text, at))
      continue;
    const size_t next = at + std::max<size_t>(Utf8Length(text, at), 1);
    out.append(text, done, next - done);
    out.append(mark.data(), mark.size());
    done = next;
  }
  return out.append(text, done);
}

static bool Needs(const AddedFinder &finder, const Value &value) {
  return AnyText(value, [&](const std::string &text) {
    for (size_t at = 0; at < text.size(); ++at)
      if (finder.MayBeginAt(text, at))
        return true;
    return false;
  });
}

/// What templates compare and look up: the name of a role or of a member. It is no content, also
/// where a tokenizer has such a word as a token.
static bool IsName(const Value &value) {
  return value.is(Kind::text) && !value.text().empty() &&
         std::all_of(value.text().begin(), value.text().end(),
                     [](char c) { return absl::ascii_isalpha(c) || c == '_'; });
}

static Value MarkValue(const AddedFinder &finder, const Value &value, absl::string_view mark) {
  switch (value.kind()) {
  case Kind::text:
    return Value(MarkText(finder, value.text(), mark));
  case Kind::list: {
    std::vector<Value> items;
    for (const Value &item : value.list().items)
      items.push_back(MarkValue(finder, item, mark));
    return Value::Sequence(std::move(items));
  }
  case Kind::dict: {
    std::vector<std::pair<Value, Value>> entries;
    for (const auto &[key, member] : value.dict().entries) {
      const bool is_role = key.is(Kind::text) && key.text() == "role" && IsName(member);
      entries.emplace_back(IsName(key) ? key : MarkValue(finder, key, mark),
                           is_role ? member : MarkValue(finder, member, mark));
    }
    return Value::Mapping(std::move(entries));
  }
  default:
    return value;
  }
}

static bool IsAnswer(const Value &message) {
  const Value *role = message.Find("role");
  return role && role->is(Kind::text) && role->text() == "assistant";
}

absl::StatusOr<std::string> ContentMarks::Mark(Conversation &conversation,
                                               absl::string_view jinja) const {
  std::vector<std::pair<Value *, const AddedFinder *>> values;
  for (Value &message : conversation.messages)
    values.emplace_back(&message, IsAnswer(message) ? &answer_finder : &finder);
  for (TemplateValues *given : {&conversation.values, &conversation.variables})
    for (auto &[name, value] : *given)
      values.emplace_back(&value, &finder);
  const auto any = [&](const auto &test) {
    return std::any_of(values.begin(), values.end(),
                       [&](const auto &entry) { return test(*entry.first, *entry.second); });
  };
  const auto needs = [](const Value &value, const AddedFinder &of) { return Needs(of, value); };
  if (!any(needs))
    return "";
  for (int i = 0; i < kMarks; ++i) {
    const std::string mark = MarkAt(i);
    const auto has = [&](const std::string &text) { return absl::StrContains(text, mark); };
    if (absl::StrContains(jinja, mark) ||
        any([&](const Value &value, const AddedFinder &) { return AnyText(value, has); }))
      continue;
    for (const auto &[value, of] : values)
      if (Needs(*of, *value))
        *value = MarkValue(*of, *value, mark);
    return mark;
  }
  return Refuse("a conversation with special tokens and all of U+FDD0 to U+FDEF, of which one is "
                "needed to tell them from those of the template");
}

Unmarked ContentMarks::Unmark(absl::string_view text, absl::string_view mark) {
  Unmarked out;
  if (mark.empty()) {
    out.text = std::string(text);
    return out;
  }
  const std::string escaped = EscapedMark(mark);
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = absl::StartsWith(text.substr(at), mark)      ? mark.size()
                         : absl::StartsWith(text.substr(at), escaped) ? escaped.size()
                                                                      : 0;
    if (bytes == 0) {
      out.text += text[at++];
      continue;
    }
    out.removed.push_back({at, bytes});
    at += bytes;
    if (out.text.empty())
      continue;
    size_t begin = out.text.size() - 1; // of the character before it
    while (begin > 0 && (static_cast<uint8_t>(out.text[begin]) & 0xc0) == 0x80)
      --begin;
    if (out.plain.empty() || out.plain.back().first != begin)
      out.plain.push_back({begin, out.text.size()});
  }
  return out;
}

} // namespace boa
