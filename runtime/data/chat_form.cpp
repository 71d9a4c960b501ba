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

std::string Excerpt(absl::string_view text) {
  constexpr size_t kMost = 40;
  size_t end = std::min(text.size(), kMost);
  while (end < text.size() && (uint8_t(text[end]) & 0xc0) == 0x80)
    ++end;
  return end == 0 ? "nothing"
                  : absl::StrCat("`", PrintableName(std::string(text.substr(0, end))), "`",
                                 end < text.size() ? "..." : "");
}

static absl::Status RefuseParting(const Template &form, size_t message, absl::string_view before,
                                  absl::string_view after) {
  const size_t at = CommonBytes(before, after);
  const size_t shown = at - std::min<size_t>(at, 30);
  return Refuse("`", form.name(), "`: the template asks for message ", message + 1,
                " in another way than it writes it, so the model would not be asked as it was "
                "taught. Behind ",
                Excerpt(before.substr(shown, at - shown)), ", at byte ", at, ", it asks with ",
                Excerpt(before.substr(at)), " and writes ", Excerpt(after.substr(at)),
                ". {% generation %} in a template says what is learnt; template = \"FILE\" in "
                "chat(...) names another",
                form.HasVariable("enable_thinking")
                    ? "; \"enable_thinking\": true or false, in the record or in template_values, "
                      "may make both alike"
                    : "");
}

ChatForm::ChatForm(Template form, ChatSetting setting)
    : form(std::move(form)), setting(std::move(setting)) {
  Try();
}

std::string ChatForm::TokenOf(absl::string_view name) const {
  for (const auto &[known, text] : setting.tokens)
    if (known == name)
      return text;
  return "";
}

absl::StatusOr<Rendered> ChatForm::Render(const Conversation &conversation, size_t count, bool ask,
                                          const RenderOptions &limits) const {
  std::vector<std::pair<Value, Value>> globals;
  for (const char *absent : {"tools", "documents"})
    globals.emplace_back(Value(absent), Value(None()));
  for (const auto &[name, text] : setting.tokens)
    globals.emplace_back(Value(name), Value(text));
  // The last one of a name holds.
  for (const TemplateValues *given : {&conversation.values, &conversation.variables})
    for (const auto &[name, value] : *given)
      globals.emplace_back(Value(name), value);
  const auto first = conversation.messages.begin();
  globals.emplace_back(Value("messages"),
                       Value::Sequence(std::vector<Value>(first, first + ptrdiff_t(count))));
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

absl::StatusOr<std::string> ChatForm::Question(const Conversation &given) const {
  absl::StatusOr<Conversation> conversation = Adapt(given);
  if (!conversation.ok())
    return conversation.status();
  absl::StatusOr<Rendered> out = Render(*conversation, conversation->messages.size(), true);
  if (!out.ok())
    return out.status();
  return std::move(out->text);
}

/// The text up to the end of an answer, without what the template writes behind it only because the
/// conversation ends there. `count` messages are rendered as `after`.
absl::string_view ChatForm::UpToEnd(const Conversation &conversation, size_t count,
                                    absl::string_view before, absl::string_view after) const {
  absl::string_view text = absl::StripTrailingAsciiWhitespace(after);
  if (!end_of_answer || end_of_answer->empty())
    return text;
  if (!opening.empty() && absl::ConsumeSuffix(&text, opening))
    text = absl::StripTrailingAsciiWhitespace(text);
  if (absl::EndsWith(text, *end_of_answer))
    return text;
  // Another end, as of a call; or more behind it, which is not there when a user goes on.
  Conversation longer = conversation;
  longer.messages.resize(count);
  longer.messages.push_back(Value::Mapping(
      {{Value("role"), Value("user")}, {Value("content"), Value(std::string(kProbe))}}));
  if (const absl::StatusOr<Conversation> adapted = Adapt(std::move(longer)); adapted.ok())
    if (const absl::StatusOr<Rendered> next = Render(*adapted, count + 1, false); next.ok()) {
      const absl::string_view shared = text.substr(0, CommonBytes(text, next->text));
      const size_t at = shared.rfind(*end_of_answer);
      if (shared.size() < text.size() && at != absl::string_view::npos && at >= before.size())
        return text.substr(0, at + end_of_answer->size());
    }
  return text;
}

/// The end of an answer of which `answer` is the text up to it, in a text that goes on; npos if it
/// is written in another way there.
size_t ChatForm::EndIn(absl::string_view text, absl::string_view before,
                       absl::string_view answer) const {
  if (answer.size() > before.size() && absl::StartsWith(text, answer))
    return answer.size();
  // Some templates close the whole text with one more token, behind the mark of the answer.
  const std::string eos = TokenOf("eos_token");
  absl::string_view end = end_of_answer ? *end_of_answer : absl::string_view();
  if (!eos.empty() && absl::ConsumeSuffix(&answer, eos) && absl::ConsumeSuffix(&end, eos)) {
    answer = absl::StripTrailingAsciiWhitespace(answer);
    end = absl::StripTrailingAsciiWhitespace(end);
    if (!end.empty() && absl::EndsWith(answer, end) && absl::StartsWith(text, answer))
      return answer.size();
  }
  return absl::string_view::npos;
}

absl::StatusOr<std::vector<ChatText>> ChatForm::Answers(const Conversation &given,
                                                        const std::function<bool()> &stops) const {
  const absl::StatusOr<Conversation> adapted = Adapt(given);
  if (!adapted.ok())
    return adapted.status();
  const Conversation &conversation = *adapted;
  absl::Status status = CheckRead(given, [&](const Conversation &some) -> absl::StatusOr<Rendered> {
    const absl::StatusOr<Conversation> other = Adapt(some);
    return other.ok() ? Render(*other, other->messages.size(), false) : other.status();
  });
  if (!status.ok())
    return status;
  if (form.has_generation())
    return Enclosed(conversation, stops);
  const size_t count = conversation.messages.size();
  absl::StatusOr<Rendered> whole = Render(conversation, count, false);
  if (!whole.ok())
    return whole.status();
  // From the last one back: a text holds as many of the answers before it as it can.
  Texts texts = {{whole->text, {}}};
  for (size_t i = count; i-- > 0;) {
    if (!conversation.learnt[i])
      continue;
    if (stops && stops())
      return absl::CancelledError("interrupted");
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
    const absl::string_view answer = UpToEnd(conversation, i + 1, before->text, after->text);
    size_t end = EndIn(texts.back().text, before->text, answer);
    if (end == absl::string_view::npos) {
      if (texts.back().targets.empty())
        texts.pop_back();
      texts.push_back({after->text, {}});
      end = EndIn(after->text, before->text, answer);
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

/// Whether the template encloses contents of messages that are not to be learnt and are no answers.
/// Most enclose answers alone. Then no place of another message has to be found.
bool ChatForm::LearnsOthers(const Conversation &conversation, const Rendered &whole) const {
  if (conversation.left_out.empty())
    return false;
  Conversation other = conversation;
  for (size_t message : conversation.left_out) {
    std::vector<std::pair<Value, Value>> members = other.messages[message].dict().entries;
    for (auto &[key, value] : members)
      if (key.text() == "content")
        value = Value(std::string(kProbe));
    other.messages[message] = Value::Mapping(std::move(members));
  }
  const absl::StatusOr<Conversation> adapted = Adapt(std::move(other));
  if (!adapted.ok())
    return true;
  const absl::StatusOr<Rendered> changed = Render(*adapted, adapted->messages.size(), false);
  if (!changed.ok())
    return true;
  const auto enclosed = [](const Rendered &text) {
    std::vector<std::string> parts;
    for (const auto &[begin, end] : text.generated)
      parts.push_back(text.text.substr(begin, end - begin));
    return parts;
  };
  return enclosed(whole) != enclosed(*changed);
}

/// Where a message begins in the text of the whole conversation: at the end of the text of those
/// before it, as far as it begins the whole.
std::optional<size_t> ChatForm::BeginOf(const Conversation &conversation, const Rendered &whole,
                                        size_t message) const {
  if (message == 0 || message == conversation.messages.size())
    return message == 0 ? 0 : whole.text.size();
  for (bool ask : {false, true}) // a template may close a text that does not ask
    if (const absl::StatusOr<Rendered> part = Render(conversation, message, ask);
        part.ok() && absl::StartsWith(whole.text, part->text))
      return part->text.size();
  return std::nullopt;
}

absl::StatusOr<std::vector<ChatText>> ChatForm::Enclosed(const Conversation &conversation,
                                                         const std::function<bool()> &stops) const {
  const size_t count = conversation.messages.size();
  absl::StatusOr<Rendered> whole = Render(conversation, count, false);
  if (!whole.ok())
    return whole.status();
  if (whole->unplaced_line > 0)
    return Refuse("`", form.name(), "`, line ", whole->unplaced_line,
                  ": a {% generation %} within a macro or a block whose text is used later, so its "
                  "place in the conversation is not known");
  std::vector<size_t> left_out;
  if (LearnsOthers(conversation, *whole))
    left_out = conversation.left_out;
  for (size_t i = 0; i < count; ++i) {
    const Value *role = conversation.messages[i].Find("role");
    if (!conversation.learnt[i] && role && role->is(Kind::text) && role->text() == "assistant")
      left_out.push_back(i);
  }
  const std::vector<Rendered::Range> &all = whole->generated;
  std::vector<bool> is_target(all.size(), true);
  for (size_t message : left_out) {
    const std::optional<size_t> begin = BeginOf(conversation, *whole, message);
    std::optional<size_t> end;
    // What lies behind it up to a message whose beginning is known must have nothing to learn.
    for (size_t next = message + 1; begin && !end && next <= count; ++next) {
      if (stops && stops())
        return absl::CancelledError("interrupted");
      end = BeginOf(conversation, *whole, next);
      if (!end && conversation.learnt[next])
        break;
    }
    bool is_known = begin && end;
    for (size_t i = 0; is_known && i < all.size(); ++i) {
      if (all[i].begin >= *end || all[i].end <= *begin)
        continue;
      is_known = *begin <= all[i].begin && all[i].end <= *end;
      is_target[i] = false;
    }
    if (!is_known)
      return Refuse("`", form.name(), "`: which {% generation %} is of message ", message + 1,
                    ", which is not learnt, cannot be told");
  }
  ChatText out = {std::move(whole->text), {}};
  for (size_t i = 0; i < all.size(); ++i)
    if (is_target[i] && all[i].begin < all[i].end)
      out.targets.push_back(all[i]);
  return Texts{std::move(out)};
}

} // namespace boa
