//===- tokens_test.cpp - Batches from files of tokens ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/data.h"

#include "test/runtime/data/shards.h"
#include "test/runtime/scratch.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace boa {
namespace {

using testing::HasSubstr;
using Tokens = std::vector<int32_t>;

/// Files a (0 to 1999 in three shards of three forms) and b (5000 to 5999). Each token stands once.
class TokensTest : public testing::Test {
protected:
  TokensTest() {
    scratch.Write("a1.bin", LlmC(Range(0, 701)));
    scratch.Write("a2.bin", Bytes(Range(701, 300)));
    scratch.Write("a3.bin", Bytes(Range(1001, 999)));
    scratch.Write("a3.idx", Index({100, 0, 899}));
    scratch.Write("b.bin", Bytes(Range(5000, 1000)));
    options.data = Call("a?.*");
    options.validate = Call("b.bin");
    options.vocab = 6000;
    options.context = 16;
    options.micro_batch = 4;
    options.micro_batches = 2;
    options.evaluate_batches = 3;
    options.seed = 7;
  }

  std::string Call(const std::string &files, const std::string &more = "") const {
    return absl::StrCat("tokens(\"", scratch.path(files), "\"", more, ")");
  }
  Data Open() {
    absl::StatusOr<Data> data = Data::Open(options);
    EXPECT_TRUE(data.ok()) << data.status();
    return *std::move(data);
  }
  std::string Error() { return std::string(Data::Open(options).status().message()); }
  /// Of a step, in order.
  Tokens Firsts(const Data &data, int64_t step) {
    const size_t size = size_t(options.batch() * options.context);
    tokens.resize(size), targets.resize(size), starts.resize(size);
    Tokens firsts;
    for (int64_t m = 0; m < options.micro_batches; ++m) {
      const int64_t at = m * options.micro_batch * options.context;
      EXPECT_TRUE(
          data.FillTraining(step, m, tokens.data() + at, targets.data() + at, starts.data() + at)
              .ok());
    }
    for (size_t i = 0; i < size; i += size_t(options.context))
      firsts.push_back(tokens[i]);
    return firsts;
  }

  Scratch scratch;
  DataOptions options;
  Tokens tokens, targets, starts; // of the last step
};

TEST_F(TokensTest, EachTokenIsPredictedOnceInAnEpoch) {
  Data data = Open();
  EXPECT_THAT(data.Describe(), HasSubstr("3 files of 2.00 k tokens, 124 sequences to train on\n"));
  // 124 windows: in 31 steps of 8 there are two epochs.
  Tokens seen[2];
  Tokens firsts[2];
  for (int64_t step = 1; step <= 31; ++step) {
    const Tokens of_step = Firsts(data, step);
    for (size_t i = 0; i < targets.size(); ++i) {
      const size_t epoch = ((step - 1) * 8 + i / 16) / 124;
      if (i % 16 == 0)
        firsts[epoch].push_back(of_step[i / 16]);
      if (targets[i] >= 0)
        EXPECT_EQ(targets[i], tokens[i] + 1);
      seen[epoch].push_back(tokens[i] + 1);
    }
  }
  EXPECT_NE(firsts[0], firsts[1]);
  for (Tokens &epoch : seen) {
    std::sort(epoch.begin(), epoch.end());
    ASSERT_EQ(epoch.size(), 124u * 16);
    for (size_t i = 0; i < epoch.size(); ++i)
      ASSERT_EQ(epoch[i], int32_t(i) + 1);
  }
  options.seed = 8;
  EXPECT_NE(Firsts(Open(), 1), Tokens(firsts[0].begin(), firsts[0].begin() + 8));
}

// Without files of its own, validation has the last tenth.
TEST_F(TokensTest, TrainingNeverSeesValidation) {
  options.validate = "";
  Data data = Open();
  EXPECT_THAT(data.Describe(), HasSubstr("112 sequences to train on, 12 sequences to validate"));
  std::set<int32_t> trained;
  for (int64_t step = 1; step <= 14; ++step) {
    Firsts(data, step);
    trained.insert(targets.begin(), targets.end());
  }
  EXPECT_EQ(*trained.rbegin(), 112 * 16);
  Tokens part(64), next(64);
  for (int64_t batch = 0; batch < 6; ++batch) {
    ASSERT_TRUE(data.FillValidation(batch, part.data(), next.data()).ok());
    for (int32_t target : next)
      EXPECT_GT(target, 112 * 16);
  }
}

// What a commit counts decides, not the step: with another batch, no sequence comes twice.
TEST_F(TokensTest, AnotherBatchGoesOnWithUnseenSequences) {
  const Data whole = Open();
  Tokens unbroken, changed;
  for (int64_t step = 1; step <= 15; ++step)
    for (int32_t first : Firsts(whole, step))
      unbroken.push_back(first);
  for (int64_t step = 1; step <= 5; ++step)
    for (int32_t first : Firsts(whole, step))
      changed.push_back(first);
  options.micro_batch = 10;
  Data data = Open();
  data.Continue(5, whole.Consumed(0, 5));
  for (int64_t step = 6; step <= 9; ++step)
    for (int32_t first : Firsts(data, step))
      changed.push_back(first);
  EXPECT_EQ(changed, unbroken); // 120 of 124
}

TEST_F(TokensTest, AMixHasItsSharesAndGoesOnWithAnother) {
  options.validate = Call("a1.bin");
  options.data = absl::StrCat("mix(0.75 ", Call("a?.bin"), ", 0.25 ", Call("b.bin"), ")");
  const Data first = Open();
  std::map<std::string, int64_t> samples;
  std::set<int32_t> seen;
  int64_t of_b = 0;
  auto run = [&](const Data &data, int64_t from, int64_t to) {
    for (int64_t step = from + 1; step <= to; ++step)
      for (int32_t token : Firsts(data, step)) {
        EXPECT_TRUE(seen.insert(token).second) << token << " comes again";
        of_b += token >= 5000;
      }
    for (const auto &[source, count] : data.Consumed(from, to))
      samples[source] += count;
  };
  run(first, 0, 8);
  EXPECT_EQ(of_b, 16);
  EXPECT_EQ(first.Consumed(0, 8).size(), 2u);
  // The same mix in parts is the same run.
  Data again = Open();
  again.Continue(3, first.Consumed(0, 3));
  EXPECT_EQ(Firsts(again, 7), Firsts(first, 7));
  EXPECT_EQ(again.Consumed(3, 8), first.Consumed(3, 8));
  // The sources stand in another order, with other shares.
  options.data = absl::StrCat("mix(0.5 ", Call("b.bin"), ", 0.5 ", Call("a?.bin"), ")");
  options.micro_batch = 3;
  Data changed = Open();
  changed.Continue(8, samples);
  run(changed, 8, 18);
  EXPECT_EQ(of_b, 16 + 30);
  for (const auto &[source, count] : samples)
    EXPECT_TRUE(count == 48 + 30 || count == 16 + 30) << source << " " << count;
  // An evaluation has the shares, too.
  options.validate = "";
  options.data = absl::StrCat("mix(3 ", Call("a?.bin"), ", 1 ", Call("b.bin"), ")");
  const Data evaluated = Open();
  Tokens part(48), next(48);
  int64_t validated = 0;
  for (int64_t batch = 0; batch < 6; ++batch) {
    ASSERT_TRUE(evaluated.FillValidation(batch, part.data(), next.data()).ok());
    for (size_t i = 0; i < part.size(); i += 16)
      validated += part[i] >= 5000;
  }
  EXPECT_NEAR(double(validated), 18 / 4.0, 1);
}

// The next document's first token is not predicted.
TEST_F(TokensTest, NoLossCrossesTheEndOfADocument) {
  auto unpredicted = [&] {
    Data data = Open();
    std::set<int32_t> found;
    for (int64_t step = 1; step <= 31; ++step) {
      Firsts(data, step);
      for (size_t i = 0; i < targets.size(); ++i)
        if (targets[i] < 0)
          found.insert(tokens[i]);
    }
    return found;
  };
  // Where the index says so: at the file's begin and behind its first document.
  EXPECT_EQ(unpredicted(), (std::set<int32_t>{1000, 1100}));
  // A last token of a window, too.
  options.data = Call("a?.*", ", end = 15");
  EXPECT_EQ(unpredicted(), (std::set<int32_t>{15, 1000, 1100}));
  options.objective = Objective::masked;
  EXPECT_THAT(Error(), HasSubstr("masked tokens are predicted where they stand"));
}

// Each token tells where its document begins in its window, and something must tell documents.
TEST_F(TokensTest, DocumentsBeginWhereTheFilesSay) {
  auto begun = [&] {
    const Data data = Open();
    EXPECT_TRUE(data.TellsDocuments());
    std::set<int32_t> begins;
    for (int64_t step = 1; step <= 31; ++step) {
      Firsts(data, step);
      for (size_t i = 0; i < starts.size(); ++i) {
        const auto position = int32_t(i % size_t(options.context));
        if (starts[i] != position)
          EXPECT_EQ(starts[i], starts[i - 1]);
        else if (position > 0)
          begins.insert(tokens[i]);
      }
    }
    return begins;
  };
  options.data = Call("a?.*", ", end = 20");
  EXPECT_EQ(begun(), (std::set<int32_t>{21, 1001, 1101}));
  // Several files in one window, each with one document.
  for (int i = 0; i < 5; ++i) {
    scratch.Write(absl::StrCat("c", i, ".bin"), Bytes(Range(3000 + 10 * i, 10)));
    scratch.Write(absl::StrCat("c", i, ".idx"), Index({10}));
  }
  options.data = Call("c?.*");
  EXPECT_EQ(begun(), (std::set<int32_t>{3010, 3020, 3030, 3040}));
  // Of masked tokens, an end tells nothing but that.
  options.data = Call("a?.*", ", end = 20");
  options.objective = Objective::masked;
  options.document_mask = true;
  EXPECT_EQ(Error(), "");
  options.objective = Objective::next_token;
  options.data = Call("a1.bin");
  EXPECT_FALSE(Open().TellsDocuments());
}

// A file of that very name is meant. In folders that the frontend names, \ stands before such
// characters.
TEST_F(TokensTest, ANameMayLookLikeAPattern) {
  const auto firsts = [&](const std::string &call) {
    options.data = call;
    return Firsts(Open(), 1);
  };
  std::filesystem::create_directory(scratch.path("run[1]*"));
  for (const std::string name :
       {"a[12].bin", "what?.bin", "back\\slash.bin", "run[1]*/a[12].bin"}) {
    scratch.Write(name, LlmC(Range(3000, 701)));
    const Tokens found = firsts(Call(name));
    EXPECT_GE(*std::min_element(found.begin(), found.end()), 3000) << name;
  }
  const Tokens escaped = firsts(Call(R"(run\[1\]\*/a[12].bin)"));
  EXPECT_GE(*std::min_element(escaped.begin(), escaped.end()), 3000);
  std::filesystem::remove(scratch.path("a[12].bin"));
  const Tokens pattern = firsts(Call("a[12].bin"));
  EXPECT_LT(*std::max_element(pattern.begin(), pattern.end()), 1001);
}

TEST_F(TokensTest, ErrorsNameTheFile) {
  options.data = Call("c*.bin");
  EXPECT_THAT(Error(), HasSubstr("no file matches `"));
  EXPECT_THAT(Error(), HasSubstr("c*.bin`"));
  options.data = Call("a?.bin");
  options.vocab = 1500;
  EXPECT_THAT(Error(), HasSubstr("a3.bin`: token 1500 at byte 998 is outside the vocabulary"));
  options.vocab = 6000;
  options.data = Call("a?.bin", ", end = 6000");
  EXPECT_THAT(Error(), HasSubstr("token 6000 is outside the vocabulary of 6000"));
  options.data = absl::StrCat("mix(1 ", Call("a?.bin"), ", 1 ", Call("a*.bin"), ")");
  EXPECT_THAT(Error(), HasSubstr("which have the same contents"));
  options.data = Call("a2.bin");
  options.context = 300;
  EXPECT_THAT(Error(), HasSubstr("has 300 tokens, but one sequence takes 301: more tokens"));
  options.context = 40;
  options.validate = "";
  EXPECT_EQ(Error(), "");
  options.evaluate_every = 1;
  EXPECT_THAT(Error(), HasSubstr("the last tenth of them, 30, for validation, but one sequence"));
}

// A file that is moved is the same; one that is changed or added is not.
TEST_F(TokensTest, FingerprintsAreOfTheContents) {
  options.data = Call("a*.bin");
  const std::string before = Open().facts().at("data");
  std::filesystem::create_directory(scratch.path("moved"));
  for (const char *name : {"a1.bin", "a2.bin", "a3.bin", "a3.idx"})
    std::filesystem::copy_file(scratch.path(name), scratch.path("moved/") + name);
  options.data = Call("moved/*.bin");
  EXPECT_EQ(Open().facts().at("data"), before);
  scratch.Write("moved/a3.idx", Index({101, 0, 898}));
  EXPECT_NE(Open().facts().at("data"), before);
  options.data = Call("a[12].bin");
  EXPECT_NE(Open().facts().at("data"), before);
}

} // namespace
} // namespace boa
