//===- records.h - Records of conversations ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file of records has one JSON object a line. The forms that are read:
//
//   {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}
//   {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}]}
//   {"prompt": "...", "completion": "..."}
//   {"prompt": [{"role": "user", ...}], "completion": [{"role": "assistant", ...}]}
//   {"instruction": "...", "input": "...", "output": "..."}
//   {"text": "..."}
//
// The content of a message is a text, or a list of parts {"type": "text", "text": "..."}. All else
// in a message goes to the template as it is. The instruction of Alpaca is the message of a user;
// the input follows it on a line of its own.
//
// An answer with `"weight": 0` or `"train": false` is not learnt. `system` beside the messages is
// their first one. `tools`, `functions`, `documents` and the members of `chat_template_kwargs` are
// variables of the template, and so is any other column that has the name of one. What a template
// gets from the conversation or the tokenizer is refused as a variable.
//
// A column that is null or empty counts as absent. Some columns may change what the model reads or
// learns (record_columns.cpp). Such a column is refused if neither we nor the template reads it.
// All others, such as an id, are not read, and the record names them.
//
// ParseRecord does not render. So ChatForm refuses such a key of a message, such a text or list as
// a variable, and tools, if the template writes the same text without it (record_reads.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_RECORDS_H
#define BOA_RUNTIME_DATA_RECORDS_H

#include "runtime/io/input_file.h"
#include "runtime/tokenizer/chat.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace boa {

struct ChatRecord {
  Conversation conversation;
  bool is_pair = false; // a prompt and its completion instead; a text has no prompt
  std::string prompt, completion;
  std::vector<const char *> form;  // the columns that were read as such
  std::vector<std::string> unread; // those that only describe
};

/// The template of conversations with tools, or without; null if there is none.
using TemplateChoice = std::function<const Template *(bool tools)>;

/// Errors do not name the file and the line.
absl::StatusOr<ChatRecord> ParseRecord(absl::string_view line, const TemplateChoice & = {});

/// Calls `take` with each line that is not blank: its number from 1, its text, and the bytes of
/// the file until its end. Memory is that of the longest line, which may have 256 MiB. An error of
/// `take` ends it.
absl::Status
ReadLines(const InputFile &,
          const std::function<absl::Status(int64_t, absl::string_view, int64_t)> &take);

} // namespace boa

#endif // BOA_RUNTIME_DATA_RECORDS_H
