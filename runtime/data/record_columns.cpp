//===- record_columns.cpp - What a record has beside its form -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/record_values.h"
#include "runtime/support/refuse.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <initializer_list>

namespace boa::records {

using jinja::Kind;

namespace {

using Names = std::initializer_list<const char *>;

// Columns of a record, and keys of a message, that may carry what a model reads or learns. Who made
// them meant them to count, so they are used or refused. Any other only describes.
constexpr Names kTexts = {"answer",
                          "attention_mask",
                          "audio",
                          "audios",
                          "chat_template",
                          "chat_template_kwargs",
                          "chosen",
                          "content",
                          "context",
                          "documents",
                          "function_call",
                          "functions",
                          "history",
                          "image",
                          "images",
                          "input",
                          "input_ids",
                          "instruction",
                          "labels",
                          "loss_mask",
                          "loss_weight",
                          "mask",
                          "output",
                          "prefix",
                          "problem",
                          "query",
                          "question",
                          "reasoning",
                          "reasoning_content",
                          "rejected",
                          "response",
                          "sample_weight",
                          "solution",
                          "suffix",
                          "target",
                          "targets",
                          "text",
                          "thinking",
                          "token_ids",
                          "tool_calls",
                          "tools",
                          "train_detail",
                          "video",
                          "videos"};
constexpr Names kTextsOfMessage = {
    "channel", "name", "recipient", "tool_call_id", "tool_responses", "training_detail", "value"};
// Whether a record is a good answer (KTO).
constexpr Names kGood = {"kto_tag", "label"};

template <typename List> bool Has(const List &names, absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

absl::Status RefuseColumn(absl::string_view where, absl::string_view key, bool has_template) {
  return Refuse(where, "`", key, "` changes what the model reads or learns, and ",
                has_template ? "the template does not read it" : "is not done",
                "; where it should not count, remove it");
}

bool SaysNo(const Value &value) {
  return (value.is(Kind::boolean) && !value.boolean()) ||
         ((value.is(Kind::integer) || value.is(Kind::real)) && value.real() == 0);
}

bool SaysYes(const Value &value) {
  return (value.is(Kind::boolean) && value.boolean()) ||
         ((value.is(Kind::integer) || value.is(Kind::real)) && value.real() == 1);
}

/// A column that repeats what is read says nothing new.
bool Repeats(const Value &value, const Value &message) {
  const Value *content = message.Find("content");
  return value.is(Kind::text) && content && content->is(Kind::text) &&
         value.text() == content->text();
}

bool Repeats(const Value &value, const std::vector<Value> &messages) {
  return std::any_of(messages.begin(), messages.end(),
                     [&](const Value &message) { return Repeats(value, message); });
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

/// `tools` are a list, or JSON of one; `functions` are those of an older form.
absl::Status TakeTools(const Value &object, Conversation &conversation) {
  for (const char *key : {"tools", "functions"}) {
    const Value *given = Given(object, key);
    if (!given || SaysNo(*given))
      continue;
    absl::StatusOr<Value> list = *given;
    if (given->is(Kind::text))
      list = Value::FromJson(given->text());
    if (!list.ok() || !list->is(Kind::list))
      return Refuse("expected `", key, "` to be a list of tools, or JSON of one, but found ",
                    list.ok() ? TypeOf(*list) : std::string(list.status().message()));
    std::vector<Value> tools;
    for (const Value &tool : list->list().items)
      tools.push_back(key[0] == 'f' && !tool.Find("function")
                          ? Object({{"type", Value("function")}, {"function", tool}})
                          : tool);
    if (conversation.has_tools())
      return Refuse("expected only one of `tools` and `functions`");
    conversation.variables.emplace_back("tools", Value::Sequence(std::move(tools)));
  }
  return absl::OkStatus();
}

absl::Status TakeVariables(const Value &object, Conversation &conversation) {
  if (absl::Status status = TakeTools(object, conversation); !status.ok())
    return status;
  if (const Value *documents = Given(object, "documents"); documents && !SaysNo(*documents)) {
    if (!documents->is(Kind::list))
      return Refuse("expected `documents` to be a list but found ", TypeOf(*documents));
    conversation.variables.emplace_back("documents", *documents);
  }
  if (const Value *more = Given(object, "chat_template_kwargs"); more && !SaysNo(*more)) {
    if (!more->is(Kind::dict))
      return Refuse("expected `chat_template_kwargs` to be an object but found ", TypeOf(*more));
    for (const auto &[name, value] : more->dict().entries)
      conversation.variables.emplace_back(name.text(), value);
  }
  return absl::OkStatus();
}

bool IsVariable(absl::string_view key) {
  return Has(Names{"tools", "functions", "documents", "chat_template_kwargs"}, key);
}

absl::Status CheckMessages(const Template *form, ChatRecord &record) {
  const std::vector<Value> &messages = record.conversation.messages;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string where = absl::StrCat("message ", i + 1, ": ");
    if (absl::Status status = CheckNumbers(messages[i], where); !status.ok())
      return status;
    for (const auto &[name, value] : messages[i].dict().entries) {
      const std::string &key = name.text();
      if (key == "role" || key == "content" || (form && form->Mentions(key)))
        continue;
      if (!Has(kTexts, key) && !Has(kTextsOfMessage, key))
        record.unread.push_back(key);
      else if (!SaysNo(value) && !Repeats(value, messages[i]))
        return RefuseColumn(where, key, form);
    }
  }
  for (const auto &[name, value] : record.conversation.variables)
    if (absl::Status status = CheckNumbers(value, absl::StrCat("`", name, "`: ")); !status.ok())
      return status;
  return absl::OkStatus();
}

/// The whole of a record of Alpaca as its publishers wrote it, beside its parts.
bool RepeatsAlpaca(absl::string_view key, const Value &value, const Value &object) {
  const Value *instruction = object.Find("instruction"), *output = object.Find("output");
  return key == "text" && value.is(Kind::text) && instruction && instruction->is(Kind::text) &&
         output && output->is(Kind::text) && absl::StrContains(value.text(), instruction->text()) &&
         absl::EndsWith(value.text(), output->text());
}

} // namespace

absl::Status TakeColumns(const Value &object, const TemplateChoice &choice, ChatRecord &record) {
  Conversation &conversation = record.conversation;
  const bool is_conversation = !record.is_pair && choice;
  if (is_conversation)
    if (absl::Status status = TakeVariables(object, conversation); !status.ok())
      return status;
  const Template *form = is_conversation ? choice(conversation.has_tools()) : nullptr;
  if (absl::Status status = CheckMessages(form, record); !status.ok())
    return status;
  for (const auto &[name, value] : object.dict().entries) {
    const std::string &key = name.text();
    if (IsAbsent(value) || Has(record.form, key) || Has(kSystems, key))
      continue;
    if (IsVariable(key) && form) {
      if (key != "chat_template_kwargs" && !SaysNo(value) &&
          !form->Mentions(key == "functions" ? "tools" : key))
        return RefuseColumn("", key, true);
      continue;
    }
    const bool is_text = Has(kTexts, key) || Has(kForms, key) || key == "weight" ||
                         ((Has(kGood, key) || Has(kLearnt, key)) && value.is(Kind::boolean));
    const bool is_neutral = Has(kTexts, key) ? SaysNo(value) : SaysYes(value);
    if (is_text && !is_neutral && !Repeats(value, conversation.messages) &&
        !RepeatsAlpaca(key, value, object))
      return RefuseColumn("", key, false);
    if (is_text)
      continue;
    if (form && form->HasVariable(key))
      conversation.variables.emplace_back(key, value);
    else
      record.unread.push_back(key);
  }
  return absl::OkStatus();
}

} // namespace boa::records
