//===- chat_test.cpp - Conversations as Jinja renders them ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/formats/json.h"
#include "runtime/tokenizer/chat.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

#include <fstream>
#include <iterator>

using namespace boa;

namespace {

TEST(Chat, RendersAsJinja) {
  std::ifstream file(std::string(BOA_GOLDEN) + "/chat.json");
  absl::StatusOr<nlohmann::json> cases =
      ParseJson(std::string(std::istreambuf_iterator<char>(file), {}));
  ASSERT_TRUE(cases.ok()) << cases.status();
  size_t names = 0;
  std::string last;
  for (const nlohmann::json &entry : *cases) {
    const auto name = entry[0].get<std::string>();
    names += name != last;
    last = name;
    std::vector<ChatMessage> messages;
    for (const nlohmann::json &turn : entry[1])
      messages.push_back({turn[0].get<std::string>(), turn[1].get<std::string>()});
    absl::StatusOr<ChatTemplate> chat = ChatTemplate::Named(name);
    ASSERT_TRUE(chat.ok()) << chat.status();
    const absl::StatusOr<std::string> text =
        chat->Render(messages, entry[2].get<bool>(), "<bos>", "<eos>");
    // Null: the template refuses the conversation.
    EXPECT_EQ(text.ok(), !entry[3].is_null()) << name << text.status();
    if (text.ok() && !entry[3].is_null())
      EXPECT_EQ(*text, entry[3].get<std::string>()) << name;
  }
  EXPECT_EQ(names, ChatTemplate::Names().size());
}

TEST(Chat, Refusals) {
  const absl::Status unknown = ChatTemplate::Recognize("{{ messages }}", "a.gguf").status();
  EXPECT_TRUE(absl::StartsWith(
      unknown.message(),
      "`a.gguf`: its chat template is none of the known ones, which are chatml, smollm2"))
      << unknown;
  const ChatTemplate gemma = *ChatTemplate::Named("gemma");
  EXPECT_EQ(gemma.Render({{"system", "a"}, {"user", "b"}}, true, "", "").status().message(),
            "a conversation with a system message, which gemma does not have");
  EXPECT_EQ(gemma.Render({{"assistant", "a"}}, true, "", "").status().message(),
            "a conversation in which user and assistant do not take turns, as gemma has them");
  EXPECT_EQ(gemma.Render({{"tool", "a"}}, true, "", "").status().message(),
            "a conversation with the role `tool`; there are system, user and assistant");
  EXPECT_EQ(gemma.Render({}, true, "", "").status().message(),
            "a conversation without a message of the user");
}

} // namespace
