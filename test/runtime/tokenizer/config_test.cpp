//===- config_test.cpp - The files beside a tokenizer.json ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/readers.h"
#include "runtime/tokenizer/tokenizer.h"

#include "test/runtime/scratch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <filesystem>

using namespace boa;

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kTokenizer[] = R"({"added_tokens": [{"id": 3, "content": "<s>", "special": true},
  {"id": 4, "content": "</s>", "special": true}, {"id": 5, "content": "<|im_end|>", "special": true}],
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "merges": [], "vocab": {"a": 0, "b": 1, "c": 2}}})";

class BesideTest : public testing::Test {
protected:
  using Files = std::vector<std::pair<std::string, std::string>>;

  /// The tokenizer of a folder with these files beside it.
  absl::StatusOr<std::shared_ptr<const Tokenizer>> Open(const Files &files) {
    std::filesystem::remove_all(scratch.path("m"));
    std::filesystem::create_directory(scratch.path("m"));
    scratch.Write("m/tokenizer.json", kTokenizer);
    for (const auto &[name, text] : files)
      scratch.Write("m/" + name, text);
    return Tokenizer::Open(scratch.path("m/tokenizer.json"));
  }
  std::string Error(const Files &files) { return std::string(Open(files).status().message()); }
  static std::vector<int32_t> EndsOf(const Tokenizer &tokenizer) {
    std::vector<int32_t> ends;
    for (int32_t id = -1; id < tokenizer.size(); ++id)
      if (tokenizer.Ends(id))
        ends.push_back(id);
    return ends;
  }

  Scratch scratch{FastDirectory()};
};

TEST_F(BesideTest, AnyFileNamesTheEndOfADocument) {
  EXPECT_EQ((*Open({}))->eos(), -1);
  const Files each = {
      {"tokenizer_config.json", R"({"eos_token": "</s>"})"},
      {"tokenizer_config.json", R"({"eos_token": {"content": "</s>", "lstrip": true}})"},
      {"special_tokens_map.json", R"({"eos_token": "</s>"})"},
      {"special_tokens_map.json", R"({"eos_token": {"content": "</s>"}})"},
      {"config.json", R"({"eos_token_id": 4, "bos_token_id": 3})"},
      {"config.json", R"({"eos_token_id": [4, 5]})"},
      {"generation_config.json", R"({"eos_token_id": 4})"},
      {"generation_config.json", R"({"eos_token_id": [4]})"}};
  for (const auto &file : each) {
    const auto tokenizer = Open({file});
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ((*tokenizer)->eos(), 4) << file.second;
    EXPECT_THAT((*tokenizer)->notes(), IsEmpty());
  }
  // A file that says nothing of it leaves it to the next.
  const auto next = Open({{"tokenizer_config.json", R"({"eos_token": null, "bos_token": "<s>"})"},
                          {"config.json", R"({"eos_token_id": null})"},
                          {"generation_config.json", R"({"eos_token_id": 5})"}});
  EXPECT_EQ((*next)->eos(), 5);
  EXPECT_EQ((*next)->bos(), 3);
}

TEST_F(BesideTest, TheFirstFileHoldsAndOthersAreCompared) {
  const auto tokenizer = Open({{"tokenizer_config.json", R"({"eos_token": "</s>"})"},
                               {"special_tokens_map.json", R"({"eos_token": "<s>"})"},
                               {"config.json", R"({"eos_token_id": 5})"},
                               {"generation_config.json", R"({"eos_token_id": [5, 4]})"}});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->eos(), 4);
  EXPECT_THAT((*tokenizer)->notes(),
              ElementsAre(HasSubstr("m/tokenizer_config.json` ends a document with `</s>`, `"),
                          HasSubstr("m/config.json` with `<|im_end|>`: the former holds")));
  EXPECT_THAT((*tokenizer)->notes()[0], HasSubstr("special_tokens_map.json` with `<s>`"));
}

TEST_F(BesideTest, WhatIsNoTokenIsLeftOutOrRefused) {
  const auto tokenizer = Open({{"special_tokens_map.json", R"({"eos_token": "<end>"})"},
                               {"config.json", R"({"eos_token_id": [50256, -1, 5]})"}});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->eos(), 5);
  EXPECT_THAT((*tokenizer)->notes(),
              ElementsAre(HasSubstr("`eos_token` is `<end>`, which is no token: it is left out"),
                          HasSubstr("`eos_token_id` is 50256, which the tokenizer does not have")));
  // The number of a word, as another vocabulary's default has it.
  const auto word = Open({{"config.json", R"({"eos_token_id": 1})"}});
  ASSERT_TRUE(word.ok()) << word.status();
  EXPECT_EQ((*word)->eos(), -1);
  EXPECT_THAT(EndsOf(**Open({{"generation_config.json", R"({"eos_token_id": 1})"}})),
              ElementsAre(1));
  EXPECT_THAT((*word)->notes(),
              ElementsAre(HasSubstr(", which is no added token: it is left out")));
  EXPECT_THAT(Error({{"tokenizer_config.json", R"({"eos_token": "<end>"})"}}),
              HasSubstr("`eos_token` is `<end>`, which is no token"));
  EXPECT_THAT(
      Error({{"config.json", R"({"eos_token_id": "</s>"})"}}),
      HasSubstr("config.json`: `eos_token_id`: expected the number of a token, or a list of "
                "them, but found \"</s>\""));
  EXPECT_THAT(Error({{"generation_config.json", "{"}}),
              HasSubstr("generation_config.json`: no JSON"));
}

// As transformers does: the ids of generation_config.json, and those of config.json where it has
// none.
TEST_F(BesideTest, AModelsTextEndsAtEachNamedToken) {
  const std::pair<std::string, std::string> config = {"config.json", R"({"eos_token_id": 3})"},
                                            end = {"tokenizer_config.json",
                                                   R"({"eos_token": "</s>"})"};
  EXPECT_THAT(EndsOf(**Open({end})), ElementsAre(4));
  EXPECT_THAT(EndsOf(**Open({end, config})), ElementsAre(3, 4));
  EXPECT_THAT(
      EndsOf(**Open({end, config, {"generation_config.json", R"({"eos_token_id": [4, 5]})"}})),
      ElementsAre(4, 5));
  EXPECT_THAT(EndsOf(**Open({end, config, {"generation_config.json", R"({"eos_token_id": 5})"}})),
              ElementsAre(4, 5));
  EXPECT_THAT(EndsOf(**Open({end, config, {"generation_config.json", R"({"top_k": 5})"}})),
              ElementsAre(3, 4));
}

// What tokens are made of has a print. A name of a file that does not decide is no part of it.
TEST_F(BesideTest, ThePartsAreThoseThatDecide) {
  const auto parts = [&](const Files &files) {
    EXPECT_TRUE(Open(files).ok());
    return *PartsBeside(scratch.path("m"));
  };
  const std::pair<std::string, std::string> end = {"tokenizer_config.json",
                                                   R"({"eos_token": "</s>", "bos_token": "<s>"})"},
                                            config = {"config.json", R"({"eos_token_id": 4})"};
  EXPECT_EQ(parts({end}), parts({end, config}));
  EXPECT_NE(parts({}), parts({config}));
  // The first file names no end here, so the second one decides.
  for (const char *none :
       {R"({"eos_token": ""})", R"({"eos_token": {"content": ""}})", R"({"eos_token": null})"})
    EXPECT_NE(parts({{"tokenizer_config.json", none}}),
              parts({{"tokenizer_config.json", none}, config}))
        << none;
  EXPECT_NE(parts({{"config.json", R"({"eos_token_id": 5})"}}), parts({config}));
  EXPECT_EQ(parts({{"config.json", R"({"eos_token_id": 4, "vocab_size": 9})"}}), parts({config}));
}

// The hub's cache: snapshots of links to blobs.
TEST_F(BesideTest, LinksOfTheHubsCacheAreFollowed) {
  namespace fs = std::filesystem;
  const std::string model = scratch.path("models--a--b"), snapshot = model + "/snapshots/rev";
  fs::create_directories(snapshot + "/chat");
  fs::create_directories(model + "/blobs");
  scratch.Write("models--a--b/blobs/00ff", kTokenizer);
  scratch.Write("models--a--b/blobs/01ff", R"({"eos_token": "</s>"})");
  scratch.Write("models--a--b/blobs/02ff", "a template");
  const auto link = [&](const std::string &folder, const std::string &up) {
    fs::create_symlink(up + "blobs/00ff", folder + "/tokenizer.json");
    fs::create_symlink(up + "blobs/01ff", folder + "/tokenizer_config.json");
    fs::create_symlink(up + "blobs/02ff", folder + "/chat_template.jinja");
  };
  link(snapshot, "../../");
  link(snapshot + "/chat", "../../../"); // a folder of the repository
  fs::create_symlink(snapshot, scratch.path("mine"));
  for (const std::string &folder : {snapshot, snapshot + "/chat", scratch.path("mine")}) {
    const auto tokenizer = Tokenizer::Open(folder + "/tokenizer.json");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ((*tokenizer)->eos(), 4);
    EXPECT_EQ((*tokenizer)->chat_template(), "a template");
  }
}

TEST_F(BesideTest, OtherLinksAreRefused) {
  namespace fs = std::filesystem;
  const std::string model = scratch.path("models--a--b"), snapshot = model + "/snapshots/rev";
  const std::string config = snapshot + "/tokenizer_config.json";
  fs::create_directories(snapshot);
  fs::create_directories(model + "/blobs");
  fs::create_directories(scratch.path("models--c--d/blobs"));
  scratch.Write("models--a--b/blobs/00ff", R"({"eos_token": "</s>"})");
  scratch.Write("models--c--d/blobs/00ff", R"({"eos_token": "</s>"})");
  scratch.Write("elsewhere.json", R"({"eos_token": "</s>"})");
  fs::create_symlink("../../elsewhere.json", model + "/blobs/01ff");
  // The tokenizer itself is named by a person.
  scratch.Write("t.json", kTokenizer);
  fs::create_symlink(scratch.path("t.json"), snapshot + "/tokenizer.json");
  for (const std::string &target :
       {scratch.path("elsewhere.json"), std::string("../../../elsewhere.json"),
        std::string("../../../models--c--d/blobs/00ff"), std::string("../../blobs/01ff"),
        model + "/blobs/00ff"}) {
    fs::remove(config);
    fs::create_symlink(target, config);
    EXPECT_THAT(Tokenizer::Open(snapshot + "/tokenizer.json").status().message(),
                HasSubstr("tokenizer_config.json` is a link out of its folder"))
        << target;
  }
  fs::remove(config);
  EXPECT_TRUE(Tokenizer::Open(snapshot + "/tokenizer.json").ok());
}

} // namespace
