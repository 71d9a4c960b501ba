//===- record_messages.cpp - The messages of a record ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/record_values.h"
#include "runtime/support/refuse.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <iterator>

namespace boa::records {

using jinja::Kind;

// Columns, and keys of messages, whose values are no texts. A table may hold them as JSON in one.
static constexpr const char *kJson[] = {"tools",         "functions", "tool_calls",
                                        "function_call", "documents", "chat_template_kwargs"};

Value Object(std::vector<std::pair<const char *, Value>> members) {
  Members entries;
  for (auto &[name, value] : members)
    entries.emplace_back(Value(name), std::move(value));
  return Value::Mapping(std::move(entries));
}

Value Message(const char *role, Value content) {
  return Object({{"role", Value(role)}, {"content", std::move(content)}});
}

Value With(const Value &object, absl::string_view name, const Value &value) {
  Members entries = object.dict().entries;
  for (auto &[key, member] : entries)
    if (key.is(Kind::text) && key.text() == name)
      member = value;
  return Value::Mapping(std::move(entries));
}

Value Without(const Value &object, absl::string_view name) {
  Members entries;
  for (const auto &[key, member] : object.dict().entries)
    if (!key.is(Kind::text) || key.text() != name)
      entries.emplace_back(key, member);
  return Value::Mapping(std::move(entries));
}

const char *TypeOf(const Value &value) {
  switch (value.kind()) {
  case Kind::none:
    return "null";
  case Kind::boolean:
    return "boolean";
  case Kind::text:
    return "string";
  case Kind::list:
    return "array";
  case Kind::dict:
    return "object";
  default: // an integer of more than 64 bits is undefined
    return "number";
  }
}

bool Is(const Value &value, double number) { return value.is_number() && value.real() == number; }

bool IsAbsent(absl::string_view key, const Value &value) {
  if (value.is(Kind::text)) {
    const absl::string_view bare = absl::StripAsciiWhitespace(value.text());
    const bool is_json = std::find(std::begin(kJson), std::end(kJson), key) != std::end(kJson);
    return bare.empty() || (is_json && (bare == "[]" || bare == "{}"));
  }
  return value.is(Kind::none) || (value.is(Kind::list) && value.list().items.empty()) ||
         (value.is(Kind::dict) && value.dict().entries.empty());
}

const Value *Given(const Value &object, absl::string_view key) {
  const Value *found = object.Find(key);
  return found && !IsAbsent(key, *found) ? found : nullptr;
}

absl::Status ReadText(const Value &object, absl::string_view key, absl::string_view where,
                      std::string &text) {
  const Value *found = object.Find(key);
  if (!found)
    return Refuse(where, "expected the key `", key, "`");
  if (!found->is(Kind::text))
    return Refuse(where, "expected `", key, "` to be a text but found ", TypeOf(*found));
  text = found->text();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Value>> ReadObjects(const Value &list, absl::string_view key,
                                               absl::string_view where) {
  const auto parsed = [](const Value &value) {
    return value.is(Kind::text) ? Value::FromJson(value.text()) : absl::StatusOr<Value>(value);
  };
  const auto refuse = [&](absl::string_view what, const absl::StatusOr<Value> &found) {
    return Refuse(where, "expected ", what, ", or JSON of one, but found ",
                  found.ok() ? absl::string_view(TypeOf(*found)) : found.status().message());
  };
  const absl::StatusOr<Value> items = parsed(list);
  if (!items.ok() || !items->is(Kind::list))
    return refuse(absl::StrCat("`", key, "` to be a list of objects"), items);
  std::vector<Value> objects;
  for (const Value &item : items->list().items) {
    absl::StatusOr<Value> object = parsed(item);
    if (!object.ok() || !object->is(Kind::dict))
      return refuse(absl::StrCat("item ", objects.size() + 1, " of `", key, "` to be an object"),
                    object);
    objects.push_back(*std::move(object));
  }
  return objects;
}

namespace {

/// Whether a message may be learnt. `answer` says whether a record may ask for it.
absl::Status ReadLearnt(const Value &object, absl::string_view where, bool answer, bool &learnt) {
  if (const Value *weight = Given(object, "weight")) {
    const bool is_number = weight->is(Kind::integer) || weight->is(Kind::real);
    if (!is_number || (weight->real() != 0 && weight->real() != 1))
      return Refuse(where, "expected `weight` to be 0 or 1");
    learnt = learnt && weight->real() == 1;
  }
  for (const char *key : kLearnt)
    if (const Value *flag = Given(object, key)) {
      if (!flag->is(Kind::boolean))
        return Refuse(where, "expected `", key, "` to be true or false");
      if (!answer && flag->boolean())
        return Refuse(where, "`", key, "` is true, but only messages of the assistant are learnt");
      learnt = learnt && flag->boolean();
    }
  return absl::OkStatus();
}

/// A content is a text, or parts with texts. The parts of other kinds would be read as nothing.
absl::Status CheckContent(const Value &message, const char *key, absl::string_view where) {
  const Value *content = message.Find(key);
  const bool calls = Given(message, "tool_calls") || Given(message, "function_call");
  if (calls && (!content || content->is(Kind::none)))
    return absl::OkStatus();
  std::string text;
  if (!content || !content->is(Kind::list))
    return ReadText(message, key, where, text);
  for (const Value &part : content->list().items) {
    const Value *type = part.Find("type");
    if (!type || !type->is(Kind::text))
      return Refuse(where, "expected `", key, "` to be a text, or a list of {\"type\": \"text\", ",
                    "\"text\": \"...\"}, but found a list of ", TypeOf(part));
    if (type->text() != "text")
      return Refuse(where, "a part of the type `", type->text(),
                    "`, but a model here reads texts alone");
    if (absl::Status status = ReadText(part, "text", where, text); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

/// The roles of ShareGPT by the names that templates know.
std::string RoleOf(const std::string &from) {
  return from == "human"                                        ? "user"
         : from == "gpt" || from == "chatgpt"                   ? "assistant"
         : from == "function_call"                              ? "assistant"
         : from == "observation" || from == "function_response" ? "tool"
                                                                : from;
}

/// The call of a function as templates take it. ShareGPT writes it as a text of JSON.
absl::StatusOr<Value> CallOf(const Value &call, absl::string_view where) {
  absl::StatusOr<Value> function = call;
  if (call.is(Kind::text))
    function = Value::FromJson(call.text());
  if (!function.ok() || !function->Find("name"))
    return Refuse(where, "expected the call of a function to be an object with `name` and "
                         "`arguments`");
  return Value::Sequence({Object({{"type", Value("function")}, {"function", *function}})});
}

absl::Status ReadMessage(const Value &object, bool is_share_gpt, bool is_answer,
                         const std::string &where, Conversation &conversation) {
  const char *role_key = is_share_gpt ? "from" : "role",
             *content_key = is_share_gpt ? "value" : "content";
  if (!object.is(Kind::dict))
    return Refuse(where, "expected an object with `", role_key, "` and `", content_key,
                  "` but found ", TypeOf(object));
  std::string role;
  absl::Status status = ReadText(object, role_key, where, role);
  if (status.ok() && role.empty())
    status = Refuse(where, "`", role_key, "` is empty");
  if (status.ok())
    status = CheckContent(object, content_key, where);
  if (!status.ok())
    return status;
  const bool is_call = is_share_gpt && role == "function_call";
  if (is_share_gpt)
    role = RoleOf(role);
  const bool is_assistant = role == "assistant";
  bool learnt = is_answer;
  if (status = ReadLearnt(object, where, is_assistant, learnt); !status.ok())
    return status;
  Members members = {{Value("role"), Value(role)}};
  for (const auto &[key, value] : object.dict().entries) {
    const std::string &name = key.text();
    if (name == role_key || name == "weight" ||
        std::find(std::begin(kLearnt), std::end(kLearnt), name) != std::end(kLearnt))
      continue;
    const bool is_content = name == content_key;
    if (!is_content && IsAbsent(name, value))
      continue;
    if (name == "function_call" || (is_call && is_content)) {
      absl::StatusOr<Value> calls = CallOf(value, where);
      if (!calls.ok())
        return calls.status();
      members.emplace_back(Value("tool_calls"), *std::move(calls));
      if (is_content)
        members.emplace_back(Value("content"), Value(""));
    } else if (name == "tool_calls") {
      absl::StatusOr<std::vector<Value>> calls = ReadObjects(value, name, where);
      if (!calls.ok())
        return calls.status();
      members.emplace_back(key, Value::Sequence(*std::move(calls)));
    } else {
      members.emplace_back(is_content ? Value("content") : key, value);
    }
  }
  if (!is_assistant && !learnt)
    conversation.left_out.push_back(conversation.messages.size());
  conversation.messages.push_back(Value::Mapping(std::move(members)));
  conversation.learnt.push_back(is_assistant && learnt);
  return absl::OkStatus();
}

} // namespace

absl::Status ReadMessages(const Value &list, absl::string_view key, bool is_answer,
                          Conversation &conversation) {
  if (!list.is(Kind::list))
    return Refuse("expected `", key, "` to be a list but found ", TypeOf(list));
  if (list.list().items.empty())
    return Refuse("`", key, "` is empty");
  for (size_t i = 0; i < list.list().items.size(); ++i) {
    const Value &message = list.list().items[i];
    const bool is_share_gpt = key == "conversations" && !message.Find("role");
    absl::Status status =
        ReadMessage(message, is_share_gpt, is_answer,
                    absl::StrCat("message ", i + 1, " of `", key, "`: "), conversation);
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}

} // namespace boa::records
