//===- order_test.cpp - The order of windows and of sources ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/order.h"

#include "runtime/abi/sources.h"
#include "runtime/abi/template_values.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>

namespace boa {
namespace {

using testing::HasSubstr;

TEST(Order, PermutesAnyCount) {
  for (int64_t count : {1, 2, 3, 7, 16, 17, 100, 1000, 65537})
    for (uint64_t key : {1, 2}) {
      std::vector<int64_t> values, all(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i)
        values.push_back(Permute(key, i, count));
      std::iota(all.begin(), all.end(), 0);
      if (count >= 100)
        EXPECT_NE(values, all);
      std::sort(values.begin(), values.end());
      EXPECT_EQ(values, all) << count;
    }
  // Far beyond what a list could hold.
  const int64_t large = int64_t{1} << 40;
  EXPECT_LT(Permute(1, large - 1, large), large);
  EXPECT_NE(Permute(1, 5, large), Permute(2, 5, large));
}

// The first window is any of them, equally often.
TEST(Order, PrefersNoWindow) {
  std::vector<int> first(10);
  for (uint64_t seed = 0; seed < 2000; ++seed)
    ++first[size_t(WindowAt(seed, 0, 10))];
  for (int count : first)
    EXPECT_NEAR(count, 200, 60); // deviation 13
}

TEST(Order, EachEpochHasAnOrderOfItsOwn) {
  std::vector<int64_t> epochs[2];
  for (int64_t i = 0; i < 200; ++i)
    epochs[i / 100].push_back(WindowAt(3, i, 100));
  EXPECT_NE(epochs[0], epochs[1]);
  for (auto &epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    EXPECT_TRUE(std::adjacent_find(epoch.begin(), epoch.end()) == epoch.end());
  }
}

TEST(Order, SharesAreExactAndEven) {
  const std::vector<int64_t> shares = {7, 2, 1};
  for (uint64_t seed : {0, 1, 99}) {
    Mixture mixture(shares, seed);
    std::vector<int64_t> counts(3);
    for (int64_t sample = 0; sample < 1000; ++sample) {
      ASSERT_EQ(mixture.Count(sample), counts);
      // Nowhere two samples off.
      for (size_t i = 0; i < 3; ++i)
        ASSERT_LE(std::abs(10 * counts[i] - sample * shares[i]), 20);
      const Mixture::Place place = mixture.At(sample);
      ASSERT_EQ(place.position, counts[place.source]);
      ++counts[place.source];
    }
    EXPECT_EQ(counts, (std::vector<int64_t>{700, 200, 100}));
  }
}

TEST(Sources, ReadBackWhatTheyPrint) {
  for (const char *text : {"a/path.txt", "tokens.txt", "./tokens(1)", "tokens(\"a/*.bin\")",
                           "tokens(\"a b.bin\", uint32, end = 5)",
                           "mix(0.7 tokens(\"a\"), 0.3 tokens(\"b\", uint8))"}) {
    std::string error;
    const std::vector<DataSource> sources = ParseSources(text, error);
    ASSERT_FALSE(sources.empty()) << error;
    EXPECT_EQ(FormatSources(sources), text);
  }
  std::string error;
  for (const char *text :
       {"text(\"a/*.txt\", tokenizer = \"t.json\", special = true)",
        "chat(\"a.jsonl\", tokenizer = \"t\", template = \"chatml\")",
        "text(\"a\", tokenizer = \"t\", special = true, packed = false)",
        "chat(\"a\", tokenizer = \"t\", template_values = {\"b\": \"}\\\"\", \"c\": "
        "[{}]}, packed = false)",
        "tokens(\"a\", int64, end = 1, tokenizer = \"t\")",
        "mix(0.7 text(\"a\", tokenizer = \"t\"), 0.3 tokens(\"b\"))"})
    EXPECT_EQ(FormatSources(ParseSources(text, error)), text) << error;
  EXPECT_EQ(FormatSources(ParseSources(" mix( 2*tokens( files = \"a\",end=1 ,type = uint8), 1 "
                                       "tokens(\"b\"))",
                                       error)),
            "mix(2 tokens(\"a\", uint8, end = 1), 1 tokens(\"b\"))");
  DataSource call;
  call.files = "mix(1).txt";
  EXPECT_EQ(FormatSource(call), "./mix(1).txt");
}

TEST(Sources, NameWhatIsWrong) {
  for (const auto &[text, expected] : std::vector<std::pair<const char *, const char *>>{
           {"tokens()", "expected `\"` at `)`"},
           {"tokens(\"\")", "expected a file or a pattern"},
           {"tokens(\"a\", int8)", "uint8, uint16, uint32, int32 or int64, but found `int8`"},
           {"tokens(\"a\", uint8, uint16)", "one type"},
           {"tokens(\"a\", end = -1)", "at least 0"},
           {"tokens(\"a\", ending = 1)", "files, type, end and tokenizer"},
           {"tokens(\"a\") b", "nothing behind the call but found `b`"},
           {"mix(tokens(\"a\"))", "expected a share"},
           {"mix(0 tokens(\"a\"))", "shares above 0"},
           {"mix(nan tokens(\"a\"))", "shares above 0"},
           {"mix(0.5 \"a\")", "expected tokens(\"FILES\"), text(...) or chat(...) at `\"a\")`"},
           {"text(\"a\", tokenizer = \"t\", packed = true, packed = false)",
            "once, but found `packed`"},
           {"chat(\"a\", \"t\", special = true)",
            "files, tokenizer, packed, template and template_values once, but found `special`"},
           {"chat(\"a\", \"t\", template_values = \"b\")", "an object of JSON at `\"b\")`"},
           {"chat(\"a\", \"t\", template_values = {\"b\": 1)", "an object of JSON at `{\"b\": 1)`"},
           {"chat(\"a\", \"t\", template_values = {b: 1})",
            "template_values: expected an object of JSON, such as {\"enable_thinking\": false}: no "
            "JSON at byte 2"},
           {"mix(", "expected a share"}}) {
    std::string error;
    EXPECT_TRUE(ParseSources(text, error).empty()) << text;
    EXPECT_THAT(error, HasSubstr(expected)) << text;
  }
}

TEST(Sources, ValuesOfTemplatesAreAnObject) {
  for (const char *good : {"{}", R"({"a": [{"a": 1, "tools": 9223372036854775807}], "b": 1e30})"})
    EXPECT_EQ(FaultOfTemplateValues(good), "") << good;
  const std::string expected = "expected an object of JSON, such as {\"enable_thinking\": false}",
                    taken = "` cannot be given: a template gets it from the conversation or its "
                            "tokenizer";
  for (const auto &[json, fault] : std::vector<std::pair<std::string, std::string>>{
           {"", expected + ": no JSON at byte 1"},
           {"1", expected},
           {"[{}]", expected},
           {R"({"a": True})", expected + ": no JSON at byte 7"},
           {R"({"a": 1} {)", expected + ": no JSON at byte 10"},
           {R"({"a": 1, "b": [{"c": 1, "c": 2}]})", "the key `c` stands twice in one object"},
           {R"({"a": 9223372036854775808})",
            "the number 9223372036854775808 has more than 64 bits"},
           {R"({"a": -123456789012345678901})",
            "the number -123456789012345678901 has more than 64 bits"},
           {"{\"a\": " + std::string(64, '[') + "1", "nested deeper than 64"},
           {R"({"messages": []})", "`messages" + taken},
           {R"({"a": 1, "bos_token": ""})", "`bos_token" + taken}})
    EXPECT_EQ(FaultOfTemplateValues(json), fault) << json;
}

TEST(Sources, SharesAreWholeNumbers) {
  auto whole = [](std::vector<double> shares) {
    std::vector<DataSource> sources;
    for (double share : shares)
      sources.emplace_back().share = share;
    return WholeShares(sources);
  };
  EXPECT_EQ(whole({0.7, 0.3}), (std::vector<int64_t>{7, 3}));
  EXPECT_EQ(whole({1, 2, 1}), (std::vector<int64_t>{1, 2, 1}));
  EXPECT_EQ(whole({0.000001, 0.999999}), (std::vector<int64_t>{1, 999999}));
  EXPECT_TRUE(whole({1.0 / 3, 2.0 / 3}).empty());
  EXPECT_TRUE(whole({-1, 2}).empty());
  EXPECT_TRUE(whole({1e300}).empty());
}

} // namespace
} // namespace boa
