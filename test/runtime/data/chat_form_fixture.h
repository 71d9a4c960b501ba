//===- chat_form_fixture.h - What is learnt of a record -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_DATA_CHAT_FORM_FIXTURE_H
#define BOA_TEST_RUNTIME_DATA_CHAT_FORM_FIXTURE_H

#include "runtime/data/chat_form.h"
#include "runtime/data/conversation.h"
#include "runtime/data/records.h"
#include "runtime/formats/json.h"
#include "test/runtime/scratch.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <optional>
#include <string>
#include <vector>

namespace boa {

inline constexpr char kChatml[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

class ChatFormTest : public testing::Test {
protected:
  /// The texts to learn from, with brackets around what is learnt, and a bar between two of them.
  absl::StatusOr<std::string> Marked(const std::string &jinja, const std::string &line) {
    absl::StatusOr<Template> parsed = Template::Parse(jinja, "chat.jinja");
    if (!parsed.ok())
      return parsed.status();
    const ChatForm form(*parsed,
                        {{{"bos_token", "<s>"}, {"eos_token", "</s>"}}, std::nullopt, added});
    absl::StatusOr<ChatRecord> record = ParseRecord(line, [&](bool) { return &form.jinja(); });
    if (!record.ok())
      return record.status();
    absl::StatusOr<std::vector<ChatText>> texts = form.Answers(record->conversation);
    if (!texts.ok())
      return texts.status();
    std::string out;
    for (const ChatText &text : *texts) {
      size_t done = 0;
      absl::StrAppend(&out, out.empty() ? "" : "|");
      for (const auto &[begin, end] : text.targets) {
        absl::StrAppend(&out, text.text.substr(done, begin - done), "[",
                        text.text.substr(begin, end - begin), "]");
        done = end;
      }
      absl::StrAppend(&out, text.text.substr(done));
    }
    return out;
  }
  std::string Text(const std::string &jinja, const std::string &line) {
    const absl::StatusOr<std::string> text = Marked(jinja, line);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.value_or("");
  }
  std::string Error(const std::string &jinja, const std::string &line) {
    return std::string(Marked(jinja, line).status().message());
  }

  std::vector<std::string> added; // tokens of the tokenizer
  const std::string two = R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
      {"role": "assistant", "content": "d"}]})",
                    first_not = R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b", "train": false}, {"role": "user", "content": "c"},
      {"role": "assistant", "content": "d"}]})";
};

} // namespace boa

#endif // BOA_TEST_RUNTIME_DATA_CHAT_FORM_FIXTURE_H
