//===- optimizer_test.cpp - Tests of AdamW and SGD --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/optimizer.h"

#include "runtime/support/thread_pool.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace boa {
namespace {

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// The tensors of a range, with weights whole or split.
struct Tensors {
  std::vector<float> weights, momentum, variance, gradient;
  std::vector<uint16_t> high;
  std::vector<int16_t> low;

  explicit Tensors(int64_t count, unsigned seed = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < count; ++i) {
      weights.push_back(normal(random) * 0.02f);
      momentum.push_back(normal(random) * 1e-3f);
      variance.push_back(std::abs(normal(random)) * 1e-5f);
      gradient.push_back(normal(random) * 1e-2f);
      high.push_back(MasterHigh(BitsOf(weights.back())));
      low.push_back(MasterLow(BitsOf(weights.back())));
    }
  }

  UpdateRange Range(int64_t begin, int64_t end, bool split, float decay) {
    UpdateRange range;
    range.weights = split ? static_cast<void *>(high.data() + begin)
                          : static_cast<void *>(weights.data() + begin);
    range.low = split ? low.data() + begin : nullptr;
    range.momentum = momentum.data() + begin;
    range.variance = variance.data() + begin;
    range.gradient = gradient.data() + begin;
    range.count = end - begin;
    range.decay = decay;
    return range;
  }

  std::vector<float> Masters() const {
    std::vector<float> masters;
    for (size_t i = 0; i < high.size(); ++i)
      masters.push_back(FloatOf(JoinMaster(high[i], low[i])));
    return masters;
  }
};

UpdateConstants AdamConstants(int64_t step) {
  UpdateConstants constants;
  constants.rate = 3e-4f;
  constants.beta1 = 0.9f;
  constants.beta2 = 0.95f;
  constants.eps = 1e-8f;
  constants.correction1 = float(1 / (1 - std::pow(0.9, double(step))));
  constants.correction2 = float(1 / (1 - std::pow(0.95, double(step))));
  constants.gradient_scale = 0.7f;
  return constants;
}

UpdateConstants SgdConstants() {
  UpdateConstants constants;
  constants.adamw = false;
  constants.rate = 0.1f;
  constants.momentum = 0.9f;
  constants.gradient_scale = 0.5f;
  return constants;
}

/// One element in double.
struct Reference {
  double weight, momentum, variance;
  void Step(const UpdateConstants &c, double gradient, double decay) {
    double g = gradient * c.gradient_scale;
    double direction;
    if (c.adamw) {
      momentum = c.beta1 * momentum + (1 - double(c.beta1)) * g;
      variance = c.beta2 * variance + (1 - double(c.beta2)) * g * g;
      direction = momentum * c.correction1 / (std::sqrt(variance * c.correction2) + c.eps);
    } else {
      momentum = c.momentum * momentum + g;
      direction = momentum;
    }
    weight -= c.rate * (direction + decay * weight);
  }
};

void CompareWithReference(const UpdateConstants &constants, bool split) {
  const int64_t count = 1003;
  const float decay = 0.1f;
  Tensors tensors(count);
  std::vector<Reference> references;
  for (int64_t i = 0; i < count; ++i)
    references.push_back({tensors.weights[i], tensors.momentum[i], tensors.variance[i]});
  for (int step = 0; step < 5; ++step) {
    UpdateElements(constants, tensors.Range(0, count, split, decay));
    for (int64_t i = 0; i < count; ++i)
      references[i].Step(constants, tensors.gradient[i], decay);
  }
  std::vector<float> weights = split ? tensors.Masters() : tensors.weights;
  for (int64_t i = 0; i < count; ++i) {
    EXPECT_NEAR(weights[i], references[i].weight, 1e-6 * (1e-2 + std::abs(weights[i]))) << i;
    EXPECT_NEAR(tensors.momentum[i], references[i].momentum,
                1e-6 * (1e-2 + std::abs(references[i].momentum)));
    if (constants.adamw)
      EXPECT_NEAR(tensors.variance[i], references[i].variance, 1e-5 * references[i].variance);
  }
}

TEST(Optimizer, AdamWAgreesWithDouble) {
  CompareWithReference(AdamConstants(1), false);
  CompareWithReference(AdamConstants(100), true);
}

TEST(Optimizer, SgdAgreesWithDouble) {
  CompareWithReference(SgdConstants(), false);
  CompareWithReference(SgdConstants(), true);
}

TEST(Optimizer, SgdWithoutMomentumTensor) {
  Tensors tensors(100);
  std::vector<float> before = tensors.weights;
  UpdateRange range = tensors.Range(0, 100, false, 0.0f);
  range.momentum = range.variance = nullptr;
  UpdateConstants constants = SgdConstants();
  UpdateElements(constants, range);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(tensors.weights[i],
              before[i] - constants.rate *
                              (tensors.gradient[i] * constants.gradient_scale + 0.0f * before[i]));
}

TEST(Optimizer, EmptyRange) {
  Tensors tensors(1);
  std::vector<float> before = tensors.weights;
  UpdateElements(AdamConstants(1), tensors.Range(0, 0, false, 0));
  UpdateElementsParallel(AdamConstants(1), tensors.Range(0, 0, false, 0));
  EXPECT_EQ(tensors.weights, before);
}

class OptimizerKinds : public testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(OptimizerKinds, PartitionChangesNoBit) {
  auto [adamw, split] = GetParam();
  UpdateConstants constants = adamw ? AdamConstants(3) : SgdConstants();
  const int64_t count = 4099;
  Tensors whole(count);
  UpdateElements(constants, whole.Range(0, count, split, 0.1f));
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    Tensors parts(count);
    for (int64_t begin = 0; begin < count;) {
      int64_t end = std::min<int64_t>(count, begin + 1 + random() % (round * 40 + 1));
      UpdateElements(constants, parts.Range(begin, end, split, 0.1f));
      begin = end;
    }
    EXPECT_EQ(parts.weights, whole.weights);
    EXPECT_EQ(parts.high, whole.high);
    EXPECT_EQ(parts.low, whole.low);
    EXPECT_EQ(parts.momentum, whole.momentum);
    EXPECT_EQ(parts.variance, whole.variance);
  }
}

TEST_P(OptimizerKinds, ThreadsChangeNoBit) {
  auto [adamw, split] = GetParam();
  UpdateConstants constants = adamw ? AdamConstants(3) : SgdConstants();
  const int64_t count = 100003;
  Tensors whole(count);
  UpdateElements(constants, whole.Range(0, count, split, 0.1f));
  for (int64_t threads : {1, 2, 5}) {
    SetThreads(threads);
    Tensors parallel(count);
    UpdateElementsParallel(constants, parallel.Range(0, count, split, 0.1f));
    EXPECT_EQ(parallel.weights, whole.weights);
    EXPECT_EQ(parallel.high, whole.high);
    EXPECT_EQ(parallel.low, whole.low);
    EXPECT_EQ(parallel.momentum, whole.momentum);
  }
  SetThreads(0);
}

TEST_P(OptimizerKinds, SplitWeightsAreTheSameMaster) {
  bool adamw = std::get<0>(GetParam());
  UpdateConstants constants = adamw ? AdamConstants(3) : SgdConstants();
  Tensors full(1000), split(1000);
  for (int step = 0; step < 10; ++step) {
    UpdateElements(constants, full.Range(0, 1000, false, 0.1f));
    UpdateElements(constants, split.Range(0, 1000, true, 0.1f));
  }
  EXPECT_EQ(split.Masters(), full.weights);
}

// Wherever it stands, in the body of a vector loop or in its tail.
TEST_P(OptimizerKinds, NoticesWhatIsNotFinite) {
  auto [adamw, split] = GetParam();
  UpdateConstants constants = adamw ? AdamConstants(3) : SgdConstants();
  constexpr int64_t kCount = 83;
  Tensors fine(kCount);
  EXPECT_TRUE(UpdateElements(constants, fine.Range(0, kCount, split, 0.1f)));
  for (float bad : {float(INFINITY), -float(INFINITY), float(NAN)})
    for (int64_t at = 0; at < kCount; ++at) {
      Tensors tensors(kCount);
      tensors.gradient[at] = bad;
      UpdateRange range = tensors.Range(0, kCount, split, 0.1f);
      EXPECT_FALSE(UpdateElements(constants, range)) << at;
      for (int64_t i = 0; i < kCount; ++i) {
        EXPECT_EQ(GradientIsFinite(range, i), i != at);
        EXPECT_EQ(StateIsFinite(range, i), i != at);
      }
      range.momentum = nullptr; // plain SGD
      if (!adamw) {
        EXPECT_FALSE(UpdateElements(constants, range)) << at;
      }
    }
  // The largest of all is finite, and so is a gradient whose square is.
  Tensors large(kCount);
  large.gradient[80] = 1e18f;
  large.momentum[81] = large.variance[81] = 3e37f;
  EXPECT_TRUE(UpdateElements(constants, large.Range(0, kCount, split, 0.0f)));
  // A weight that overflows by itself.
  Tensors over(kCount);
  constants.rate = 1e30f;
  EXPECT_TRUE(UpdateElements(constants, over.Range(0, kCount, split, 0.1f)));
  over.weights[81] = 3e38f;
  over.high[81] = MasterHigh(BitsOf(3e38f));
  over.low[81] = MasterLow(BitsOf(3e38f));
  EXPECT_FALSE(UpdateElements(constants, over.Range(0, kCount, split, 0.1f)));
}

// On several threads, in whichever part it is.
TEST_P(OptimizerKinds, ThreadsNoticeWhatIsNotFinite) {
  auto [adamw, split] = GetParam();
  UpdateConstants constants = adamw ? AdamConstants(3) : SgdConstants();
  constexpr int64_t kCount = 300003;
  SetThreads(3);
  Tensors tensors(kCount);
  EXPECT_TRUE(UpdateElementsParallel(constants, tensors.Range(0, kCount, split, 0.1f)));
  for (int64_t at : {int64_t(0), kCount / 2, kCount - 1}) {
    Tensors bad = tensors;
    bad.gradient[at] = NAN;
    EXPECT_FALSE(UpdateElementsParallel(constants, bad.Range(0, kCount, split, 0.1f))) << at;
  }
  SetThreads(0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, OptimizerKinds, testing::Combine(testing::Bool(), testing::Bool()));

TEST(Master, HighAndLowGiveBackEveryBit) {
  auto check = [](uint32_t bits) {
    ASSERT_EQ(JoinMaster(MasterHigh(bits), MasterLow(bits)), bits) << std::hex << bits;
  };
  for (uint32_t high = 0; high < 0x10000; ++high)
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      check(high << 16 | low);
  std::mt19937 random(3);
  for (int i = 0; i < 1000000; ++i)
    check(random());
}

TEST(Master, HighIsTheNearestBf16) {
  EXPECT_EQ(MasterHigh(BitsOf(1.0f)), 0x3f80);
  EXPECT_EQ(MasterHigh(0x3f807fff), 0x3f80);
  EXPECT_EQ(MasterHigh(0x3f808000), 0x3f81); // ties away from zero
  EXPECT_EQ(MasterLow(0x3f808000), -0x8000);
  EXPECT_EQ(MasterHigh(0xbf808001), 0xbf81);
}

TEST(SumOfSquares, AgreesWithLongDouble) {
  for (int64_t count : {0, 1, 15, 16, 17, 1000, 16384, 16385, 300001}) {
    Tensors tensors(count);
    long double expected = 0;
    for (float value : tensors.gradient)
      expected += (long double)(value)*value;
    EXPECT_NEAR(SumOfSquares(tensors.gradient.data(), count), double(expected),
                1e-13 * double(expected))
        << count;
  }
}

TEST(SumOfSquares, ThreadsChangeNoBit) {
  Tensors tensors(300001);
  SetThreads(1);
  double one = SumOfSquares(tensors.gradient.data(), 300001);
  for (int64_t threads : {2, 3, 8}) {
    SetThreads(threads);
    EXPECT_EQ(SumOfSquares(tensors.gradient.data(), 300001), one);
  }
  SetThreads(0);
}

TEST(SumOfSquares, PassesOnInfinityAndNan) {
  std::vector<float> values(100000, 1.0f);
  values[77777] = INFINITY;
  EXPECT_EQ(SumOfSquares(values.data(), 100000), INFINITY);
  values[5] = NAN;
  EXPECT_TRUE(std::isnan(SumOfSquares(values.data(), 100000)));
}

} // namespace
} // namespace boa
