//===- record_columns.cpp - What a record has beside its form -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/template_values.h"
#include "runtime/data/record_values.h"
#include "runtime/support/refuse.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <initializer_list>

namespace boa::records {

using jinja::Kind;

namespace {

/// The value that means the same as no member.
enum class Neutral {
  no,   // false or 0
  yes,  // true or 1
  flag, // true; a value of another type only describes
};

struct Names {
  bool of_message; // columns of such a name only describe
  Neutral neutral;
  const char *names;
};

// Columns of a record, and keys of a message, that may carry what a model reads or learns. They are
// used or refused. Any other only describes, and so does tool_call_id: results follow their calls.
constexpr Names kNames[] = {
    {false, Neutral::no,
     "answer audio audios chat_template chat_template_kwargs chosen completion content context "
     "conversations documents function_call functions history image images input input_ids "
     "instruction labels messages output prefix problem prompt query question reasoning "
     "reasoning_content rejected response solution suffix target targets text thinking token_ids "
     "tool_calls tools train_detail video videos"},
    {true, Neutral::no, "channel name recipient tool_responses training_detail value"},
    {false, Neutral::yes, "attention_mask loss_mask loss_weight mask sample_weight weight"},
    {false, Neutral::flag, "kto_tag label loss train trainable training"},
};

// What a record may give any template. `functions` are tools of an older form.
constexpr const char *kVariables[] = {"tools", "functions", "documents", "chat_template_kwargs"};

template <typename List> bool Has(const List &names, absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Meaning MeaningOf(absl::string_view key, const Value &value, bool of_message) {
  static const auto *const all = [] {
    auto *found = new absl::flat_hash_map<std::string, const Names *>;
    for (const Names &group : kNames)
      for (absl::string_view name : absl::StrSplit(group.names, ' '))
        found->emplace(name, &group);
    return found;
  }();
  const auto found = all->find(key);
  if (found == all->end() || (found->second->of_message && !of_message) ||
      (found->second->neutral == Neutral::flag && !value.is(Kind::boolean)))
    return Meaning::describes;
  return Is(value, found->second->neutral == Neutral::no ? 0 : 1) ? Meaning::nothing
                                                                  : Meaning::counts;
}

bool RepeatsContent(const Value &value, const Value &message) {
  const Value *content = message.Find("content");
  return value.is(Kind::text) && content && content->is(Kind::text) &&
         value.text() == content->text();
}

/// A column may repeat a message, or the whole of a record of Alpaca as its publishers wrote it.
bool Repeats(absl::string_view key, const Value &value, const Value &object,
             const std::vector<Value> &messages) {
  if (std::any_of(messages.begin(), messages.end(),
                  [&](const Value &message) { return RepeatsContent(value, message); }))
    return true;
  const Value *instruction = object.Find("instruction"), *output = object.Find("output");
  return key == "text" && value.is(Kind::text) && instruction && instruction->is(Kind::text) &&
         output && output->is(Kind::text) && absl::StrContains(value.text(), instruction->text()) &&
         absl::EndsWith(value.text(), output->text());
}

/// Where a number is that would not be shown with all of its digits.
absl::Status CheckNumbers(const Value &value, absl::string_view where) {
  absl::Status status;
  if (value.is(Kind::undefined))
    return Refuse(where, value.why());
  if (value.is(Kind::list))
    for (const Value &item : value.list().items)
      status.Update(CheckNumbers(item, where));
  if (value.is(Kind::dict))
    for (const auto &[key, member] : value.dict().entries)
      status.Update(CheckNumbers(member, where));
  return status;
}

/// `functions` are tools of an older form.
absl::Status TakeTools(const Value &object, Conversation &conversation) {
  for (const char *key : {"tools", "functions"}) {
    const Value *given = Given(object, key);
    if (!given || Is(*given, 0))
      continue;
    absl::StatusOr<std::vector<Value>> tools = ReadObjects(*given, key, "");
    if (!tools.ok())
      return tools.status();
    if (conversation.has_tools())
      return Refuse("expected only one of `tools` and `functions`");
    for (Value &tool : *tools)
      if (key[0] == 'f' && !tool.Find("function"))
        tool = Object({{"type", Value("function")}, {"function", tool}});
    conversation.variables.emplace_back("tools", Value::Sequence(*std::move(tools)));
  }
  return absl::OkStatus();
}

absl::Status TakeVariables(const Value &object, Conversation &conversation) {
  if (absl::Status status = TakeTools(object, conversation); !status.ok())
    return status;
  if (const Value *documents = Given(object, "documents"); documents && !Is(*documents, 0)) {
    if (!documents->is(Kind::list))
      return Refuse("expected `documents` to be a list but found ", TypeOf(*documents));
    conversation.variables.emplace_back("documents", *documents);
  }
  if (const Value *more = Given(object, "chat_template_kwargs"); more && !Is(*more, 0)) {
    if (!more->is(Kind::dict))
      return Refuse("expected `chat_template_kwargs` to be an object but found ", TypeOf(*more));
    for (const auto &[name, value] : more->dict().entries) {
      if (const std::string fault = FaultOfVariable(name.text()); !fault.empty())
        return Refuse("`chat_template_kwargs`: ", fault);
      conversation.variables.emplace_back(name.text(), value);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMessages(const Template *form, ChatRecord &record) {
  const std::vector<Value> &messages = record.conversation.messages;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string where = absl::StrCat("message ", i + 1, ": ");
    if (absl::Status status = CheckNumbers(messages[i], where); !status.ok())
      return status;
    for (const auto &[name, value] : messages[i].dict().entries) {
      const std::string &key = name.text();
      if (key == "role" || key == "content")
        continue;
      const Meaning meaning = MeaningInMessage(messages[i], key, value);
      if (meaning == Meaning::describes && !(form && form->Mentions(key)))
        record.unread.push_back(key);
      if (meaning == Meaning::counts && !form)
        return RefuseUnread(where, key, false);
    }
  }
  for (const auto &[name, value] : record.conversation.variables)
    if (absl::Status status = CheckNumbers(value, absl::StrCat("`", name, "`: ")); !status.ok())
      return status;
  return absl::OkStatus();
}

} // namespace

Meaning MeaningOfColumn(absl::string_view key, const Value &value) {
  return MeaningOf(key, value, /*of_message=*/false);
}

Meaning MeaningInMessage(const Value &message, absl::string_view key, const Value &value) {
  // Of a result, it is the name of the tool, which the call has, too.
  const Value *role = message.Find("role");
  if (key == "name" && role && role->is(Kind::text) &&
      Has(std::initializer_list<const char *>{"tool", "function", "ipython"}, role->text()))
    return Meaning::describes;
  const Meaning meaning = MeaningOf(key, value, /*of_message=*/true);
  return meaning == Meaning::counts && RepeatsContent(value, message) ? Meaning::nothing : meaning;
}

absl::Status RefuseUnread(absl::string_view where, absl::string_view key, bool has_template) {
  return Refuse(where, "`", key, "` changes what the model reads or learns, and ",
                has_template ? "the template does not read it" : "is not done",
                "; where it should not count, remove it");
}

absl::Status TakeColumns(const Value &object, const TemplateChoice &choice, ChatRecord &record) {
  Conversation &conversation = record.conversation;
  const bool is_conversation = !record.is_pair && choice;
  if (is_conversation)
    if (absl::Status status = TakeVariables(object, conversation); !status.ok())
      return status;
  const Template *form = is_conversation ? choice(conversation.has_tools()) : nullptr;
  if (is_conversation && !form)
    return absl::OkStatus(); // the encoder refuses all conversations then
  if (absl::Status status = CheckMessages(form, record); !status.ok())
    return status;
  for (const auto &[name, value] : object.dict().entries) {
    const std::string &key = name.text();
    if (form && key == "chat_template_kwargs" && value.is(Kind::dict))
      for (const auto &[variable, of_it] : value.dict().entries)
        if (!form->HasVariable(variable.text()))
          record.unread.push_back(absl::StrCat(key, ".", variable.text()));
    if (IsAbsent(key, value) || Has(record.form, key) || Has(kSystems, key) ||
        (form && Has(kVariables, key)))
      continue;
    const Meaning meaning = MeaningOfColumn(key, value);
    if (meaning == Meaning::counts && Repeats(key, value, object, conversation.messages))
      continue;
    if (form && form->HasVariable(key)) {
      if (const std::string fault = FaultOfVariable(key); !fault.empty())
        return Refuse(fault);
      conversation.variables.emplace_back(key, value);
    } else if (meaning == Meaning::describes) {
      record.unread.push_back(key);
    } else if (meaning == Meaning::counts) {
      return RefuseUnread("", key, false);
    }
  }
  return absl::OkStatus();
}

} // namespace boa::records
