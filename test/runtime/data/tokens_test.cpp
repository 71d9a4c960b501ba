//===- tokens_test.cpp - Batches from files of tokens ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/data.h"
#include "runtime/data/shard_writer.h"

#include "test/runtime/data/shards.h"
#include "test/runtime/scratch.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <set>
#include <sys/resource.h>

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
  options.micro_batch = options.micro_batches = 5;
  options.data = Call("a?.bin"); // without the document that the index begins
  std::filesystem::remove(scratch.path("a3.idx"));
  Data data = Open();
  EXPECT_THAT(data.Describe(), HasSubstr("3 files of 2.00 k tokens, 125 sequences to train on\n"));
  // 125 windows, the last of them with 15 targets: in ten steps of 25 there are two epochs.
  Tokens seen[2];
  Tokens firsts[2];
  for (int64_t step = 1; step <= 10; ++step) {
    const Tokens of_step = Firsts(data, step);
    for (size_t i = 0; i < targets.size(); ++i) {
      const size_t epoch = ((step - 1) * 25 + i / 16) / 125;
      if (i % 16 == 0)
        firsts[epoch].push_back(of_step[i / 16]);
      if (targets[i] < 0)
        continue;
      EXPECT_EQ(targets[i], tokens[i] + 1);
      seen[epoch].push_back(targets[i]);
    }
  }
  EXPECT_NE(firsts[0], firsts[1]);
  for (Tokens &epoch : seen) {
    std::sort(epoch.begin(), epoch.end());
    ASSERT_EQ(epoch.size(), 1999u);
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
  EXPECT_THAT(data.Describe(), HasSubstr("113 sequences to train on, 12 sequences to validate"));
  std::set<int32_t> trained;
  for (int64_t step = 1; step <= 15; ++step) {
    Firsts(data, step);
    trained.insert(targets.begin(), targets.end());
  }
  EXPECT_EQ(*trained.rbegin(), 113 * 16);
  // 24 are asked for. Each of the 12 comes once, and the last one has a padded end.
  EXPECT_EQ(data.ValidationSequences(), 12);
  Tokens part(64), next(64), validated;
  for (int64_t batch = 0; batch < 6; ++batch) {
    ASSERT_TRUE(data.FillValidation(batch, part.data(), next.data()).ok());
    std::copy_if(next.begin(), next.end(), std::back_inserter(validated),
                 [](int32_t target) { return target >= 0; });
  }
  ASSERT_EQ(validated.size(), 12u * 16 - 1);
  for (size_t i = 0; i < validated.size(); ++i)
    EXPECT_EQ(validated[i], 113 * 16 + 1 + int32_t(i));
}

// Few tokens are one sequence, and each part of a mix has its own padded end.
TEST_F(TokensTest, WhatIsBehindTheLastWholeSequenceIsLearntToo) {
  for (int64_t count : {2, 16, 17, 18}) {
    scratch.Write("c.bin", Bytes(Range(3000, size_t(count))));
    options.data = options.validate = Call("c.bin");
    options.evaluate_every = 1;
    const Data data = Open();
    EXPECT_EQ(data.WholeSequences(), count > 17 ? 2 : 1) << count;
    std::set<int32_t> learnt, evaluated;
    Firsts(data, 1);
    for (size_t i = 0; i < targets.size(); ++i) {
      learnt.insert(targets[i]);
      EXPECT_TRUE(targets[i] < 0 || targets[i] == tokens[i] + 1);
    }
    Tokens part(64), next(64);
    ASSERT_TRUE(data.FillWhole(0, part.data(), next.data()).ok());
    EXPECT_EQ(std::count_if(next.begin(), next.end(), [](int32_t t) { return t >= 0; }), count - 1);
    learnt.erase(-1);
    EXPECT_EQ(learnt.size(), size_t(count - 1)) << count;
    EXPECT_EQ(*learnt.rbegin(), 3000 + count - 1);
  }
  // 8 whole sequences and 2 of 20 tokens. A run that stops and goes on learns the same.
  scratch.Write("c.bin", Bytes(Range(3000, 129)));
  scratch.Write("d.bin", Bytes(Range(4000, 20)));
  options.data = absl::StrCat("mix(8 ", Call("c.bin"), ", 2 ", Call("d.bin"), ")");
  options.evaluate_every = 0;
  options.micro_batch = options.micro_batches = 1;
  const Data whole = Open();
  Data parts = Open();
  parts.Continue(4, whole.Consumed(0, 4));
  std::multiset<int32_t> learnt;
  for (int64_t step = 1; step <= 10; ++step) {
    Firsts(step <= 4 ? whole : parts, step);
    learnt.insert(targets.begin(), targets.end());
  }
  EXPECT_EQ(learnt.count(-1), 13u);
  learnt.erase(-1);
  EXPECT_EQ(learnt.size(), 128u + 19);
  EXPECT_EQ(std::set<int32_t>(learnt.begin(), learnt.end()).size(), learnt.size());
}

// Windows without a target are left out, the last one too, and the last target of all is not.
TEST_F(TokensTest, TargetsBehindTheLastWholeSequence) {
  options.data = options.validate = Call("m.bin");
  // The bits of 43 tokens end within a byte.
  for (auto [size, is_last] :
       {std::pair(40, false), std::pair(40, true), std::pair(43, false), std::pair(43, true)}) {
    absl::StatusOr<ShardWriter> writer =
        ShardWriter::Create(scratch.path("m.bin"), 6000, /*with_marks=*/true);
    ASSERT_TRUE(writer.ok());
    Tokens all(size);
    std::vector<bool> marks(size), begins(size);
    std::iota(all.begin(), all.end(), 100);
    marks[5] = true, marks[size - 1] = is_last, begins[0] = true;
    ASSERT_TRUE(writer->Append(all, marks, begins).ok() && writer->Finish().ok());
    const Data data = Open();
    EXPECT_EQ(data.WholeSequences(), is_last ? 2 : 1);
    Tokens part(64), next(64), wanted = {105};
    if (is_last)
      wanted.push_back(99 + size);
    ASSERT_TRUE(data.FillWhole(0, part.data(), next.data()).ok());
    next.erase(std::remove(next.begin(), next.end(), -1), next.end());
    EXPECT_EQ(next, wanted);
  }
}

// Masked tokens see all of their sequence, so there is no padding in it.
TEST_F(TokensTest, MaskedSequencesHaveNoPadding) {
  scratch.Write("c.bin", Bytes(Range(3000, 40)));
  options.data = options.validate = Call("c.bin");
  options.objective = Objective::masked;
  options.mask_token = 5999;
  options.mask_probability = 1;
  const Data data = Open();
  EXPECT_EQ(data.WholeSequences(), 3);
  Tokens part(64), next(64);
  ASSERT_TRUE(data.FillWhole(0, part.data(), next.data()).ok());
  std::multiset<int32_t> seen(next.begin(), next.begin() + 48);
  EXPECT_EQ(seen.count(-1), 8u); // the first eight of the last one belong to the one before
  seen.erase(-1);
  EXPECT_EQ(seen.size(), 40u);
  EXPECT_EQ(*seen.rbegin(), 3039);
  EXPECT_EQ(Tokens(part.begin() + 32, part.begin() + 34), (Tokens{3024, 3025}));
  EXPECT_THAT(data.Describe(),
              HasSubstr("c.bin\") are masked as others are; tokens(..., tokenizer"));
  // What a file says is no target, and the mask itself, are not masked either.
  absl::StatusOr<ShardWriter> writer = ShardWriter::Create(scratch.path("m.bin"), 6000, true);
  ASSERT_TRUE(writer.ok());
  Tokens all(16, 7);
  std::vector<bool> marks(16, true), begins(16);
  marks[0] = marks[3] = false, begins[0] = true, all[5] = 5999;
  ASSERT_TRUE(writer->Append(all, marks, begins).ok() && writer->Finish().ok());
  options.data = options.validate = Call("m.bin");
  ASSERT_TRUE(Open().FillWhole(0, part.data(), next.data()).ok());
  EXPECT_EQ(Tokens(next.begin(), next.begin() + 8), (Tokens{7, 7, 7, -1, 7, -1, 7, 7}));
  options.context = 41;
  options.data = Call("c.bin");
  EXPECT_THAT(Error(), HasSubstr("has 40 tokens, but 41 are the fewest of a sequence: more tokens "
                                 "or a smaller context is needed"));
}

// Of each part of a mix an evaluation has at most what there is.
TEST_F(TokensTest, EvaluationHasNoSequenceTwice) {
  scratch.Write("c.bin", Bytes(Range(3000, 40)));
  options.data = Call("a?.bin");
  options.validate = absl::StrCat("mix(0.5 ", Call("b.bin"), ", 0.5 ", Call("c.bin"), ")");
  options.evaluate_every = 1;
  for (int64_t batches : {1, 2, 4000, 1 << 30}) {
    options.evaluate_batches = batches;
    const Data data = Open();
    const int64_t all = data.ValidationSequences();
    ASSERT_EQ(all, batches == 1 ? 4 + 3 : batches == 2 ? 8 + 3 : 63 + 3);
    std::set<int32_t> firsts;
    Tokens part(64), next(64);
    for (int64_t batch = 0; batch * 4 < all; ++batch) {
      ASSERT_TRUE(data.FillValidation(batch, part.data(), next.data()).ok());
      for (int64_t i = 0; i < 4 && batch * 4 + i < all; ++i)
        EXPECT_TRUE(firsts.insert(part[size_t(i * 16)]).second);
    }
    EXPECT_EQ(firsts.size(), size_t(all));
    EXPECT_EQ(data.Describe().find("note: `evaluate` asks for 32000 sequences, and an evaluation "
                                   "has all 66, each once") != std::string::npos,
              batches == 4000);
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
  EXPECT_EQ(changed, unbroken); // 120 of 125
}

// So it is with epochs: what is left of them is taken by steps of the new size.
TEST_F(TokensTest, EpochsAreOfTheSequencesToTrainOn) {
  const Data data = Open(); // 125 windows, 8 a step
  EXPECT_EQ(data.StepOfEpochs(1).value(), 16);
  EXPECT_EQ(data.StepOfEpochs(3).value(), 47); // 375 of 376
  EXPECT_EQ(data.StepOfEpochs(0.5).value(), 8);
  EXPECT_EQ(data.StepOfEpochs(0.001).value(), 1);
  EXPECT_EQ(data.StepOfEpochs(6.4).value(), 100); // 6.4 * 125 is a little more than 800
  options.micro_batch = 10;
  Data more = Open();
  more.Continue(5, data.Consumed(0, 5));
  EXPECT_EQ(more.StepOfEpochs(1).value(), 5 + 5); // 85 are left, 20 a step
  EXPECT_EQ(more.StepOfEpochs(0.25).value(), 5);  // were over within the last step
  EXPECT_EQ(more.StepOfEpochs(0.16).value(), 4);  // and before it: 20 of 40
  EXPECT_EQ(more.StepOfEpochs(0.001).value(), 4);
  more.Continue(5, {{"tokens that are gone", 40}}); // none of these was consumed
  EXPECT_EQ(more.StepOfEpochs(1).value(), 5 + 7);
  EXPECT_THAT(std::string(data.StepOfEpochs(1e15).status().message()),
              HasSubstr("but a training has at most 1099511627776"));
  // Without files for validation, the last tenth is not trained on.
  options.validate = "";
  EXPECT_EQ(Open().StepOfEpochs(20).value(), 113);
  options.data = absl::StrCat("mix(0.75 ", Call("a?.bin"), ", 0.25 ", Call("b.bin"), ")");
  EXPECT_THAT(std::string(Open().StepOfEpochs(1).status().message()),
              HasSubstr("has no epochs: a number of steps is needed"));
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
  // Where the index says so: at the file's begin and behind its first document. Behind the last
  // token there is none.
  EXPECT_EQ(unpredicted(), (std::set<int32_t>{1000, 1100, 1999}));
  // A last token of a window, too.
  options.data = Call("a?.*", ", end = 15");
  EXPECT_EQ(unpredicted(), (std::set<int32_t>{15, 1000, 1100, 1999}));
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
  scratch.Write("one.bin", Bytes(Range(5, 1)));
  options.data = Call("one.bin");
  EXPECT_THAT(Error(), HasSubstr("has 1 tokens, but 2 are the fewest: more tokens are needed"));
  options.data = Call("a2.bin");
  options.context = 40;
  options.validate = "";
  EXPECT_EQ(Error(), "");
  options.evaluate_every = 1;
  EXPECT_THAT(Error(), HasSubstr("has 300 tokens in 8 sequences, of which the last tenth, for "
                                 "validation, is none"));
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

// Megatron shards by the thousand, each of two files, where few may be open at once.
TEST_F(TokensTest, MoreShardsThanFilesThatMayBeOpen) {
  constexpr int kShards = 100;
  for (int i = 0; i < kShards; ++i) {
    scratch.Write(absl::StrCat("many", i, ".bin"), Bytes(Range(uint16_t(17 * i), 17)));
    scratch.Write(absl::StrCat("many", i, ".idx"), Index({8, 9}));
  }
  options.data = Call("many*.bin");
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit few = {64, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const Data data = Open();
  std::set<int32_t> seen;
  for (int64_t step = 1; step <= 20; ++step)
    for (int32_t token : Firsts(data, step))
      seen.insert(token);
  setrlimit(RLIMIT_NOFILE, &limit);
  // Each sequence has its own, and the last one is filled up.
  EXPECT_EQ(seen.size(), size_t((17 * kShards + options.context - 1) / options.context));
}

} // namespace
} // namespace boa
