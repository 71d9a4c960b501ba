//===- record_values.h - What records are made of ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_RECORD_VALUES_H
#define BOA_RUNTIME_DATA_RECORD_VALUES_H

#include "runtime/data/records.h"
#include "runtime/template/value.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace boa::records {

using jinja::Value;
using Members = std::vector<std::pair<Value, Value>>;

Value Object(std::vector<std::pair<const char *, Value>> members);
Value Message(const char *role, Value content);
/// The object with another value of one member, if it has that.
Value With(const Value &object, absl::string_view name, const Value &value);
Value Without(const Value &object, absl::string_view name);
/// The type of a value in JSON, for errors.
const char *TypeOf(const Value &);
/// Whether the value is this number, or the boolean that it stands for.
bool Is(const Value &, double number);
/// Tables write a column that a record lacks as null, or as empty. The columns that hold JSON may
/// be an empty list or object in a text.
bool IsAbsent(absl::string_view key, const Value &);
/// A member that says something; null if it is absent, null or empty.
const Value *Given(const Value &object, absl::string_view key);
absl::Status ReadText(const Value &object, absl::string_view key, absl::string_view where,
                      std::string &text);
/// A list of objects. Tables may hold the list, or each object, as JSON in a text.
absl::StatusOr<std::vector<Value>> ReadObjects(const Value &list, absl::string_view key,
                                               absl::string_view where);

/// Adds the messages of a list. `is_answer`: those of the assistant are learnt.
absl::Status ReadMessages(const Value &list, absl::string_view key, bool is_answer,
                          Conversation &conversation);
/// Takes the columns of a record that are not its form, and checks the keys of its messages.
absl::Status TakeColumns(const Value &object, const TemplateChoice &, ChatRecord &record);

/// What a member of a record or of a message says.
enum class Meaning {
  nothing,   // new: it repeats what is read, or says what holds without it
  counts,    // it may change what is read or learnt
  describes, // an id or a source, which no model reads
};
Meaning MeaningOfColumn(absl::string_view key, const Value &);
Meaning MeaningInMessage(const Value &message, absl::string_view key, const Value &);

absl::Status RefuseUnread(absl::string_view where, absl::string_view key, bool has_template);
/// Refuses a conversation with a member that counts, if the template writes the same text without
/// it. `render` gives the text of a conversation.
absl::Status CheckRead(const Conversation &,
                       const std::function<absl::StatusOr<Rendered>(const Conversation &)> &render);

// Whether a message is learnt, as several programs write it.
inline constexpr const char *kLearnt[] = {"loss", "train", "trainable", "training"};
inline constexpr const char *kSystems[] = {"system", "system_prompt", "system_message"};

} // namespace boa::records

#endif // BOA_RUNTIME_DATA_RECORD_VALUES_H
