//===- records.cpp - Records of conversations -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/records.h"

#include "runtime/formats/json.h"
#include "runtime/support/refuse.h"
#include "runtime/tokenizer/unicode.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

namespace boa {
namespace {

using Json = nlohmann::json;

constexpr int64_t kBytesAtOnce = 1 << 20;
constexpr size_t kLongestLine = size_t{256} << 20;

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
constexpr Names kForms = {"messages", "conversations", "prompt", "completion"};
constexpr Names kSystems = {"system", "system_prompt", "system_message"};
// Whether a message is learnt, as several programs write it.
constexpr Names kLearnt = {"loss", "train", "trainable", "training"};
// Whether a record is a good answer (KTO).
constexpr Names kGood = {"kto_tag", "label"};

bool Has(Names names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Tables write a column that a record lacks as null, or as empty.
bool IsAbsent(const Json &value) {
  if (const auto *text = value.get_ptr<const std::string *>()) {
    const absl::string_view bare = absl::StripAsciiWhitespace(*text);
    return bare.empty() || bare == "[]" || bare == "{}";
  }
  return value.is_null() || (value.is_structured() && value.empty());
}

/// A member that says something; null if it is absent, null or empty.
const Json *Given(const Json &object, const char *key) {
  const auto found = object.find(key);
  return found == object.end() || IsAbsent(*found) ? nullptr : &*found;
}

absl::Status ReadText(const Json &object, const char *key, absl::string_view where,
                      std::string &text) {
  const auto found = object.find(key);
  if (found == object.end())
    return Refuse(where, "expected the key `", key, "`");
  if (!found->is_string())
    return Refuse(where, "expected `", key, "` to be a text but found ",
                  found->is_null() ? "null" : found->type_name());
  text = found->get<std::string>();
  return absl::OkStatus();
}

absl::Status RefuseColumn(absl::string_view where, absl::string_view key) {
  return Refuse(where, "`", key,
                "` changes what the model reads or learns, and is not done; where it should not "
                "count, remove it");
}

/// A column that repeats what is read says nothing new.
bool Repeats(const Json &value, const std::vector<ChatMessage> &messages) {
  const auto *text = value.get_ptr<const std::string *>();
  return text && std::any_of(messages.begin(), messages.end(),
                             [&](const ChatMessage &message) { return message.content == *text; });
}

/// Reads whether a message is learnt.
absl::Status ReadLearnt(const Json &object, absl::string_view where, ChatMessage &message) {
  if (const Json *weight = Given(object, "weight")) {
    if (*weight != 0 && *weight != 1)
      return Refuse(where, "expected `weight` to be 0 or 1");
    message.is_learnt = *weight == 1;
  }
  for (const char *key : kLearnt)
    if (const Json *flag = Given(object, key)) {
      if (!flag->is_boolean())
        return Refuse(where, "expected `", key, "` to be true or false");
      if (message.role != "assistant" && flag->get<bool>())
        return Refuse(where, "`", key, "` is true, but only messages of the assistant are learnt");
      message.is_learnt = message.is_learnt && flag->get<bool>();
    }
  return absl::OkStatus();
}

absl::Status ReadMessage(const Json &object, bool is_share_gpt, const std::string &where,
                         ChatRecord &record) {
  const char *role = is_share_gpt ? "from" : "role", *content = is_share_gpt ? "value" : "content";
  if (!object.is_object())
    return Refuse(where, "expected an object with `", role, "` and `", content, "` but found ",
                  object.type_name());
  for (const char *key : {"tool_calls", "function_call"}) // they have no content then
    if (Given(object, key))
      return RefuseColumn(where, key);
  ChatMessage message;
  absl::Status status = ReadText(object, role, where, message.role);
  if (status.ok())
    status = ReadText(object, content, where, message.content);
  if (!status.ok())
    return status;
  if (is_share_gpt && message.role == "human")
    message.role = "user";
  if (is_share_gpt && message.role == "gpt")
    message.role = "assistant";
  if (message.role != "system" && message.role != "user" && message.role != "assistant")
    return Refuse(where, "expected the role system, user or assistant but found `", message.role,
                  "`");
  if (status = ReadLearnt(object, where, message); !status.ok())
    return status;
  for (const auto &[key, value] : object.items()) {
    if (IsAbsent(value) || key == role || key == content || key == "weight" || Has(kLearnt, key))
      continue;
    if (!Has(kTexts, key) && !Has(kTextsOfMessage, key))
      record.unread.push_back(key);
    else if (value != false && !Repeats(value, {message}))
      return RefuseColumn(where, key);
  }
  record.messages.push_back(std::move(message));
  return absl::OkStatus();
}

absl::Status ReadMessages(const Json &list, const char *key, ChatRecord &record) {
  if (!list.is_array())
    return Refuse("expected `", key, "` to be a list but found ", list.type_name());
  if (list.empty())
    return Refuse("`", key, "` is empty");
  for (size_t i = 0; i < list.size(); ++i)
    if (absl::Status status =
            ReadMessage(list[i], absl::string_view(key) == "conversations",
                        absl::StrCat("message ", i + 1, " of `", key, "`: "), record);
        !status.ok())
      return status;
  if (std::none_of(record.messages.begin(), record.messages.end(), [](const ChatMessage &message) {
        return message.role == "assistant" && message.is_learnt;
      }))
    return Refuse("no message of the assistant is to be learnt");
  return absl::OkStatus();
}

/// A system prompt beside the messages is the first of them.
absl::Status ReadSystem(const Json &object, ChatRecord &record) {
  for (const char *key : kSystems) {
    if (!Given(object, key))
      continue;
    if (record.is_pair)
      return Refuse("`", key,
                    "` changes what the model reads, and a prompt has no place for it; "
                    "put it into `prompt`");
    ChatMessage system = {"system", "", true};
    if (absl::Status status = ReadText(object, key, "", system.content); !status.ok())
      return status;
    const ChatMessage &first = record.messages[0];
    if (first.role != "system")
      record.messages.insert(record.messages.begin(), std::move(system));
    else if (first.content != system.content)
      return Refuse("`", key,
                    "` differs from the system prompt that the messages have; remove one "
                    "of them");
  }
  return absl::OkStatus();
}

absl::Status CheckColumns(const Json &object, ChatRecord &record) {
  for (const auto &[key, value] : object.items()) {
    const bool is_form = Has(kForms, key) && (key != "prompt" || record.is_pair);
    if (IsAbsent(value) || is_form || Has(kSystems, key))
      continue;
    const bool is_text = Has(kTexts, key) || Has(kForms, key) || key == "weight" ||
                         ((Has(kGood, key) || Has(kLearnt, key)) && value.is_boolean());
    const bool says_no = value == false || value == 0;
    const bool is_neutral = Has(kTexts, key) ? says_no : value == true || value == 1;
    if (!is_text)
      record.unread.push_back(key);
    else if (!is_neutral && !Repeats(value, record.messages))
      return RefuseColumn("", key);
  }
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<ChatRecord> ParseRecord(absl::string_view line) {
  if (const size_t at = FindInvalidUtf8(line); at != absl::string_view::npos)
    return absl::InvalidArgumentError(absl::StrFormat(
        "byte %d of it is 0x%02x, which is not UTF-8 there", at, int(uint8_t(line[at]))));
  absl::StatusOr<Json> read = ParseJson(line);
  if (!read.ok())
    return read.status();
  const Json &object = *read;
  if (!object.is_object())
    return Refuse("expected one JSON object a line but found ", object.type_name());
  // Where several forms are there, those count that say something.
  const auto form_of = [&](auto is_there) {
    const bool has_messages = is_there("messages"), has_conversations = is_there("conversations");
    const bool has_pair =
        is_there("completion") || (is_there("prompt") && !has_messages && !has_conversations);
    return std::array<bool, 3>{has_messages, has_conversations, has_pair};
  };
  std::array<bool, 3> forms = form_of([&](const char *key) { return Given(object, key); });
  if (!forms[0] && !forms[1] && !forms[2])
    forms = form_of([&](const char *key) { return object.contains(key); });
  if (const int count = forms[0] + forms[1] + forms[2]; count != 1)
    return Refuse("expected ", count > 1 ? "only one of " : "",
                  "`messages`, `conversations`, or `prompt` and `completion`");
  ChatRecord record;
  absl::Status status;
  if (forms[2]) {
    record.is_pair = true;
    status = ReadText(object, "prompt", "", record.prompt);
    if (status.ok())
      status = ReadText(object, "completion", "", record.completion);
    if (status.ok() && record.completion.empty())
      status = Refuse("`completion` is empty");
  } else {
    const char *key = forms[0] ? "messages" : "conversations";
    status = ReadMessages(object[key], key, record);
  }
  if (status.ok())
    status = ReadSystem(object, record);
  if (status.ok())
    status = CheckColumns(object, record);
  if (!status.ok())
    return status;
  return record;
}

absl::Status
ReadLines(const InputFile &file,
          const std::function<absl::Status(int64_t, absl::string_view, int64_t)> &take) {
  absl::StatusOr<int64_t> begin_of_text = BeginOfText(file);
  if (!begin_of_text.ok())
    return begin_of_text.status();
  std::string block, line;
  int64_t number = 0;
  const auto end_line = [&](int64_t until) {
    ++number;
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    const absl::Status status = text.empty() ? absl::OkStatus() : take(number, text, until);
    line.clear();
    return status;
  };
  for (int64_t at = *begin_of_text; at < file.size();) {
    block.resize(size_t(std::min(kBytesAtOnce, file.size() - at)));
    if (absl::Status status = file.Read(at, block.data(), int64_t(block.size())); !status.ok())
      return status;
    for (size_t begin = 0; begin < block.size();) {
      const size_t end = std::min(block.find('\n', begin), block.size());
      if (line.size() + (end - begin) > kLongestLine)
        return Refuse("`", file.path(), "`, line ", number + 1, ": it has more than ",
                      kLongestLine >> 20, " MiB; expected one JSON object a line");
      line.append(block, begin, end - begin);
      if (end < block.size())
        if (absl::Status status = end_line(at + int64_t(end)); !status.ok())
          return status;
      begin = end + 1;
    }
    at += int64_t(block.size());
  }
  return line.empty() ? absl::OkStatus() : end_line(file.size());
}

} // namespace boa
