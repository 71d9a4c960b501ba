//===- chat_fixture.h - A model that answers --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_GENERATE_CHAT_FIXTURE_H
#define BOA_TEST_RUNTIME_GENERATE_CHAT_FIXTURE_H

#include "test/runtime/trainer/trainer_fixture.h"

#include "nlohmann/json.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace boa {

/// A chat model: behind token t comes (5 t + 3) % 64, and a new line is token 1. So an answer is
/// the tokens 8, 43, 26, 5, 28 and so on.
class ChatTest : public TrainerTest {
protected:
  ChatTest() {
    linear.steps = 100;
    EXPECT_TRUE(Run().ok());
    program = *ParseProgram(linear::PredictDescriptor());
    std::filesystem::create_directory(scratch.path("m"));
    Write("tokenizer_config.json", {{"eos_token", "<s>"}, {"chat_template", kChatml}});
    WriteTokenizer({{1, "\u010a"}, {8, "y"}, {43, "e"}, {5, "S"}, {28, "T"}},
                   {{26, "<|im_end|>"}, {0, "<|im_start|>"}, {3, "<s>"}});
  }

  using Json = nlohmann::json;
  using Tokens = std::map<int, std::string>;
  void Write(const std::string &name, const Json &json) { scratch.Write("m/" + name, json.dump()); }
  /// The other tokens are letters.
  void WriteTokenizer(Tokens tokens, const Tokens &special, bool normalizes = false) {
    Json added = Json::array(), vocab = Json::object();
    for (const auto &[id, text] : special)
      added.push_back(
          {{"id", id}, {"content", text}, {"special", true}, {"normalized", normalizes}});
    for (const auto &[id, text] : tokens)
      vocab[text] = id;
    int id = 0;
    for (char letter :
         std::string("abcdefghijklmnopqrstuvwxyz<|_>0123456789ABCDEFGHIJKLMNOPQRSTUVW")) {
      while (tokens.count(id) || special.count(id))
        ++id;
      if (id < 64 && !vocab.contains(std::string(1, letter)))
        vocab[std::string(1, letter)] = id++;
    }
    const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
    Json all = {{"added_tokens", added},
                {"pre_tokenizer", bytes},
                {"decoder", bytes},
                {"model", {{"type", "BPE"}, {"merges", Json::array()}, {"vocab", vocab}}}};
    if (normalizes)
      all["normalizer"] = {{"type", "Lowercase"}};
    Write("tokenizer.json", all);
  }

  static constexpr char kChatml[] =
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
      "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
      "'<|im_start|>assistant\\n' }}{% endif %}";
  Program program;
};

} // namespace boa

#endif // BOA_TEST_RUNTIME_GENERATE_CHAT_FIXTURE_H
