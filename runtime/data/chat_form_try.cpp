//===- chat_form_try.cpp - What a template takes and writes, found by trying ===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/chat_form.h"

#include "runtime/data/record_values.h"
#include "runtime/support/refuse.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <initializer_list>

namespace boa {

using jinja::Kind;
using jinja::None;
using jinja::Value;
using namespace records;

namespace {

constexpr char kAnswer[] = "Vb3 kw"; // as kProbe, for an answer

Value Parts(const std::string &text) {
  return Value::Sequence({Object({{"type", Value("text")}, {"text", Value(text)}})});
}

/// An answer that calls a function.
Value Call(Value arguments) {
  const Value function = Object({{"name", Value("f")}, {"arguments", std::move(arguments)}});
  return Object({{"role", Value("assistant")},
                 {"content", Value("")},
                 {"tool_calls", Value::Sequence({Object({{"id", Value("abcdef123")},
                                                         {"type", Value("function")},
                                                         {"function", function}})})}});
}

/// The texts of parts, a line each, as servers of models join them.
Value Joined(const Value &parts) {
  std::string all;
  bool is_first = true;
  for (const Value &part : parts.list().items) {
    const Value *text = part.Find("text");
    absl::StrAppend(&all, is_first ? "" : "\n", text && text->is(Kind::text) ? text->text() : "");
    is_first = false;
  }
  return Value(std::move(all));
}

/// Calls whose arguments are objects, where they were texts of them. No text stands for none.
absl::StatusOr<Value> WithObjects(const Value &calls) {
  std::vector<Value> items;
  for (const Value &call : calls.list().items) {
    const Value *function = call.Find("function");
    const Value *arguments = (function ? *function : call).Find("arguments");
    items.push_back(call);
    if (!arguments || !arguments->is(Kind::text))
      continue;
    absl::StatusOr<Value> object = Value::Mapping({});
    if (!absl::StripAsciiWhitespace(arguments->text()).empty())
      object = Value::FromJson(arguments->text());
    if (!object.ok() || !object->is(Kind::dict))
      return Refuse("the template takes the arguments of a call as an object, but ",
                    Excerpt(arguments->text()), " is none",
                    object.ok() ? "" : absl::StrCat(": ", object.status().message()));
    items.back() = function ? With(call, "function", With(*function, "arguments", *object))
                            : With(call, "arguments", *object);
  }
  return Value::Sequence(std::move(items));
}

} // namespace

absl::string_view ChatForm::FirstToken(absl::string_view text) const {
  absl::string_view first;
  for (const std::string &token : setting.added)
    if (token.size() > first.size() && absl::StartsWith(text, token))
      first = token;
  return first;
}

std::string ChatForm::mark() const {
  const absl::string_view end = end_of_answer ? *end_of_answer : absl::string_view();
  const absl::string_view token = FirstToken(end);
  return std::string(token.empty() ? end : token);
}

/// Finds out how the template takes contents, and what it writes around them.
void ChatForm::Try() {
  RenderOptions limits;
  limits.steps = 500'000; // a template that never ends is found out on the first try
  bool ends = true;
  const auto render = [&](std::vector<Value> messages, bool ask) {
    Conversation conversation;
    conversation.messages = std::move(messages);
    conversation.values = setting.values;
    absl::StatusOr<Conversation> adapted = Adapt(std::move(conversation));
    absl::StatusOr<Rendered> out = absl::CancelledError();
    if (ends && adapted.ok())
      out = Render(*adapted, adapted->messages.size(), ask, limits);
    ends = ends && !absl::IsResourceExhausted(out.status());
    return out.ok() ? std::optional(std::move(out->text)) : std::nullopt;
  };
  const auto has = [](const std::optional<std::string> &text, absl::string_view what) {
    return text && absl::StrContains(*text, what);
  };
  const auto is_list = [](absl::string_view text) { // as Python or JSON shows one
    return absl::StrContains(text, absl::StrCat("'", kAnswer)) ||
           absl::StrContains(text, absl::StrCat("\"", kAnswer));
  };
  const std::string probe(kProbe);
  const Value user = Message("user", Value(probe)), system = Message("system", Value(probe));

  const auto find_contents = [&](const char *role, std::vector<Value> before, bool asks = false) {
    const auto with = [&](Value content) {
      std::vector<Value> messages = before;
      messages.push_back(Message(role, std::move(content)));
      if (asks)
        messages.push_back(Message("user", Value("q")));
      return render(std::move(messages), false);
    };
    contents.emplace_back(role, Contents::as_they_are);
    const auto text = with(Value(kAnswer)), parts = with(Parts(kAnswer));
    if (has(text, kAnswer))
      contents.back().second = text == parts ? Contents::as_they_are : Contents::texts;
    else if (has(parts, kAnswer) && !is_list(*parts))
      contents.back().second = Contents::parts;
    else if (contents.size() > 1)
      contents.pop_back(); // the template refuses this, so it tells nothing
  };
  find_contents("user", {});
  find_contents("system", {}, /*asks=*/true);
  find_contents("assistant", {user});
  Value call = Call(Value("{\"k\": 1}"));
  if (form.Mentions("arguments")) {
    const Value of_object = Call(Object({{"k", Value(int64_t{1})}}));
    const auto as_text = render({user, call}, false), as_object = render({user, of_object}, false);
    calls_are_objects = as_object && (!as_text || absl::StrContains(*as_text, "\\\"k"));
  }
  find_contents("tool", {user, call});

  for (const std::vector<Value> &before : {std::vector{user}, std::vector{system, user}}) {
    const auto asked = render(before, true), plain = render(before, false);
    if (asked && plain) {
      around_messages += *plain;
      to_ask = asked->substr(CommonBytes(*asked, *plain));
    }
    std::vector<Value> messages = before;
    messages.push_back(Message("assistant", Value(kAnswer)));
    const auto whole = render(messages, false);
    if (!has(whole, kAnswer) || end_of_answer)
      continue;
    const absl::string_view text = *whole;
    TakeEnd(text.substr(0, text.find(kProbe)),
            text.substr(text.rfind(kAnswer) + absl::string_view(kAnswer).size()));
  }
}

/// `tail` follows an answer at the end of a conversation, of which `begin` stands before the first
/// content. A token with which a conversation begins opens a turn, so it ends none.
void ChatForm::TakeEnd(absl::string_view begin, absl::string_view tail) {
  tail = absl::StripTrailingAsciiWhitespace(tail);
  begin = absl::StripLeadingAsciiWhitespace(begin);
  const std::string eos = TokenOf("eos_token");
  size_t end = tail.size();
  for (absl::string_view token; !(token = FirstToken(begin)).empty();
       begin = absl::StripLeadingAsciiWhitespace(begin.substr(token.size())))
    if (token != eos)
      end = std::min(end, tail.find(token, 1));
  end_of_answer = std::string(absl::StripTrailingAsciiWhitespace(tail.substr(0, end)));
  opening = std::string(tail.substr(end));
}

ChatForm::Contents ChatForm::ContentsOf(const Value &message) const {
  const Value *role = message.Find("role");
  for (const auto &[known, taken] : contents)
    if (role && role->is(Kind::text) && role->text() == known)
      return taken;
  return contents.empty() ? Contents::as_they_are : contents.front().second;
}

absl::StatusOr<Conversation> ChatForm::Adapt(Conversation conversation) const {
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    Value &message = conversation.messages[i];
    if (const Value *content = message.Find("content")) {
      const Contents taken = ContentsOf(message);
      if (taken == Contents::texts && content->is(Kind::list))
        message = With(message, "content", Joined(*content));
      else if (taken == Contents::parts && content->is(Kind::text))
        message = With(message, "content", Parts(content->text()));
    }
    const Value *calls = message.Find("tool_calls");
    if (!calls_are_objects || !calls || !calls->is(Kind::list))
      continue;
    absl::StatusOr<Value> objects = WithObjects(*calls);
    if (!objects.ok())
      return Refuse("message ", i + 1, ": ", objects.status().message());
    message = With(message, "tool_calls", *objects);
  }
  return conversation;
}

} // namespace boa
