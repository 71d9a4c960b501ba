//===- records.cpp - Records of conversations -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/records.h"

#include "runtime/data/record_values.h"
#include "runtime/support/refuse.h"
#include "runtime/tokenizer/unicode.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <utility>

namespace boa {

using jinja::Kind;
using jinja::Value;
using namespace records;

namespace {

constexpr int64_t kBytesAtOnce = 1 << 20;
constexpr size_t kLongestLine = size_t{256} << 20;

/// A form, by the columns that it has.
enum class Form { messages, conversations, pair, alpaca, text };

/// The forms of which a record has columns. A column may also stand beside another form.
template <typename Test> std::vector<Form> FormsOf(const Test &has) {
  std::vector<Form> forms;
  if (has("messages"))
    forms.push_back(Form::messages);
  if (has("conversations"))
    forms.push_back(Form::conversations);
  if (has("completion"))
    forms.push_back(Form::pair);
  for (auto [key, form] : {std::pair("instruction", Form::alpaca), std::pair("prompt", Form::pair),
                           std::pair("text", Form::text)})
    if (forms.empty() && has(key))
      forms.push_back(form);
  return forms;
}

/// A side of a pair where one of both is a list: messages, or the text of one.
absl::Status ReadSide(const Value &object, const char *key, bool is_answer,
                      Conversation &conversation) {
  const Value *side = object.Find(key);
  if (side && side->is(Kind::list))
    return ReadMessages(*side, key, is_answer, conversation);
  std::string text;
  if (absl::Status status = ReadText(object, key, "", text); !status.ok())
    return status;
  conversation.messages.push_back(
      Message(is_answer ? "assistant" : "user", Value(std::move(text))));
  conversation.learnt.push_back(is_answer);
  return absl::OkStatus();
}

absl::Status ReadPair(const Value &object, ChatRecord &record) {
  const Value *prompt = object.Find("prompt"), *completion = object.Find("completion");
  if ((prompt && prompt->is(Kind::list)) || (completion && completion->is(Kind::list))) {
    absl::Status status = ReadSide(object, "prompt", false, record.conversation);
    return status.ok() ? ReadSide(object, "completion", true, record.conversation) : status;
  }
  record.is_pair = true;
  absl::Status status = ReadText(object, "prompt", "", record.prompt);
  if (status.ok())
    status = ReadText(object, "completion", "", record.completion);
  if (status.ok() && record.completion.empty())
    status = Refuse("`completion` is empty");
  return status;
}

/// The input, where there is one, stands on a line of its own behind the instruction.
absl::Status ReadAlpaca(const Value &object, Conversation &conversation) {
  std::string instruction, input, output;
  absl::Status status = ReadText(object, "instruction", "", instruction);
  if (status.ok() && Given(object, "input"))
    status = ReadText(object, "input", "", input);
  if (status.ok())
    status = ReadText(object, "output", "", output);
  if (!status.ok())
    return status;
  if (output.empty())
    return Refuse("`output` is empty");
  if (!input.empty())
    absl::StrAppend(&instruction, "\n", input);
  conversation.messages = {Message("user", Value(std::move(instruction))),
                           Message("assistant", Value(std::move(output)))};
  conversation.learnt = {false, true};
  return absl::OkStatus();
}

absl::Status ReadForm(const Value &object, Form form, ChatRecord &record) {
  Conversation &conversation = record.conversation;
  switch (form) {
  case Form::messages:
  case Form::conversations: {
    const char *key = form == Form::messages ? "messages" : "conversations";
    record.form = {key};
    return ReadMessages(*object.Find(key), key, /*is_answer=*/true, conversation);
  }
  case Form::pair:
    record.form = {"prompt", "completion"};
    return ReadPair(object, record);
  case Form::alpaca:
    record.form = {"instruction", "input", "output"};
    return ReadAlpaca(object, conversation);
  case Form::text:
    record.form = {"text"};
    record.is_pair = true;
    absl::Status status = ReadText(object, "text", "", record.completion);
    if (status.ok() && record.completion.empty())
      status = Refuse("`text` is empty");
    return status;
  }
  return absl::OkStatus();
}

/// A system prompt beside the messages is the first of them.
absl::Status ReadSystem(const Value &object, ChatRecord &record) {
  for (const char *key : kSystems) {
    if (!Given(object, key))
      continue;
    if (record.is_pair)
      return Refuse("`", key,
                    "` changes what the model reads, and a prompt has no place for it; "
                    "put it into `prompt`");
    std::string system;
    if (absl::Status status = ReadText(object, key, "", system); !status.ok())
      return status;
    Conversation &conversation = record.conversation;
    const Value &first = conversation.messages[0], *content = first.Find("content");
    if (first.Find("role")->text() != "system") {
      conversation.messages.insert(conversation.messages.begin(), Message("system", Value(system)));
      conversation.learnt.insert(conversation.learnt.begin(), false);
      for (size_t &message : conversation.left_out)
        ++message;
    } else if (!content || !content->is(Kind::text) || content->text() != system) {
      return Refuse("`", key,
                    "` differs from the system prompt that the messages have; remove one "
                    "of them");
    }
  }
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<ChatRecord> ParseRecord(absl::string_view line, const TemplateChoice &choice) {
  if (const size_t at = FindInvalidUtf8(line); at != absl::string_view::npos)
    return absl::InvalidArgumentError(absl::StrFormat(
        "byte %d of it is 0x%02x, which is not UTF-8 there", at, int(uint8_t(line[at]))));
  absl::StatusOr<Value> read = Value::FromJson(line, /*keep_long=*/true);
  if (!read.ok())
    return read.status();
  const Value &object = *read;
  if (!object.is(Kind::dict))
    return Refuse("expected one JSON object a line but found ", TypeOf(object));
  // Where several forms are there, those count that say something.
  std::vector<Form> forms = FormsOf([&](const char *key) { return Given(object, key); });
  if (forms.empty())
    forms = FormsOf([&](const char *key) { return object.Find(key); });
  const bool asks_alone = forms == std::vector{Form::pair} && !object.Find("completion");
  if ((forms.empty() || asks_alone) && Given(object, "chosen") && Given(object, "rejected"))
    return Refuse("`chosen` and `rejected` are preferences, which are not done; with `prompt` and "
                  "`completion`, an answer is learnt");
  if (forms.size() != 1)
    return Refuse("expected ", forms.empty() ? "" : "only one of ",
                  "`messages`, `conversations`, `prompt` and `completion`, `instruction` and "
                  "`output`, or `text`");
  ChatRecord record;
  absl::Status status = ReadForm(object, forms[0], record);
  const std::vector<bool> &learnt = record.conversation.learnt;
  if (status.ok() && !record.is_pair &&
      std::find(learnt.begin(), learnt.end(), true) == learnt.end())
    status = Refuse("no message of the assistant is to be learnt");
  if (status.ok())
    status = TakeColumns(object, choice, record);
  if (status.ok())
    status = ReadSystem(object, record);
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
