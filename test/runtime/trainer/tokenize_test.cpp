//===- tokenize_test.cpp - Texts as a shard of tokens ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/tokenize.h"

#include "runtime/support/interrupt.h"
#include "runtime/tokenizer/tokenizer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

namespace boa {
namespace {

class TokenizeTest : public testing::Test {
protected:
  TokenizeTest() : folder(absl::StrCat("/tmp/boa-tokenize-test-", getpid())) {
    std::filesystem::create_directory(folder);
    options.output = folder + "/shard.bin";
    options.tokenizer = Golden("gpt2.json");
  }
  ~TokenizeTest() override { std::filesystem::remove_all(folder); }

  static std::string Golden(const std::string &name) { return BOA_GOLDEN "/" + name; }
  void AddText(const std::string &text) {
    options.texts.push_back(absl::StrCat(folder, "/", options.texts.size(), ".txt"));
    std::ofstream(options.texts.back(), std::ios::binary) << text;
  }
  std::vector<int32_t> ReadShard() const {
    std::ifstream file(options.output, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    int32_t header[3] = {};
    EXPECT_GE(bytes.size(), 1024u);
    std::memcpy(header, bytes.data(), sizeof(header));
    EXPECT_EQ(header[0], 20240520);
    EXPECT_EQ(header[1], 1);
    EXPECT_EQ(bytes.size(), 1024u + 2 * header[2]);
    std::vector<uint16_t> tokens(header[2]);
    std::memcpy(tokens.data(), bytes.data() + 1024, 2 * tokens.size());
    return {tokens.begin(), tokens.end()};
  }

  std::string folder;
  TokenizeOptions options;
  std::ostringstream out;
};

// Parts of a few bytes have the tokens of the whole, whatever the kind of the tokenizer.
TEST_F(TokenizeTest, PartsAreAsTheWhole) {
  const std::string text = "In the beginning God created\nthe heaven and  the earth. It's <|end|> "
                           "1234 CamelCase  \n\n e\xcc\x81 \xe4\xb8\xad\xe6\x96\x87 and so on\nto "
                           "the end of the text";
  AddText(text);
  for (const char *name : {"gpt2.json", "metaspace.json", "spm.model", "wordpiece.json"}) {
    options.tokenizer = Golden(name);
    const auto tokenizer = Tokenizer::Open(options.tokenizer);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_GT((*tokenizer)->FindCut(text), 0u) << name;
    for (bool special : {false, true}) {
      std::vector<int32_t> expected;
      EncodeOptions encode;
      encode.special = options.special = special;
      ASSERT_TRUE(Encoder(*tokenizer).Encode(text, encode, expected).ok());
      for (int64_t part : {7, 16, 50, 1000}) {
        options.part_bytes = part;
        const absl::Status status = Tokenize(options, out);
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(ReadShard(), expected) << name << " in parts of " << part;
      }
    }
  }
  EXPECT_TRUE(absl::StrContains(out.str(), "shard.bin: ")) << out.str();
}

TEST_F(TokenizeTest, AByteOrderMarkIsNoPartOfAText) {
  AddText("one and two");
  ASSERT_TRUE(Tokenize(options, out).ok());
  const std::vector<int32_t> plain = ReadShard();
  options.texts.clear();
  AddText("\xef\xbb\xbfone and two");
  for (int64_t part : {1, 4, 1000}) {
    options.part_bytes = part;
    ASSERT_TRUE(Tokenize(options, out).ok());
    EXPECT_EQ(ReadShard(), plain);
  }
  options.texts.clear();
  AddText("one\xef\xbb\xbf and two");
  ASSERT_TRUE(Tokenize(options, out).ok());
  EXPECT_GT(ReadShard().size(), plain.size());
  options.texts.clear();
  AddText("\xef\xbb\xbf");
  EXPECT_EQ(Tokenize(options, out).message(), "the texts have no tokens");
}

// Each text has the tokens around it, and an error leaves the shard that was there.
TEST_F(TokenizeTest, TextsAndErrors) {
  AddText("one");
  AddText("two");
  ASSERT_TRUE(Tokenize(options, out).ok());
  const std::vector<int32_t> before = ReadShard();
  EXPECT_EQ(std::count(before.begin(), before.end(), 0), 2);
  AddText("plain\nwords\nthen \xff");
  const absl::Status status = Tokenize(options, out);
  EXPECT_EQ(status.message(), absl::StrCat("`", options.texts[2],
                                           "`: byte 17 (line 3) is 0xff, which is not UTF-8 "
                                           "there: convert the text to UTF-8"));
  EXPECT_EQ(ReadShard(), before);
  EXPECT_FALSE(std::filesystem::exists(options.output + ".tmp"));
  options.texts.pop_back();
  AddText("\x1f\x8b\x08 compressed");
  EXPECT_EQ(Tokenize(options, out).message(),
            absl::StrCat("`", options.texts[2],
                         "`: expected a text, but it is compressed by gzip; "
                         "`gunzip -k ",
                         options.texts[2], "` converts it"));
  options.output = options.texts[0];
  EXPECT_FALSE(Tokenize(options, out).ok());
}

// An unfinished file leaves nothing.
TEST_F(TokenizeTest, ASignalEndsIt) {
  AddText(std::string(1000, 'a'));
  options.part_bytes = 10;
  const InterruptGuard guard;
  raise(SIGTERM);
  const absl::Status status = Tokenize(options, out);
  EXPECT_EQ(SignalOf(status), SIGTERM) << status;
  EXPECT_EQ(status.message(), "interrupted; `" + options.output + "` was not written");
  EXPECT_FALSE(std::filesystem::exists(options.output));
  EXPECT_FALSE(std::filesystem::exists(options.output + ".tmp"));
}

// More texts than files that may be open.
TEST_F(TokenizeTest, ManyTexts) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit few = {48, limit.rlim_max};
  for (int i = 0; i < 64; ++i)
    AddText("a");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_EQ(Tokenize(options, out), absl::OkStatus());
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(ReadShard().size() % 64, 0u);
}

} // namespace
} // namespace boa
