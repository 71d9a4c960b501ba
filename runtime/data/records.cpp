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
#include <utility>

namespace boa {
namespace {

using Json = nlohmann::json;

constexpr int64_t kBytesAtOnce = 1 << 20;
constexpr size_t kLongestLine = size_t{256} << 20;
constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

/// A member that says something; null if it is absent, null or empty.
const Json *Given(const Json &object, const char *key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() || (!found->is_string() && found->empty())
             ? nullptr
             : &*found;
}

absl::Status RefuseKeys(const Json &object, std::initializer_list<const char *> keys,
                        absl::string_view where) {
  for (const char *key : keys)
    if (Given(object, key))
      return Refuse(where, "`", key, "` changes what the model reads, and is not done");
  return absl::OkStatus();
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

absl::Status ReadMessage(const Json &object, bool is_share_gpt, const std::string &where,
                         ChatMessage &message) {
  if (!object.is_object())
    return Refuse(where, "expected an object with ",
                  is_share_gpt ? "`from` and `value`" : "`role` and `content`", " but found ",
                  object.type_name());
  absl::Status status =
      RefuseKeys(object, {"tool_calls", "function_call", "reasoning_content"}, where);
  if (status.ok())
    status = ReadText(object, is_share_gpt ? "from" : "role", where, message.role);
  if (status.ok())
    status = ReadText(object, is_share_gpt ? "value" : "content", where, message.content);
  if (!status.ok())
    return status;
  if (is_share_gpt && message.role == "human")
    message.role = "user";
  if (is_share_gpt && message.role == "gpt")
    message.role = "assistant";
  if (message.role != "system" && message.role != "user" && message.role != "assistant")
    return Refuse(where, "expected the role system, user or assistant but found `", message.role,
                  "`");
  if (const Json *weight = Given(object, "weight")) {
    const bool is_number = weight->is_number_integer() && (*weight == 0 || *weight == 1);
    if (!is_number)
      return Refuse(where, "expected `weight` to be 0 or 1");
    message.is_learnt = *weight == 1;
  }
  return absl::OkStatus();
}

absl::Status ReadMessages(const Json &list, const char *key, ChatRecord &record) {
  if (!list.is_array())
    return Refuse("expected `", key, "` to be a list but found ", list.type_name());
  if (list.empty())
    return Refuse("`", key, "` is empty");
  for (size_t i = 0; i < list.size(); ++i) {
    ChatMessage message;
    if (absl::Status status =
            ReadMessage(list[i], absl::string_view(key) == "conversations",
                        absl::StrCat("message ", i + 1, " of `", key, "`: "), message);
        !status.ok())
      return status;
    record.messages.push_back(std::move(message));
  }
  if (std::none_of(record.messages.begin(), record.messages.end(), [](const ChatMessage &message) {
        return message.role == "assistant" && message.is_learnt;
      }))
    return Refuse("no message of the assistant is to be learnt");
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
  if (absl::Status status = RefuseKeys(object, {"tools", "functions", "documents"}, "");
      !status.ok())
    return status;
  const auto messages = object.find("messages"), conversations = object.find("conversations");
  const bool has_messages = messages != object.end(),
             has_conversations = conversations != object.end(),
             has_pair = object.contains("prompt") || object.contains("completion");
  if (has_messages + has_conversations + has_pair != 1)
    return Refuse("expected ", has_messages || has_conversations || has_pair ? "only one of" : "",
                  has_messages || has_conversations || has_pair ? " " : "",
                  "`messages`, `conversations`, or `prompt` and `completion`");
  ChatRecord record;
  absl::Status status;
  if (has_pair) {
    record.is_pair = true;
    status = ReadText(object, "prompt", "", record.prompt);
    if (status.ok())
      status = ReadText(object, "completion", "", record.completion);
    if (status.ok() && record.completion.empty())
      status = Refuse("`completion` is empty");
  } else {
    status = has_messages ? ReadMessages(*messages, "messages", record)
                          : ReadMessages(*conversations, "conversations", record);
  }
  if (!status.ok())
    return status;
  return record;
}

absl::Status
ReadLines(const InputFile &file,
          const std::function<absl::Status(int64_t, absl::string_view, int64_t)> &take) {
  std::string block, line;
  int64_t number = 0;
  const auto end_line = [&](int64_t until) {
    ++number;
    absl::string_view text = line;
    if (number == 1 && text.substr(0, kByteOrderMark.size()) == kByteOrderMark)
      text.remove_prefix(kByteOrderMark.size());
    text = absl::StripAsciiWhitespace(text);
    const absl::Status status = text.empty() ? absl::OkStatus() : take(number, text, until);
    line.clear();
    return status;
  };
  for (int64_t at = 0; at < file.size();) {
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
