//===- data_test.cpp - Batches from a text --------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/data.h"

#include "test/runtime/scratch.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace boa {
namespace {

/// Bytes whose value tells where they stand, modulo 251.
std::string Ramp(size_t bytes = 1000) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>(i % 251);
  return text;
}

class DataTest : public testing::Test {
protected:
  DataTest() {
    options.data = scratch.Write("text", Ramp());
    options.objective = Objective::next_token;
    options.context = 32;
    options.micro_batch = 4;
    options.micro_batches = 2;
    options.evaluate_batches = 3;
    options.seed = 7;
  }

  Data Open() {
    absl::StatusOr<Data> data = Data::Open(options);
    EXPECT_TRUE(data.ok()) << data.status();
    return *std::move(data);
  }
  std::string Error() { return std::string(Data::Open(options).status().message()); }
  size_t Size() const { return options.micro_batch * options.context; }

  Scratch scratch;
  DataOptions options;
};

TEST_F(DataTest, TargetsAreTheNextTokens) {
  Data data = Open();
  EXPECT_EQ(data.Describe(), options.data + ": 900 B to train on, 100 B to validate\n");
  std::vector<int32_t> tokens(Size()), targets(Size());
  ASSERT_TRUE(data.FillTraining(1, 0, tokens.data(), targets.data()).ok());
  for (size_t i = 0; i < Size(); ++i)
    EXPECT_EQ(targets[i], (tokens[i] + 1) % 251);
}

// What a step sees depends on seed and step alone.
TEST_F(DataTest, AByteOrderMarkIsNoPartOfAText) {
  const Data plain = Open();
  options.data = scratch.Write("marked", "\xef\xbb\xbf" + Ramp());
  const Data marked = Open();
  std::vector<int32_t> tokens(Size()), targets(Size()), others(Size());
  for (int64_t step = 1; step <= 4; ++step) {
    ASSERT_TRUE(plain.FillTraining(step, 0, tokens.data(), targets.data()).ok());
    ASSERT_TRUE(marked.FillTraining(step, 0, others.data(), targets.data()).ok());
    EXPECT_EQ(tokens, others);
  }
  // Elsewhere it is text, and so is a part of one.
  options.vocab = 128;
  options.data = scratch.Write("ascii", "\xef\xbb\xbf" + std::string(500, 'a'));
  Open();
  options.data = scratch.Write("inside", std::string(500, 'a') + "\xef\xbb\xbf");
  EXPECT_THAT(Error(),
              testing::HasSubstr("byte 239 at offset 500 is outside the vocabulary of 128"));
  options.data = scratch.Write("part", "\xef\xbb" + std::string(500, 'a'));
  EXPECT_THAT(Error(), testing::HasSubstr("byte 239 at offset 0"));
}

TEST_F(DataTest, SamplingIsAFunctionOfSeedStepAndSequence) {
  std::vector<int32_t> a(Size()), b(Size()), targets(Size());
  ASSERT_TRUE(Open().FillTraining(5, 1, a.data(), targets.data()).ok());
  ASSERT_TRUE(Open().FillTraining(5, 1, b.data(), targets.data()).ok());
  EXPECT_EQ(a, b);
  ASSERT_TRUE(Open().FillTraining(6, 1, b.data(), targets.data()).ok());
  EXPECT_NE(a, b);
  ASSERT_TRUE(Open().FillTraining(5, 0, b.data(), targets.data()).ok());
  EXPECT_NE(a, b);
  options.seed = 8;
  ASSERT_TRUE(Open().FillTraining(5, 1, b.data(), targets.data()).ok());
  EXPECT_NE(a, b);
}

// Cutting a step into other micro-batches changes no sequence of it.
TEST_F(DataTest, SamplingDoesNotDependOnMicroBatches) {
  options.data = scratch.Write("text", Ramp(20000));
  std::vector<int32_t> whole(2 * Size()), parts(2 * Size()), targets(2 * Size());
  Data small = Open();
  ASSERT_TRUE(small.FillTraining(3, 0, parts.data(), targets.data()).ok());
  ASSERT_TRUE(small.FillTraining(3, 1, parts.data() + Size(), targets.data()).ok());
  std::vector<int32_t> validation = parts;
  ASSERT_TRUE(small.FillValidation(2, validation.data(), targets.data()).ok());
  ASSERT_TRUE(small.FillValidation(3, validation.data() + Size(), targets.data()).ok());
  options.micro_batch = 8, options.micro_batches = 1;
  ASSERT_TRUE(Open().FillTraining(3, 0, whole.data(), targets.data()).ok());
  EXPECT_EQ(whole, parts);
  ASSERT_TRUE(Open().FillValidation(1, whole.data(), targets.data()).ok());
  EXPECT_EQ(whole, validation);
}

TEST_F(DataTest, TrainingNeverSeesValidation) {
  // The last tenth is marked.
  options.data = scratch.Write("text", std::string(9000, 'a') + std::string(1000, 'b'));
  Data data = Open();
  std::vector<int32_t> tokens(Size()), targets(Size());
  for (int64_t step = 1; step <= 500; ++step) {
    ASSERT_TRUE(data.FillTraining(step, 0, tokens.data(), targets.data()).ok());
    ASSERT_EQ(std::count(tokens.begin(), tokens.end(), 'b'), 0);
    ASSERT_EQ(std::count(targets.begin(), targets.end(), 'b'), 0);
  }
  for (int64_t batch = 0; batch < 3; ++batch) {
    ASSERT_TRUE(data.FillValidation(batch, tokens.data(), targets.data()).ok());
    EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 'a'), 0);
  }
}

// Every start is possible, first and last included.
TEST_F(DataTest, SamplingCoversTheTrainingPart) {
  options.context = 890;
  options.evaluate_batches = 0;
  Data data = Open();
  std::vector<int32_t> tokens(Size()), targets(Size());
  std::set<int32_t> starts;
  for (int64_t step = 1; step <= 200; ++step) {
    ASSERT_TRUE(data.FillTraining(step, 0, tokens.data(), targets.data()).ok());
    starts.insert(tokens[0]);
  }
  EXPECT_EQ(starts.size(), 10u);
}

TEST_F(DataTest, MaskingPredictsWhatItHides) {
  options.objective = Objective::masked;
  options.mask_token = 255;
  options.context = 64;
  std::vector<int32_t> tokens(Size()), targets(Size()), plain(Size()), next(Size());
  int64_t predicted = 0, masked = 0, kept = 0, total = 0;
  for (int64_t step = 1; step <= 400; ++step) {
    options.objective = Objective::masked;
    Data data = Open();
    ASSERT_TRUE(data.FillTraining(step, 0, tokens.data(), targets.data()).ok());
    options.objective = Objective::next_token;
    ASSERT_TRUE(Open().FillTraining(step, 0, plain.data(), next.data()).ok());
    for (size_t i = 0; i < Size(); ++i, ++total) {
      if (targets[i] == -1) {
        ASSERT_EQ(tokens[i], plain[i]);
        continue;
      }
      ASSERT_EQ(targets[i], plain[i]);
      ++predicted;
      masked += tokens[i] == 255;
      kept += tokens[i] == plain[i];
    }
  }
  EXPECT_NEAR(static_cast<double>(predicted) / total, 0.15, 0.01);
  EXPECT_NEAR(static_cast<double>(masked) / predicted, 0.8, 0.02);
  EXPECT_NEAR(static_cast<double>(kept) / predicted, 0.1, 0.02);
}

// So each sequence has the same weight in the loss.
TEST_F(DataTest, MaskingPredictsTheSameNumberInEverySequence) {
  options.data = scratch.Write("text", Ramp(20000));
  options.objective = Objective::masked;
  options.mask_token = 255;
  std::vector<int32_t> tokens(Size()), targets(Size());
  std::set<std::vector<bool>> patterns;
  auto check = [&] {
    for (int64_t i = 0; i < options.micro_batch; ++i) {
      std::vector<bool> pattern;
      for (int64_t t = 0; t < options.context; ++t)
        pattern.push_back(targets[i * options.context + t] != -1);
      EXPECT_EQ(std::count(pattern.begin(), pattern.end(), true), 5); // 0.15 * 32 = 4.8
      patterns.insert(pattern);
    }
  };
  Data data = Open();
  for (int64_t step = 1; step <= 20; ++step) {
    ASSERT_TRUE(data.FillTraining(step, 0, tokens.data(), targets.data()).ok());
    check();
  }
  EXPECT_GT(patterns.size(), 75u); // of 80 sequences
  for (int64_t batch = 0; batch < 3; ++batch) {
    ASSERT_TRUE(data.FillValidation(batch, tokens.data(), targets.data()).ok());
    check();
  }
  options.mask_probability = 1;
  ASSERT_TRUE(Open().FillTraining(1, 0, tokens.data(), targets.data()).ok());
  EXPECT_EQ(std::count(targets.begin(), targets.end(), -1), 0);
}

// Every position as often as any other.
TEST_F(DataTest, MaskingPrefersNoPosition) {
  options.objective = Objective::masked;
  options.mask_token = 255;
  Data data = Open();
  std::vector<int32_t> tokens(Size()), targets(Size());
  std::vector<int64_t> predicted(options.context);
  for (int64_t step = 1; step <= 2000; ++step) {
    ASSERT_TRUE(data.FillTraining(step, 0, tokens.data(), targets.data()).ok());
    for (size_t i = 0; i < Size(); ++i)
      predicted[i % options.context] += targets[i] != -1;
  }
  for (int64_t count : predicted)
    EXPECT_NEAR(count / 8000.0, 5.0 / 32, 0.02); // deviation 0.004
}

TEST_F(DataTest, MaskingHidesAtLeastOne) {
  options.objective = Objective::masked;
  options.mask_token = 255;
  options.mask_probability = 1e-9;
  Data data = Open();
  std::vector<int32_t> tokens(Size()), targets(Size());
  ASSERT_TRUE(data.FillTraining(1, 0, tokens.data(), targets.data()).ok());
  for (int64_t i = 0; i < options.micro_batch; ++i)
    EXPECT_EQ(std::count(targets.begin() + i * options.context,
                         targets.begin() + (i + 1) * options.context, -1),
              options.context - 1);
}

// With a text of its own, all of the other one is for training.
TEST_F(DataTest, ValidationMayHaveATextOfItsOwn) {
  options.validate = scratch.Write("own", std::string(50, 'v'));
  options.evaluate_every = 1;
  options.context = 40;
  Data data = Open();
  EXPECT_EQ(data.Describe(),
            options.data + ": 0.98 KiB to train on\n" + options.validate +
                ": 50 B to validate\nnote: `evaluate` asks for 24 sequences, and an evaluation has "
                "all 2, each once\n");
  std::vector<int32_t> tokens(Size()), targets(Size());
  ASSERT_TRUE(data.FillValidation(0, tokens.data(), targets.data()).ok());
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 'v'), 50);
  EXPECT_EQ(std::count(targets.begin(), targets.end(), 'v'), 49);
  EXPECT_EQ(std::count(targets.begin(), targets.end(), -1), int64_t(Size()) - 49);
  options.context = 60;
  EXPECT_NE(Error().find("own` has 50 bytes, but one sequence takes 61"), std::string::npos)
      << Error();
  options.validate = "tokens(\"a\")";
  EXPECT_NE(Error().find("`data` is a text, but `validate` is tokens"), std::string::npos);
}

TEST_F(DataTest, ValidationIsFixed) {
  std::vector<int32_t> a(Size()), b(Size()), targets(Size());
  ASSERT_TRUE(Open().FillValidation(0, a.data(), targets.data()).ok());
  options.seed = 99;
  ASSERT_TRUE(Open().FillValidation(0, b.data(), targets.data()).ok());
  EXPECT_EQ(a, b);
}

// Each byte of the part for validation is a target once, also behind the last whole sequence.
TEST_F(DataTest, EvaluationCountsEachByteOnce) {
  options.data = scratch.Write("text", std::string(900, 'a') + Ramp(100));
  options.evaluate_every = 1;
  for (const Objective objective : {Objective::next_token, Objective::masked}) {
    options.objective = objective;
    options.mask_token = 255;
    options.mask_probability = 1;
    const Data data = Open();
    EXPECT_EQ(data.WholeSequences(), 4);
    EXPECT_EQ(data.ValidationSequences(), 4); // of 24 that are asked for
    std::multiset<int32_t> seen, wanted, again;
    for (int32_t byte = objective == Objective::masked ? 0 : 1; byte < 100; ++byte)
      wanted.insert(byte);
    std::vector<int32_t> tokens(Size()), targets(Size());
    ASSERT_TRUE(data.FillWhole(0, tokens.data(), targets.data()).ok());
    seen.insert(targets.begin(), targets.end());
    seen.erase(-1);
    EXPECT_EQ(seen, wanted);
    ASSERT_TRUE(data.FillValidation(0, tokens.data(), targets.data()).ok());
    again.insert(targets.begin(), targets.end());
    again.erase(-1);
    EXPECT_EQ(again, wanted);
  }
}

// Records and compressed files are no texts, though their bytes could be learnt.
TEST_F(DataTest, ATextIsNoTable) {
  const auto error_of = [&](const std::string &name, const std::string &contents) {
    options.data = scratch.Write(name, contents);
    return Error();
  };
  const std::string record = "{\"text\": \"It is.\"}\n", filler(1000, 'x');
  EXPECT_NE(error_of("a.jsonl", filler).find("it holds JSON records, whose syntax would be learnt"),
            std::string::npos);
  EXPECT_NE(Error().find("tokens(\"" + options.data + "\", uint8)"), std::string::npos) << Error();
  EXPECT_NE(error_of("a.txt", record + record + filler).find("JSON records"), std::string::npos);
  EXPECT_NE(error_of("a.json", "[\n  {\n    \"prompt\": \"a\"" + filler).find("JSON records"),
            std::string::npos);
  EXPECT_NE(error_of("a.gz", "\x1f\x8b\x08" + filler).find("`gunzip -k " + options.data + "`"),
            std::string::npos);
  EXPECT_NE(error_of("a.parquet", "PAR1" + filler).find("a Parquet file; `python3 -c "),
            std::string::npos);
  // JSON that is no list of records, and programs that begin with a brace.
  EXPECT_EQ(error_of("b.json", "{\n  \"name\": \"x\",\n  \"content\": 1" + filler), "");
  EXPECT_EQ(error_of("c.json", "[[1, 2], {\"text\": 1}]" + filler), "");
  EXPECT_EQ(error_of("d.c", "{ int text; }\n{ int i; }\n" + filler), "");
}

TEST_F(DataTest, ErrorsSayWhatToDo) {
  std::string good = options.data;
  options.data = "nowhere.txt";
  EXPECT_EQ(Error(), "training data: cannot open nowhere.txt: No such file or "
                     "directory\n  looked for: " +
                         std::filesystem::current_path().string() + "/nowhere.txt");
  options.data = scratch.path();
  EXPECT_NE(Error().find("it is not a regular file"), std::string::npos) << Error();
  options.data = good;
  options.context = 900;
  EXPECT_NE(Error().find("900 of them for training, but one sequence takes "
                         "901"),
            std::string::npos)
      << Error();
  // Without evaluation the validation part may be too short.
  options.context = 100;
  EXPECT_EQ(Error(), "");
  options.evaluate_every = 5;
  EXPECT_NE(Error().find("the last tenth of them, 100, for validation"), std::string::npos)
      << Error();
  options.context = 32;
  options.vocab = 128;
  EXPECT_NE(Error().find("byte 128 at offset 128 is outside the vocabulary"), std::string::npos)
      << Error();
}

TEST_F(DataTest, FingerprintTellsTextsApart) {
  const std::string before = Open().facts().at("data");
  EXPECT_EQ(Open().facts().at("data"), before);
  std::string text = Ramp();
  text[999] ^= 1;
  options.data = scratch.Write("other", text);
  EXPECT_NE(Open().facts().at("data"), before);
}

} // namespace
} // namespace boa
