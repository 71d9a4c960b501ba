//===- record_reads.cpp - What of a conversation a template reads ---------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A template may have the name of a member and yet not read it: the name is that of another member,
// or it stands in a branch that is not taken. So the conversation is rendered with another value of
// the member. The template reads it if the text is another one, or if there is none.
//
// Templates leave out what the model thought in earlier answers. So a member is looked for in the
// text that ends with its answer, or with the answer to its message.
//
// A long conversation has many such members, and a rendering for each takes long. So all of them
// are first replaced at once, each by a text of its own. If the text is the same but for these,
// those that stand in it are read.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/record_values.h"
#include "runtime/support/printable.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <optional>

namespace boa::records {

using jinja::Kind;

namespace {

using Render = std::function<absl::StatusOr<Rendered>(const Conversation &)>;
using Other = std::optional<Value>;           // nothing: the member is taken away
constexpr absl::string_view kText = "Qx7 zj"; // no conversation has it

/// Templates may read the first item of a list alone, so its last one is taken away. A text may be
/// a mode that is the template's own choice, so it is replaced, too.
std::vector<Other> OthersThan(const Value &value) {
  if (value.is(Kind::list) && value.list().items.size() > 1) {
    std::vector<Value> items = value.list().items;
    items.pop_back();
    return {Value::Sequence(std::move(items))};
  }
  if (value.is(Kind::text))
    return {Value(std::string(kText)), std::nullopt};
  return {std::nullopt};
}

bool Has(const Value &value, absl::string_view text) {
  return value.is(Kind::text) && value.text() == text;
}

/// Whether the member is a content that templates leave out, or a key that counts.
bool MayBeUnread(const Value &message, absl::string_view key, const Value &value) {
  if (IsAbsent(key, value))
    return false;
  if (key != "content")
    return MeaningInMessage(message, key, value) == Meaning::counts;
  // All templates write the messages of users, and answers without calls.
  const Value *role = message.Find("role");
  return message.Find("tool_calls") || !role || !(Has(*role, "user") || Has(*role, "assistant"));
}

class ReadCheck {
public:
  ReadCheck(const Conversation &all, const Render &render) : all(all), render(render) {}

  absl::Status Run() {
    for (size_t i = 0; i < all.messages.size(); ++i)
      for (const auto &[key, value] : all.messages[i].dict().entries)
        if (key.is(Kind::text) && MayBeUnread(all.messages[i], key.text(), value))
          members.push_back({i, key.text(), value});
    if (members.size() > 1)
      FindWritten();
    for (const Member &member : members)
      if (!member.is_written)
        if (absl::Status status = CheckMember(member.message, member.key, member.value);
            !status.ok())
          return status;
    // A flag may have the value that the template takes without it.
    for (const auto &[name, value] : all.variables)
      if ((value.is(Kind::text) || value.is(Kind::list) || value.is(Kind::dict)) &&
          !IsAbsent(name, value) && MeaningOfColumn(name, value) == Meaning::counts)
        if (absl::Status status = CheckVariable(name, value); !status.ok())
          return status;
    return absl::OkStatus();
  }

private:
  struct Member {
    size_t message;
    std::string key;
    Value value;
    bool is_written = false; // the template writes it, or a text in it
  };

  /// Finds members that the template writes as they are.
  void FindWritten() {
    Conversation changed = all;
    std::vector<std::string> originals;
    for (size_t i = 0; i < members.size(); ++i) {
      Value &message = changed.messages[members[i].message];
      std::string &original = originals.emplace_back();
      message = With(message, members[i].key,
                     WithText(members[i].value, absl::StrCat(kText, i, ";"), original));
    }
    const absl::StatusOr<Rendered> before = render(all), after = render(changed);
    if (!before.ok() || !after.ok())
      return;
    std::vector<bool> is_written(members.size());
    std::string restored;
    const absl::string_view text = after->text;
    size_t done = 0;
    for (size_t at; (at = text.find(kText, done)) != text.npos;) {
      const size_t number = at + kText.size(), end = text.find(';', number);
      size_t i;
      if (end == text.npos || !absl::SimpleAtoi(text.substr(number, end - number), &i) ||
          i >= members.size())
        return;
      absl::StrAppend(&restored, text.substr(done, at - done), originals[i]);
      is_written[i] = true;
      done = end + 1;
    }
    absl::StrAppend(&restored, text.substr(done));
    for (size_t i = 0; restored == before->text && i < members.size(); ++i)
      members[i].is_written = is_written[i];
  }

  /// The value with another text: of a list, that of the last part, or the name that the last call
  /// has.
  static Value WithText(const Value &value, const std::string &text, std::string &original) {
    if (value.is(Kind::text)) {
      original = value.text();
      return Value(text);
    }
    if (value.is(Kind::list) && !value.list().items.empty()) {
      std::vector<Value> items = value.list().items;
      items.back() = WithText(items.back(), text, original);
      return Value::Sequence(std::move(items));
    }
    for (const char *key : {"function", "name", "text"})
      if (const Value *inner = value.Find(key))
        return With(value, key, WithText(*inner, text, original));
    return value;
  }

  absl::Status CheckMember(size_t i, const std::string &key, const Value &value) {
    const absl::StatusOr<bool> is_read =
        IsRead(EndOf(i), value, [&](Conversation &changed, const Other &other) {
          Value &message = changed.messages[i];
          message = other              ? With(message, key, *other)
                    : key == "content" ? With(message, key, Value(""))
                                       : Without(message, key);
        });
    if (!is_read.ok() || *is_read)
      return is_read.status();
    const Value *role = all.messages[i].Find("role");
    return RefuseUnread(absl::StrCat("message ", i + 1,
                                     role && role->is(Kind::text)
                                         ? absl::StrCat(" (", PrintableName(role->text()), "): ")
                                         : ": "),
                        key, true);
  }

  absl::Status CheckVariable(const std::string &name, const Value &value) {
    const absl::StatusOr<bool> is_read =
        IsRead(all.messages.size(), value, [&](Conversation &changed, const Other &other) {
          for (TemplateValues *given : {&changed.values, &changed.variables})
            given->erase(
                std::remove_if(given->begin(), given->end(),
                               [&](const auto &variable) { return variable.first == name; }),
                given->end());
          if (other)
            changed.variables.emplace_back(name, *other);
        });
    return !is_read.ok() || *is_read ? is_read.status() : RefuseUnread("", name, true);
  }

  /// How many messages there are up to the answer that has a message, or that follows it.
  size_t EndOf(size_t message) const {
    for (size_t i = message; i < all.messages.size(); ++i)
      if (const Value *role = all.messages[i].Find("role"); role && Has(*role, "assistant"))
        return i + 1;
    return all.messages.size();
  }

  /// The first `count` messages.
  Conversation First(size_t count) const {
    Conversation part = all;
    part.messages.resize(count);
    return part;
  }

  template <typename Put>
  absl::StatusOr<bool> IsRead(size_t count, const Value &value, const Put &put) {
    if (count != rendered_count) {
      rendered = render(First(count));
      rendered_count = count;
    }
    // Some templates take whole conversations alone.
    if (!rendered.ok() && count < all.messages.size())
      return IsRead(all.messages.size(), value, put);
    if (!rendered.ok())
      return rendered.status();
    for (const Other &other : OthersThan(value)) {
      Conversation changed = First(count);
      put(changed, other);
      const absl::StatusOr<Rendered> text = render(changed);
      if (!text.ok() || text->text != rendered->text)
        return true;
    }
    return false;
  }

  const Conversation &all;
  const Render &render;
  std::vector<Member> members;       // that the template may leave out
  absl::StatusOr<Rendered> rendered; // of the first `rendered_count`
  size_t rendered_count = std::string::npos;
};

} // namespace

absl::Status CheckRead(const Conversation &conversation, const Render &render) {
  return ReadCheck(conversation, render).Run();
}

} // namespace boa::records
