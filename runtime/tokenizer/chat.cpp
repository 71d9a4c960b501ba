//===- chat.cpp - Conversations as the text that a model was trained on ---===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/chat.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

namespace boa {

/// Text before and behind the message of a role. Null: there can be no such message.
struct ChatTurn {
  const char *open, *close;
};

struct ChatStyle {
  enum class System { own, none, before_first_user, before_last_user };
  const char *name;
  std::vector<uint64_t> templates; // hashes
  ChatTurn system, user, assistant;
  const char *ask;            // before an answer
  const char *default_system; // null: none
  System place = System::own;
  bool bos = false;        // before the text
  bool eos = false;        // behind an answer
  bool trim = false;       // white space around contents goes
  bool alternates = false; // user and assistant take turns, the user first
};

namespace {

const std::vector<ChatStyle> &Styles() {
  using System = ChatStyle::System;
  const ChatTurn chatml_system = {"<|im_start|>system\n", "<|im_end|>\n"},
                 chatml_user = {"<|im_start|>user\n", "<|im_end|>\n"},
                 chatml_assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"};
  const ChatTurn llama_user = {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
                 llama_assistant = {"<|start_header_id|>assistant<|end_header_id|>\n\n",
                                    "<|eot_id|>"};
  const ChatTurn gemma_user = {"<start_of_turn>user\n", "<end_of_turn>\n"},
                 gemma_model = {"<start_of_turn>model\n", "<end_of_turn>\n"};
  const auto style = [](const char *name, std::vector<uint64_t> templates, ChatTurn system,
                        ChatTurn user, ChatTurn assistant, const char *ask,
                        const char *default_system, System place) {
    ChatStyle out;
    out.name = name;
    out.templates = std::move(templates);
    out.system = system;
    out.user = user;
    out.assistant = assistant;
    out.ask = ask;
    out.default_system = default_system;
    out.place = place;
    return out;
  };
  static const std::vector<ChatStyle> styles = [&] {
    std::vector<ChatStyle> all;
    const auto chatml = [&](const char *name, std::vector<uint64_t> templates,
                            const char *default_system) {
      all.push_back(style(name, std::move(templates), chatml_system, chatml_user, chatml_assistant,
                          "<|im_start|>assistant\n", default_system, System::own));
    };
    chatml("chatml", {0xa04f41d813a07b13}, nullptr);
    chatml("smollm2", {0x99ab995e9629dacd},
           "You are a helpful AI assistant named SmolLM, trained by Hugging Face");
    chatml("qwen2", {0x20f20c2b5139eaee}, "You are a helpful assistant");
    chatml("qwen2.5", {0xf9a29021c9d093ad},
           "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.");

    all.push_back(style("llama3", {0x9799ad6e2dea0594},
                        {"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
                        llama_user, llama_assistant, llama_assistant.open, nullptr, System::own));
    all.back().bos = all.back().trim = true;
    all.push_back(style("llama3.1", {0xda8ae4616203881a, 0xda8ae4616203881a},
                        {"<|start_header_id|>system<|end_header_id|>\n\n"
                         "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n",
                         "<|eot_id|>"},
                        llama_user, llama_assistant, llama_assistant.open, "", System::own));
    all.back().bos = all.back().trim = true;

    // The first Gemma leaves <bos> to the tokenizer.
    for (const bool second : {false, true}) {
      all.push_back(style(second ? "gemma2" : "gemma",
                          {second ? 0x2c2e86beabccd2a4 : 0xfdd35ed9cae1163e}, {nullptr, nullptr},
                          gemma_user, gemma_model, gemma_model.open, nullptr, System::none));
      all.back().bos = second;
      all.back().trim = all.back().alternates = true;
    }

    const auto mistral = [&](const char *name, std::vector<uint64_t> templates, ChatTurn user,
                             ChatTurn assistant, System place) {
      all.push_back(
          style(name, std::move(templates), {"", "\n\n"}, user, assistant, "", nullptr, place));
      all.back().bos = all.back().eos = all.back().alternates = true;
    };
    mistral("mistral-v0.2", {0xa5d004210ebce758}, {"[INST] ", " [/INST]"}, {"", ""}, System::none);
    mistral("mistral-v1", {0xfa42ef759a4066ef}, {" [INST] ", " [/INST]"}, {" ", ""},
            System::before_first_user);
    mistral("mistral-nemo", {0xa5438a4278f4c2ee}, {"[INST]", "[/INST]"}, {"", ""},
            System::before_last_user);
    mistral("mistral-v7", {0x11381d1c62000f60}, {"[INST] ", "[/INST]"}, {" ", ""}, System::own);
    all.back().system = {"[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"};
    all.back().alternates = false;
    return all;
  }();
  return styles;
}

/// Files write newlines of the Jinja text in two ways.
uint64_t HashOf(absl::string_view jinja) {
  const std::string text = absl::StrReplaceAll(absl::StripAsciiWhitespace(jinja), {{"\\n", "\n"}});
  return XXH3_64bits(text.data(), text.size());
}

absl::Status RefuseConversation(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("a conversation ", what));
}

} // namespace

std::vector<std::string> ChatTemplate::Names() {
  std::vector<std::string> names;
  for (const ChatStyle &style : Styles())
    names.push_back(style.name);
  return names;
}

absl::StatusOr<ChatTemplate> ChatTemplate::Named(absl::string_view name) {
  for (const ChatStyle &style : Styles())
    if (name == style.name)
      return ChatTemplate(style);
  return absl::InvalidArgumentError(
      absl::StrCat("no chat template `", name, "`; there are ", absl::StrJoin(Names(), ", ")));
}

absl::StatusOr<ChatTemplate> ChatTemplate::Recognize(absl::string_view jinja,
                                                     const std::string &source) {
  const uint64_t hash = HashOf(jinja);
  for (const ChatStyle &style : Styles())
    if (std::find(style.templates.begin(), style.templates.end(), hash) != style.templates.end())
      return ChatTemplate(style);
  return absl::InvalidArgumentError(absl::StrCat(
      "`", source, "`: ",
      jinja.empty() ? "it has no chat template" : "its chat template is none of the known ones",
      ", which are ", absl::StrJoin(Names(), ", ")));
}

std::string ChatTemplate::name() const { return style->name; }

std::string ChatTemplate::Marks() const {
  const auto text = [](const char *part) { return part ? part : ""; };
  std::string all;
  for (const ChatTurn &turn : {style->system, style->user, style->assistant})
    absl::StrAppend(&all, text(turn.open), "\n", text(turn.close), "\n");
  return all;
}

std::string ChatTemplate::EndOfAnswer() const {
  return style->eos ? "" : std::string(absl::StripTrailingAsciiWhitespace(style->assistant.close));
}

bool ChatTemplate::BeginsWithBos() const { return style->bos; }

absl::StatusOr<std::string> ChatTemplate::Render(const std::vector<ChatMessage> &messages, bool ask,
                                                 absl::string_view bos,
                                                 absl::string_view eos) const {
  absl::StatusOr<std::vector<ChatPart>> parts = Parts(messages, ask, bos, eos);
  if (!parts.ok())
    return parts.status();
  std::string out;
  for (const ChatPart &part : *parts)
    out += part.text;
  return out;
}

absl::StatusOr<std::vector<ChatPart>> ChatTemplate::Parts(const std::vector<ChatMessage> &messages,
                                                          bool ask, absl::string_view bos,
                                                          absl::string_view eos) const {
  using System = ChatStyle::System;
  size_t first = 0;
  ChatPart system;
  bool has_system = style->default_system != nullptr;
  if (has_system)
    system.text = style->default_system;
  const auto content_of = [&](const ChatMessage &message) {
    return ChatPart{std::string(style->trim ? absl::StripAsciiWhitespace(message.content)
                                            : absl::string_view(message.content)),
                    /*is_content=*/true, message.role == "assistant" && message.is_learnt};
  };
  if (!messages.empty() && messages[0].role == "system") {
    if (style->place == System::none)
      return RefuseConversation(
          absl::StrCat("with a system message, which ", name(), " does not have"));
    has_system = true;
    system = content_of(messages[0]);
    first = 1;
  }
  if (first == messages.size())
    return RefuseConversation("without a message of the user");

  std::vector<ChatPart> out;
  const auto add = [&](absl::string_view text, bool is_target = false) {
    out.push_back({std::string(text), /*is_content=*/false, is_target});
  };
  const auto add_system = [&] {
    add(style->system.open);
    out.push_back(system);
    add(style->system.close);
  };
  if (style->bos)
    add(bos);
  if (has_system && style->place == System::own)
    add_system();
  size_t system_at = first; // of the message that it is put into
  if (style->place == System::before_last_user)
    system_at = messages.size() - 1;
  for (size_t i = first; i < messages.size(); ++i) {
    const ChatMessage &message = messages[i];
    const bool is_user = message.role == "user";
    if (!is_user && message.role != "assistant")
      return RefuseConversation(message.role == "system"
                                    ? "whose system message is not the first"
                                    : absl::StrCat("with the role `", message.role,
                                                   "`; there are system, user and assistant"));
    if (style->alternates && is_user != ((i - first) % 2 == 0))
      return RefuseConversation(
          absl::StrCat("in which user and assistant do not take turns, as ", name(), " has them"));
    const ChatPart content = content_of(message);
    if (is_user) {
      add(style->user.open);
      if (has_system && style->place != System::own && i == system_at)
        add_system();
      out.push_back(content);
      add(style->user.close);
      continue;
    }
    // What stands before an answer when one is asked for is not the model's to write. Nor is the
    // white space behind the mark of its end.
    const absl::string_view open = style->assistant.open, close = style->assistant.close;
    const size_t asked = std::min(absl::string_view(style->ask).size(), open.size());
    const size_t ends = absl::StripTrailingAsciiWhitespace(close).size();
    add(open.substr(0, asked));
    add(open.substr(asked), content.is_target);
    out.push_back(content);
    add(close.substr(0, ends), content.is_target);
    add(close.substr(ends));
    if (style->eos)
      add(eos, content.is_target);
  }
  if (ask)
    add(style->ask);
  return out;
}

} // namespace boa
