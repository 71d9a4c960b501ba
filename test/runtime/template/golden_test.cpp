//===- golden_test.cpp - Templates render as by jinja2 --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/template/golden.h"

#include "gtest/gtest.h"

#include <fstream>
#include <iterator>
#include <vector>

using namespace boa;

namespace {

std::string Read(const std::string &name) {
  std::ifstream file(std::string(BOA_GOLDEN) + "/" + name, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// Whether ours is equal, but for the message.
void Compare(const nlohmann::json &wanted, nlohmann::json ours, const std::string &what) {
  const std::string message = ours.value("message", "");
  ours.erase("message");
  EXPECT_EQ(wanted, ours) << what << "\n" << message;
}

// Each template with each conversation: the same text, the same ranges, or a refusal by both.
TEST(TemplateGolden, Conversations) {
  const nlohmann::json expected = nlohmann::json::parse(Read("expected.json"));
  const absl::StatusOr<jinja::Value> inputs = jinja::Value::FromJson(Read("conversations.json"));
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  const std::vector<jinja::Value> &conversations = inputs->list().items;
  ASSERT_GE(conversations.size(), 20u);
  ASSERT_GE(expected.size(), 41u);
  for (const auto &[name, results] : expected.items()) {
    if (name == "snippets")
      continue;
    const auto chat = Template::Parse(Read("templates/" + name + ".jinja"), name);
    ASSERT_TRUE(chat.ok()) << chat.status();
    ASSERT_EQ(results.size(), conversations.size()) << name;
    for (size_t i = 0; i < results.size(); ++i)
      Compare(results[i], Outcome(chat, conversations[i]),
              absl::StrCat(name, " ", conversations[i].Find("about")->text()));
  }
}

// One construct each, also of those that Python refuses.
TEST(TemplateGolden, Snippets) {
  const nlohmann::json expected = nlohmann::json::parse(Read("expected.json"))["snippets"];
  const absl::StatusOr<jinja::Value> snippets = jinja::Value::FromJson(Read("snippets.json"));
  ASSERT_TRUE(snippets.ok()) << snippets.status();
  const std::vector<jinja::Value> &texts = snippets->Find("templates")->list().items;
  ASSERT_EQ(texts.size(), expected.size());
  for (size_t i = 0; i < texts.size(); ++i)
    Compare(expected[i],
            Outcome(Template::Parse(texts[i].text(), "snippet"), *snippets->Find("given")),
            texts[i].text());
}

} // namespace
