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
#include "absl/strings/string_view.h"

#include <string>
#include <utility>
#include <vector>

namespace boa::records {

using jinja::Value;
using Members = std::vector<std::pair<Value, Value>>;

Value Object(std::vector<std::pair<const char *, Value>> members);
Value Message(const char *role, std::string content);
/// The type of a value in JSON, for errors.
const char *TypeOf(const Value &);
/// Tables write a column that a record lacks as null, or as empty.
bool IsAbsent(const Value &);
/// A member that says something; null if it is absent, null or empty.
const Value *Given(const Value &object, absl::string_view key);
absl::Status ReadText(const Value &object, absl::string_view key, absl::string_view where,
                      std::string &text);

/// Adds the messages of a list. `is_answer`: those of the assistant are learnt.
absl::Status ReadMessages(const Value &list, absl::string_view key, bool is_answer,
                          Conversation &conversation);
/// Takes the columns of a record that are not its form, and checks the keys of its messages.
absl::Status TakeColumns(const Value &object, const TemplateChoice &, ChatRecord &record);

// Whether a message is learnt, as several programs write it.
inline constexpr const char *kLearnt[] = {"loss", "train", "trainable", "training"};
inline constexpr const char *kSystems[] = {"system", "system_prompt", "system_message"};
inline constexpr const char *kForms[] = {"messages",    "conversations", "prompt", "completion",
                                         "instruction", "input",         "output", "text"};

} // namespace boa::records

#endif // BOA_RUNTIME_DATA_RECORD_VALUES_H
