//===- chat_form.cpp - The text of a conversation, and its answers --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/chat_form.h"

#include "runtime/data/record_values.h"
#include "runtime/support/printable.h"
#include "runtime/support/refuse.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>

namespace boa {

using jinja::Kind;
using jinja::None;
using jinja::Value;
using namespace records;

namespace {

Value Parts(const std::string &text) {
  return Value::Sequence({Object({{"type", Value("text")}, {"text", Value(text)}})});
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

/// A call of a tool whose arguments are an object, where they were a text of one.
Value WithObjects(const Value &calls) {
  std::vector<Value> items;
  for (const Value &call : calls.list().items) {
    const Value *function = call.Find("function");
    const Value *arguments = (function ? *function : call).Find("arguments");
    items.push_back(call);
    if (!arguments || !arguments->is(Kind::text))
      continue;
    const auto object = Value::FromJson(arguments->text());
    if (!object.ok() || !object->is(Kind::dict))
      continue;
    items.back() = function ? With(call, "function", With(*function, "arguments", *object))
                            : With(call, "arguments", *object);
  }
  return Value::Sequence(std::move(items));
}

size_t CommonBytes(absl::string_view a, absl::string_view b) {
  const auto parted =
      std::mismatch(a.begin(), a.begin() + ptrdiff_t(std::min(a.size(), b.size())), b.begin());
  size_t at = size_t(parted.first - a.begin());
  // Not within a character.
  while (at > 0 && ((at < a.size() && (uint8_t(a[at]) & 0xc0) == 0x80) ||
                    (at < b.size() && (uint8_t(b[at]) & 0xc0) == 0x80)))
    --at;
  return at;
}

/// Some of a text for a message, on one line.
std::string Shown(absl::string_view text) {
  constexpr size_t kMost = 40;
  size_t end = std::min(text.size(), kMost);
  while (end < text.size() && (uint8_t(text[end]) & 0xc0) == 0x80)
    ++end;
  return end == 0 ? "nothing"
                  : absl::StrCat("`", PrintableName(std::string(text.substr(0, end))), "`",
                                 end < text.size() ? "..." : "");
}

absl::Status RefuseParting(const Template &form, size_t message, absl::string_view before,
                           absl::string_view after) {
  const size_t at = CommonBytes(before, after);
  const size_t shown = at - std::min<size_t>(at, 30);
  return Refuse("`", form.name(), "`: the template asks for message ", message + 1,
                " in another way than it writes it, so the model would not be asked as it was "
                "taught. Behind ",
                Shown(before.substr(shown, at - shown)), ", at byte ", at, ", it asks with ",
                Shown(before.substr(at)), " and writes ", Shown(after.substr(at)),
                ". {% generation %} in a template says what is learnt; template = \"FILE\" in "
                "chat(...) names another",
                form.HasVariable("enable_thinking")
                    ? "; \"enable_thinking\": true or false in the record may make both alike"
                    : "");
}

constexpr char kProbe[] = "Qx7 zj"; // a content that no template has itself

} // namespace

ChatForm::ChatForm(Template form, ChatSetting setting)
    : form(std::move(form)), setting(std::move(setting)) {
  Try();
}

/// Finds out how the template takes contents, and what it writes around them.
void ChatForm::Try() {
  RenderOptions limits;
  limits.steps = 500'000; // a template that never ends is found out on the first try
  bool ends = true;
  const auto render = [&](std::vector<Value> messages, bool ask) {
    Conversation conversation;
    conversation.messages = std::move(messages);
    absl::StatusOr<Rendered> out = absl::CancelledError();
    if (ends)
      out = Render(conversation, conversation.messages.size(), ask, limits);
    ends = ends && !absl::IsResourceExhausted(out.status());
    return out.ok() ? std::optional(std::move(out->text)) : std::nullopt;
  };
  const auto has_probe = [](const std::optional<std::string> &text) {
    return text && absl::StrContains(*text, kProbe);
  };
  const auto text = render({Message("user", Value(kProbe))}, false);
  const auto parts = render({Message("user", Parts(kProbe))}, false);
  if (has_probe(text) && text != parts)
    contents = Contents::texts;
  else if (!has_probe(text) && has_probe(parts))
    contents = Contents::parts;

  const Value user = Message("user", Value("q")), answer = Message("assistant", Value(kProbe));
  const Value system = Message("system", Value("s"));
  for (const std::vector<Value> &before : {std::vector{user}, std::vector{system, user}}) {
    const auto asked = render(before, true), plain = render(before, false);
    if (asked && plain) {
      around_messages += *plain;
      to_ask = asked->substr(CommonBytes(*asked, *plain));
    }
    std::vector<Value> messages = before;
    messages.push_back(answer);
    const auto whole = render(messages, false);
    if (!has_probe(whole) || end_of_answer)
      continue;
    const size_t at = whole->rfind(kProbe) + absl::string_view(kProbe).size();
    end_of_answer = std::string(absl::StripTrailingAsciiWhitespace(whole->substr(at)));
  }

  const auto call = [&](Value arguments) {
    const Value function = Object({{"name", Value("f")}, {"arguments", std::move(arguments)}});
    return render(
        {user, Object({{"role", Value("assistant")},
                       {"content", Value("")},
                       {"tool_calls", Value::Sequence({Object({{"id", Value("abcdef123")},
                                                               {"type", Value("function")},
                                                               {"function", function}})})}})},
        false);
  };
  if (form.Mentions("arguments")) {
    const auto as_text = call(Value("{\"k\": 1}")),
               as_object = call(Object({{"k", Value(int64_t{1})}}));
    calls_are_objects = as_object && (!as_text || absl::StrContains(*as_text, "\\\"k"));
  }
}

std::string ChatForm::TokenOf(absl::string_view name) const {
  for (const auto &[known, text] : setting.tokens)
    if (known == name)
      return text;
  return "";
}

Value ChatForm::Adapted(const Value &message) const {
  Value out = message;
  if (const Value *content = message.Find("content")) {
    if (contents == Contents::texts && content->is(Kind::list))
      out = With(out, "content", Joined(*content));
    else if (contents == Contents::parts && content->is(Kind::text))
      out = With(out, "content", Parts(content->text()));
  }
  if (const Value *calls = message.Find("tool_calls"))
    if (calls_are_objects && calls->is(Kind::list))
      out = With(out, "tool_calls", WithObjects(*calls));
  return out;
}

absl::StatusOr<Rendered> ChatForm::Render(const Conversation &conversation, size_t count, bool ask,
                                          const RenderOptions &limits) const {
  std::vector<Value> messages;
  for (size_t i = 0; i < count; ++i)
    messages.push_back(Adapted(conversation.messages[i]));
  Members globals;
  for (const char *absent : {"tools", "documents"})
    globals.emplace_back(Value(absent), Value(None()));
  for (const auto &[name, text] : setting.tokens)
    globals.emplace_back(Value(name), Value(text));
  for (const auto &[name, value] : conversation.variables) // the last one of a name holds
    globals.emplace_back(Value(name), value);
  globals.emplace_back(Value("messages"), Value::Sequence(std::move(messages)));
  globals.emplace_back(Value("add_generation_prompt"), Value(ask));
  RenderOptions options = limits;
  options.now = setting.date;
  absl::StatusOr<Rendered> out = form.Render(Value::Mapping(std::move(globals)), options);
  // A name that the tokenizer's files do not fill.
  for (const char *token : {"bos_token", "eos_token"})
    if (absl::StrContains(out.status().message(), absl::StrCat("`", token, "` is not defined")))
      return absl::Status(out.status().code(),
                          absl::StrCat(out.status().message(), "\n  `", token,
                                       "` in tokenizer_config.json beside the tokenizer names it"));
  return out;
}

absl::StatusOr<std::string> ChatForm::Question(const Conversation &conversation) const {
  absl::StatusOr<Rendered> out = Render(conversation, conversation.messages.size(), true);
  if (!out.ok())
    return out.status();
  return std::move(out->text);
}

size_t ChatForm::EndIn(absl::string_view text, absl::string_view before,
                       absl::string_view after) const {
  absl::string_view answer = absl::StripTrailingAsciiWhitespace(after);
  if (answer.size() > before.size() && absl::StartsWith(text, answer))
    return answer.size();
  // Some templates close the whole text with one more token, behind the mark of the answer.
  const std::string eos = TokenOf("eos_token");
  absl::string_view mark = end_of_answer ? *end_of_answer : absl::string_view();
  if (!eos.empty() && absl::ConsumeSuffix(&answer, eos) && absl::ConsumeSuffix(&mark, eos)) {
    answer = absl::StripTrailingAsciiWhitespace(answer);
    mark = absl::StripTrailingAsciiWhitespace(mark);
    if (!mark.empty() && absl::EndsWith(answer, mark) && absl::StartsWith(text, answer))
      return answer.size();
  }
  return absl::string_view::npos;
}

absl::StatusOr<std::vector<ChatText>> ChatForm::Answers(const Conversation &conversation) const {
  absl::Status status = CheckRead(conversation, [&](const Conversation &some) {
    return Render(some, some.messages.size(), false);
  });
  if (!status.ok())
    return status;
  if (form.has_generation())
    return Enclosed(conversation);
  const size_t count = conversation.messages.size();
  absl::StatusOr<Rendered> whole = Render(conversation, count, false);
  if (!whole.ok())
    return whole.status();
  // From the last one back: a text holds as many of the answers before it as it can.
  std::vector<ChatText> texts = {{whole->text, {}}};
  for (size_t i = count; i-- > 0;) {
    if (!conversation.learnt[i])
      continue;
    absl::StatusOr<Rendered> before = Render(conversation, i, true);
    if (!before.ok() && i == 0)
      return absl::Status(
          before.status().code(),
          absl::StrCat("message 1 is an answer, and the template cannot ask for it "
                       "without a message; with \"train\": false it is not learnt: ",
                       before.status().message()));
    if (!before.ok())
      return before.status();
    absl::StatusOr<Rendered> after = i + 1 == count ? whole : Render(conversation, i + 1, false);
    if (!after.ok())
      return after.status();
    if (!absl::StartsWith(after->text, before->text))
      return RefuseParting(form, i, before->text, after->text);
    size_t end = EndIn(texts.back().text, before->text, after->text);
    if (end == absl::string_view::npos) {
      if (texts.back().targets.empty())
        texts.pop_back();
      texts.push_back({after->text, {}});
      end = EndIn(after->text, before->text, after->text);
      if (end == absl::string_view::npos)
        continue; // an empty answer without a mark
    }
    texts.back().targets.push_back({before->text.size(), end});
  }
  for (ChatText &text : texts)
    std::reverse(text.targets.begin(), text.targets.end());
  std::reverse(texts.begin(), texts.end());
  return texts;
}

absl::StatusOr<std::vector<ChatText>> ChatForm::Enclosed(const Conversation &conversation) const {
  const size_t count = conversation.messages.size();
  absl::StatusOr<Rendered> whole = Render(conversation, count, false);
  if (!whole.ok())
    return whole.status();
  if (whole->unplaced_line > 0)
    return Refuse("`", form.name(), "`, line ", whole->unplaced_line,
                  ": a {% generation %} within a macro or a block whose text is used later, so its "
                  "place in the conversation is not known");
  const std::vector<Rendered::Range> &all = whole->generated;
  std::vector<bool> is_target(all.size(), true);
  // How many of them the messages up to one have, tells which are of an answer.
  const auto blocks_of = [&](size_t messages) -> absl::StatusOr<size_t> {
    if (messages == 0)
      return 0;
    absl::StatusOr<Rendered> part = Render(conversation, messages, false);
    if (!part.ok())
      return part.status();
    return part->generated.size();
  };
  for (size_t i = 0; i < count; ++i) {
    const Value *role = conversation.messages[i].Find("role");
    if (conversation.learnt[i] || !role || !role->is(Kind::text) || role->text() != "assistant")
      continue;
    absl::StatusOr<size_t> first = blocks_of(i), last = blocks_of(i + 1);
    if (!first.ok() || !last.ok())
      return first.ok() ? last.status() : first.status();
    if (*first > *last || *last > all.size())
      return Refuse("`", form.name(), "`: which {% generation %} is of message ", i + 1,
                    ", which is not learnt, cannot be told");
    std::fill(is_target.begin() + ptrdiff_t(*first), is_target.begin() + ptrdiff_t(*last), false);
  }
  ChatText out = {std::move(whole->text), {}};
  for (size_t i = 0; i < all.size(); ++i)
    if (is_target[i] && all[i].begin < all[i].end)
      out.targets.push_back(all[i]);
  return std::vector<ChatText>{std::move(out)};
}

} // namespace boa
