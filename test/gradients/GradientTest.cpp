//===- GradientTest.cpp - Every op against a reference and differences ----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each case: forward in f32 and f64 against plain loops; the vector-Jacobian
// product in f64 against central differences of the compiled function; the same
// in f32, and in bf16, against the one in f64; accumulation in place; heads in blocks of
// rows. Some cases also against values that PyTorch computed (golden/, made by
// make_golden.py).
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/isa.h"
#include "runtime/support/thread_pool.h"
#include "test/gradients/Cases.h"
#include "test/gradients/Harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

using namespace boa::testing;

namespace {

/// The kernels are a GPU's.
bool emulated() {
  const char *target = std::getenv("BOA_TEST_TARGET");
  return target && target == std::string("cuda");
}

class OpTest : public ::testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    if (GetParam().slowEmulated && emulated() && !std::getenv("BOA_TEST_SLOW"))
      GTEST_SKIP() << "the CPU's kernels; a GPU's with BOA_TEST_SLOW, and by tools/gpu-check";
  }
};

double dot(const std::vector<Values> &a, const std::vector<Values> &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[i].size(); ++j)
      sum += a[i][j] * b[i][j];
  return sum;
}

/// Values of f32 are exact in f64: what differs is the arithmetic.
void roundToSingle(std::vector<Values> &values) {
  for (Values &v : values)
    for (double &x : v)
      x = static_cast<float>(x);
}

void expectNear(const Case &c, const std::string &element, bool gradient, const Values &got,
                const Values &want, size_t which) {
  // A GPU's own kernels round attention's weights, and a CPU does if it multiplies bf16.
  const MoreRoundings more{/*attention=*/emulated() || boa::UsedIsa() >= boa::Isa::kAvx512Bf16};
  const Difference difference = compareWithDouble(c, element, gradient, got, want, more);
  EXPECT_LT(difference.found, difference.allowed)
      << element << (gradient ? " gradient " : " result ") << which;
}

TEST_P(OpTest, ForwardMatchesReference) {
  const Case &c = GetParam();
  // Several ops have none: there f64 is one for f32.
  for (const char *element : {"f32", "f64"}) {
    if (!c.reference && element == std::string("f64"))
      continue;
    auto compiled = Compiled::get(withElement(c.text, element));
    std::vector<Values> arguments = makeArguments(c, compiled->arguments());
    roundToSingle(arguments);
    std::vector<Values> got = compiled->run(arguments);
    std::vector<Values> want = c.reference
                                   ? c.reference(compiled->arguments(), arguments)
                                   : Compiled::get(withElement(c.text, "f64"))->run(arguments);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
      if (element == std::string("f64"))
        EXPECT_LT(largestError(got[i], want[i]), 1e-12) << "result " << i;
      else
        expectNear(c, element, /*gradient=*/false, got[i], want[i], i);
  }
}

TEST_P(OpTest, GradientMatchesDifferences) {
  const Case &c = GetParam();
  if (!c.differentiable)
    GTEST_SKIP();
  std::string text = withElement(c.text, "f64");
  auto forward = Compiled::get(text);
  auto gradient = Compiled::get(text, /*gradient=*/true);
  std::vector<Values> arguments = makeArguments(c, forward->arguments());
  std::vector<Values> seeds = makeSeeds(forward->results());
  std::vector<Values> all = arguments;
  all.insert(all.end(), seeds.begin(), seeds.end());
  std::vector<Values> got = gradient->run(all);

  size_t result = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (forward->arguments()[i].element == "i32")
      continue;
    ASSERT_LT(result, got.size());
    if (c.large) {
      // Along a random direction: one number instead of one for each element.
      const double step = 1e-5;
      Values direction = randomValues(arguments[i].size(), 333 + i);
      auto valueAt = [&](double distance) {
        std::vector<Values> moved = arguments;
        for (size_t j = 0; j < direction.size(); ++j)
          moved[i][j] += distance * direction[j];
        return dot(forward->run(moved), seeds);
      };
      double want = (valueAt(step) - valueAt(-step)) / (2 * step);
      double have = dot({got[result]}, {direction});
      EXPECT_NEAR(have, want, 1e-6 * std::max(1.0, std::abs(want))) << "argument " << i;
      ++result;
      continue;
    }
    Values want(arguments[i].size());
    for (size_t j = 0; j < want.size(); ++j) {
      const double step = 1e-5, at = arguments[i][j];
      arguments[i][j] = at + step;
      double up = dot(forward->run(arguments), seeds);
      arguments[i][j] = at - step;
      double down = dot(forward->run(arguments), seeds);
      arguments[i][j] = at;
      want[j] = (up - down) / (2 * step);
    }
    EXPECT_LT(largestError(got[result], want), 1e-6) << "argument " << i;
    ++result;
  }
  EXPECT_EQ(result, got.size());
}

TEST_P(OpTest, SingleMatchesDouble) {
  const Case &c = GetParam();
  if (!c.differentiable)
    GTEST_SKIP();
  std::vector<Values> results[2];
  for (int i : {0, 1}) {
    std::string text = withElement(c.text, i ? "f64" : "f32");
    auto forward = Compiled::get(text);
    auto gradient = Compiled::get(text, /*gradient=*/true);
    std::vector<Values> all = makeArguments(c, forward->arguments());
    for (Values &seed : makeSeeds(forward->results()))
      all.push_back(seed);
    roundToSingle(all);
    results[i] = gradient->run(all);
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (size_t i = 0; i < results[0].size(); ++i)
    expectNear(c, "f32", /*gradient=*/true, results[0][i], results[1][i], i);
}

// Arguments hold bf16, and so do results but for sums, which are f32.
TEST_P(OpTest, BfloatMatchesDouble) {
  const Case &c = GetParam();
  std::string narrow = withElement(c.text, "bf16"), wide = withElement(c.text, "f64");
  auto forward = Compiled::get(narrow);
  std::vector<Values> arguments = makeArguments(c, forward->arguments());
  std::vector<Values> seeds = makeSeeds(forward->results());
  for (size_t i = 0; i < arguments.size(); ++i)
    arguments[i] = roundTo(forward->arguments()[i], arguments[i]);
  for (size_t i = 0; i < seeds.size(); ++i)
    seeds[i] = roundTo(forward->results()[i], seeds[i]);

  auto compare = [&](bool gradient, const std::vector<Values> &values) {
    std::vector<Values> got = Compiled::get(narrow, gradient)->run(values);
    std::vector<Values> want = Compiled::get(wide, gradient)->run(values);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
      expectNear(c, "bf16", gradient, got[i], want[i], i);
  };
  compare(/*gradient=*/false, arguments);
  if (!c.differentiable)
    return;
  arguments.insert(arguments.end(), seeds.begin(), seeds.end());
  compare(/*gradient=*/true, arguments);
}

// By blocks of 15 rows, of which the last of a sequence has 10, or of 2 whole sequences, then
// 1: only sums over rows may be rounded otherwise. What is as wide as the vocabulary takes
// less memory.
TEST_P(OpTest, BlocksMatchWhole) {
  const Case &c = GetParam();
  auto has = [&](const char *op) { return c.text.find(op) != std::string::npos; };
  if (!has("boa.linear") || !has("boa.cross_entropy"))
    GTEST_SKIP();
  for (const auto &[element, tolerance] :
       {std::pair("f64", 1e-13), std::pair("f32", 1e-5), std::pair("bf16", kRounding)}) {
    std::string text = withElement(c.text, element);
    std::vector<Values> forward = makeArguments(c, Compiled::get(text)->arguments());
    std::vector<Values> backward = forward;
    for (Values &seed : makeSeeds(Compiled::get(text)->results()))
      backward.push_back(seed);
    for (const auto &[gradient, accumulate] :
         {std::pair(false, false), {true, false}, {true, true}})
      for (int64_t rows : {15, 100}) {
        // Narrower types differ in rounding alone.
        if (element != std::string("f64") && (!gradient || accumulate || rows == 100))
          continue;
        if (c.huge && rows == 100) // there are 20
          continue;
        SCOPED_TRACE(::testing::Message() << element << ", gradient " << gradient << ", accumulate "
                                          << accumulate << ", blocks of " << rows);
        auto whole = Compiled::get(text, gradient, accumulate);
        auto blocks = Compiled::get(text, gradient, accumulate, rows);
        std::vector<Values> before;
        for (size_t i = 0; accumulate && i < whole->results().size(); ++i)
          before.push_back(randomValues(whole->results()[i].size(), 5 + i));
        const std::vector<Values> &all = gradient ? backward : forward;
        std::vector<Values> want = whole->run(all, before), got = blocks->run(all, before);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < want.size(); ++i)
          EXPECT_LT(relativeError(got[i], want[i]), tolerance) << "result " << i;
        EXPECT_LT(blocks->workspace(), whole->workspace());
      }
  }
}

TEST_P(OpTest, AccumulatesInPlace) {
  const Case &c = GetParam();
  if (!c.differentiable || c.huge)
    GTEST_SKIP();
  for (const char *element : {"f32", "f64"}) {
    std::string text = withElement(c.text, element);
    auto forward = Compiled::get(text);
    auto plain = Compiled::get(text, /*gradient=*/true);
    auto accumulating = Compiled::get(text, /*gradient=*/true, /*accumulate=*/true);
    std::vector<Values> all = makeArguments(c, forward->arguments());
    for (Values &seed : makeSeeds(forward->results()))
      all.push_back(seed);
    std::vector<Values> before;
    for (const Operand &result : plain->results())
      before.push_back(randomValues(result.size(), 5 + before.size()));
    roundToSingle(all);
    roundToSingle(before);
    std::vector<Values> want = plain->run(all);
    std::vector<Values> got = accumulating->run(all, before);
    // Sums begin with what was there, so those in f32 are rounded otherwise.
    double tolerance = element == std::string("f64") ? 1e-12 : c.large ? 5e-5 : 5e-6;
    for (size_t i = 0; i < got.size(); ++i) {
      for (size_t j = 0; j < got[i].size(); ++j)
        want[i][j] += before[i][j];
      EXPECT_LT(largestError(got[i], want[i]), tolerance) << element << ", gradient " << i;
    }
  }
}

// The design's promise: the same bits on any number of threads.
TEST_P(OpTest, DoesNotDependOnThreads) {
  const Case &c = GetParam();
  if (!c.large || c.huge || !c.differentiable)
    GTEST_SKIP();
  for (const char *element : {"f32", "bf16"}) {
    std::string text = withElement(c.text, element);
    auto forward = Compiled::get(text);
    auto gradient = Compiled::get(text, /*gradient=*/true);
    std::vector<Values> arguments = makeArguments(c, forward->arguments());
    std::vector<Values> all = arguments;
    for (Values &seed : makeSeeds(forward->results()))
      all.push_back(seed);
    std::vector<Values> results, gradients;
    for (int64_t threads : {1, 2, 3, 5}) {
      boa::SetThreads(threads);
      std::vector<Values> y = forward->run(arguments), g = gradient->run(all);
      if (threads == 1)
        results = y, gradients = g;
      EXPECT_EQ(y, results) << element << ", " << threads << " threads";
      EXPECT_EQ(g, gradients) << element << ", " << threads << " threads";
    }
    boa::SetThreads(0);
  }
}

//===----------------------------------------------------------------------===//
// Casts, to the bit
//===----------------------------------------------------------------------===//

/// %y = a cast of 37 elements: vectors and what is left over.
const Compiled *castOf(const std::string &from, const std::string &to, bool gradient = false) {
  std::string x = "tensor<37x" + from + ">", y = "tensor<37x" + to + ">";
  return Compiled::get("func.func @f(%x: " + x + ") -> " + y + " {\n  %y = boa.cast %x : " + x +
                           " to " + y + "\n  return %y : " + y + "\n}\n",
                       gradient);
}

/// `first`, then normal values.
Values fill(Values first) {
  for (double value : randomValues(37 - int64_t(first.size()), 3))
    first.push_back(float(value));
  return first;
}

TEST(Cast, RoundsToNearestEven) {
  const double step = 1.0 / 128; // from 1 to the next
  const Values from = fill({1 + step / 2, 1 + 3 * step / 2, 1 + step / 2 + 1e-6, -1 - step / 2,
                            3.4e38, -INFINITY, NAN, 0x1p-133, 0x1.8p-133, 0x1p-134});
  Values want = roundTo({{37}, "bf16"}, from);
  Values special = {1, 1 + 2 * step, 1 + step, -1, INFINITY, -INFINITY, NAN, 0x1p-133, 0x1p-132, 0};
  std::copy(special.begin(), special.end(), want.begin());
  Values got = castOf("f32", "bf16")->run({from}).front();
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
        << from[i] << " became " << got[i] << ", not " << want[i];
}

TEST(Cast, GradientIsCastBack) {
  Values seed = fill({}), rounded = roundTo({{37}, "bf16"}, seed);
  ASSERT_NE(seed, rounded);
  EXPECT_EQ(castOf("f32", "bf16", /*gradient=*/true)->run({seed, rounded}).front(), rounded);
  EXPECT_EQ(castOf("bf16", "f32", /*gradient=*/true)->run({rounded, seed}).front(), rounded);
}

//===----------------------------------------------------------------------===//
// Rotations, to the bit
//===----------------------------------------------------------------------===//

const Case &findCase(const std::string &name) {
  for (const Case &c : cases())
    if (c.name == name)
      return c;
  ADD_FAILURE() << "no case " << name;
  return cases().front();
}

// In one pass, as if it were widened, turned in f32 and rounded in three.
TEST(Rotary, RoundsWhatIsTurnedInSingle) {
  for (const char *name : {"rotary", "rotary_inverse", "rotary_8192"}) {
    SCOPED_TRACE(name);
    const Case &c = findCase(name);
    auto narrow = Compiled::get(withElement(c.text, "bf16"));
    const Operand type = narrow->results().front();
    const Values x = roundTo(type, randomValues(type.size(), 7));
    const Values wide = Compiled::get(withElement(c.text, "f32"))->run({x}).front();
    EXPECT_EQ(narrow->run({x}).front(), roundTo(type, wide));
  }
}

//===----------------------------------------------------------------------===//
// Attention of what is no number
//===----------------------------------------------------------------------===//

constexpr int64_t kTime = 40, kWidth = 16, kHead = kWidth / 2;

/// Whether all, or any, of a row's first head are NaN.
bool isLost(const Values &values, int64_t row) {
  auto from = values.begin() + row * kWidth;
  return std::all_of(from, from + kHead, [](double x) { return std::isnan(x); });
}
bool isTouched(const Values &values, int64_t row) {
  auto from = values.begin() + row * kWidth;
  return std::any_of(from, from + kHead, [](double x) { return std::isnan(x); });
}

// A query that has a NaN, or of which all scores are minus infinity, has no result and no
// gradient, and those of the keys that it sees are lost with it: nothing stands in for them.
// Other queries have theirs.
TEST(Attention, ShowsWhatIsNoNumber) {
  const int64_t bad = 35; // in a second tile of keys
  for (const char *element : {"f32", "bf16"})
    for (bool infinite : {false, true}) {
      SCOPED_TRACE(element + std::string(infinite ? ", scores of minus infinity" : ", a NaN"));
      std::string type = "tensor<1x40x16xELT>";
      std::string text = withElement(
          "func.func @f(%q: TYPE, %k: TYPE, %v: TYPE) -> TYPE {\n"
          "  %y, %lse = boa.attention %q, %k, %v heads 2, 2 causal : (TYPE, TYPE, TYPE) -> "
          "(TYPE, tensor<1x2x40xWIDE>)\n  return %y : TYPE\n}\n",
          element);
      for (size_t at; (at = text.find("TYPE")) != std::string::npos;)
        text.replace(at, 4, withElement(type, element));
      std::vector<Values> all;
      for (uint64_t seed : {1, 2, 3, 4}) // q, k, v, and the gradient of y
        all.push_back(randomValues(kTime * kWidth, seed));
      Values &q = all[0], &k = all[1];
      for (int64_t x = 0; infinite && x < kHead; ++x)
        q[bad * kWidth + x] = 0;
      for (int64_t row = 0; infinite && row < kTime; ++row)
        q[row * kWidth] = 0, k[row * kWidth] = -1e30;
      q[bad * kWidth] = infinite ? 1e30 : NAN;

      Values y = Compiled::get(text)->run({all[0], all[1], all[2]}).front();
      std::vector<Values> gradients = Compiled::get(text, /*gradient=*/true)->run(all);
      for (int64_t row = 0; row < kTime; ++row) {
        EXPECT_EQ(isLost(y, row), row == bad) << row;
        EXPECT_EQ(isTouched(y, row), row == bad) << row;
        EXPECT_EQ(isLost(gradients[0], row), row == bad) << row;
        EXPECT_EQ(isTouched(gradients[0], row), row == bad) << row;
        if (row <= bad) {
          EXPECT_TRUE(isTouched(gradients[1], row)) << row;
          EXPECT_TRUE(isLost(gradients[2], row)) << row;
        }
      }
    }
}

//===----------------------------------------------------------------------===//
// Code for files, and what it may call
//===----------------------------------------------------------------------===//

TEST(Codegen, WritesObjectFiles) {
  std::string text = withElement(findCase("gpt_block").text, "f32");
  for (const char *cpu : {"host", "x86-64-v3"}) {
    std::string object =
        compileToObject(text, /*gradient=*/false, std::nullopt, "kernel", cpu).object;
    EXPECT_EQ(object.substr(0, 4), "\x7f"
                                   "ELF")
        << cpu;
    EXPECT_NE(object.find("boa_gemm_f32"), std::string::npos) << cpu;
    EXPECT_EQ(object.find("malloc"), std::string::npos) << cpu;
  }
}

TEST(Codegen, RefusesUnknownSymbols) {
  std::string text = withElement(findCase("linear_7").text, "f32");
  EXPECT_NE(compileWithoutRuntime(text).find("boa_gemm_f32"), std::string::npos);
}

// No other device's kernels are tested in place of those that were asked for.
TEST(HarnessDeathTest, RefusesUnknownTargets) {
  std::string text = withElement(findCase("linear_7").text, "f32");
  EXPECT_DEATH(
      {
        setenv("BOA_TEST_TARGET", "gpu", /*replace=*/1);
        compileWithoutRuntime(text);
      },
      "BOA_TEST_TARGET: expected cpu or cuda but found `gpu`");
}

//===----------------------------------------------------------------------===//
// Against PyTorch
//===----------------------------------------------------------------------===//

/// Tensors of a file by role.
std::map<std::string, std::vector<Values>> readGolden(const std::string &path) {
  std::map<std::string, std::vector<Values>> golden;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string role;
    words >> role;
    Values values;
    for (double value; words >> value;)
      values.push_back(value);
    golden[role].push_back(values);
  }
  return golden;
}

TEST(Golden, MatchesPyTorch) {
  int found = 0;
  for (const auto &entry : std::filesystem::directory_iterator(BOA_GOLDEN)) {
    std::string name = entry.path().stem();
    SCOPED_TRACE(name);
    auto golden = readGolden(entry.path());
    std::string text = withElement(findCase(name).text, "f64");
    std::vector<Values> all = golden["argument"];
    std::vector<Values> results = Compiled::get(text)->run(all);
    all.insert(all.end(), golden["seed"].begin(), golden["seed"].end());
    std::vector<Values> gradients = Compiled::get(text, /*gradient=*/true)->run(all);
    ASSERT_EQ(results.size(), golden["result"].size());
    ASSERT_EQ(gradients.size(), golden["gradient"].size());
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_LT(largestError(results[i], golden["result"][i]), 1e-12);
    for (size_t i = 0; i < gradients.size(); ++i)
      EXPECT_LT(largestError(gradients[i], golden["gradient"][i]), 1e-12);
    ++found;
  }
  EXPECT_GE(found, 12);
}

INSTANTIATE_TEST_SUITE_P(Ops, OpTest, ::testing::ValuesIn(cases()),
                         [](const auto &info) { return info.param.name; });

} // namespace
