//===- updates_test.cpp - The optimizer and the norm ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/engine/fixture.h"

#include <cmath>
#include <limits>

namespace boa::engine_test {
namespace {

bool InParameters(int64_t i) { return i < 2000 || (i >= 2048 && i < kElements - 52); }

// Each parameter has its own rate and decay.
TEST_P(EngineTest, UpdatesAreAdamWWithClipping) {
  Program with = MakeProgram();
  with.train.clip = 1.5;
  with.groups[0].parameters[1].lr_scale = 0.25;
  with.groups[0].parameters[1].decay = 0.02;
  Make(with, Options());
  std::vector<double> weights[2], m[2], v[2]; // by entry
  for (int64_t entry = 0; entry < 2; ++entry) {
    std::vector<float> values = RandomFloats(7 + entry);
    Write(kWeights, entry, values);
    Write(kMomentum, entry, std::vector<float>(kElements));
    Write(kVariance, entry, std::vector<float>(kElements));
    weights[entry].assign(values.begin(), values.end());
    m[entry].assign(kElements, 0);
    v[entry].assign(kElements, 0);
  }
  const OptimizerSettings &config = program.train.optimizer;
  for (int64_t step = 1; step <= 3; ++step) {
    double squares = 0;
    std::vector<float> gradient[2];
    for (int64_t entry = 0; entry < 2; ++entry) {
      gradient[entry] = RandomFloats(10 * step + entry);
      Write(kGradient, entry, gradient[entry]);
      for (int64_t i = 0; i < kElements; ++i)
        squares += InParameters(i) ? double(gradient[entry][i]) * gradient[entry][i] : 0;
    }
    absl::Status status = Run(
        [&](boa_context *context) {
          TakeNorm(context, step);
          UpdateAll(context, step);
        },
        step);
    ASSERT_TRUE(status.ok()) << status;
    double factor = std::min(1.0, program.train.clip / (std::sqrt(squares) + 1e-6));
    ASSERT_LT(factor, 1);
    for (int64_t entry = 0; entry < 2; ++entry)
      for (int64_t i = 0; i < kElements; ++i) {
        double g = gradient[entry][i] * factor;
        double &w = weights[entry][i];
        m[entry][i] = config.beta1 * m[entry][i] + (1 - config.beta1) * g;
        v[entry][i] = config.beta2 * v[entry][i] + (1 - config.beta2) * g * g;
        double direction =
            m[entry][i] / (1 - std::pow(config.beta1, step)) /
            (std::sqrt(v[entry][i] / (1 - std::pow(config.beta2, step))) + config.eps);
        const Parameter &of = program.groups[0].parameters[i < 2048 ? 0 : 1];
        w -= config.peak * of.lr_scale * (direction + of.decay * w);
      }
  }
  for (int64_t entry = 0; entry < 2; ++entry) {
    std::vector<float> got = Read<float>(kWeights, entry);
    for (int64_t i = 0; i < kElements; ++i)
      if (InParameters(i)) {
        ASSERT_NEAR(got[i], weights[entry][i], 1e-5) << entry << " " << i;
      }
  }
}

// In AdamW's first step every element moves by the rate, whatever its gradient: the corrections
// undo the decay of the moments exactly, though 0.999 is not a number in f32, and 1 - 1e-9 is 1.
TEST_P(EngineTest, FirstUpdateIsTheRate) {
  for (double beta : {0.0, 0.9, 0.999, 0.9999999, 1 - 1e-9}) {
    Program with = MakeProgram();
    with.train.optimizer.beta1 = 0.9;
    with.train.optimizer.beta2 = beta;
    with.train.optimizer.eps = 1e-30;
    reference_settings = with.train.optimizer;
    Make(with, Options());
    const std::vector<float> none(kElements);
    std::vector<float> gradient[2];
    for (int64_t entry = 0; entry < 2; ++entry) {
      gradient[entry] = RandomFloats(10 + entry);
      for (int32_t storage : {kWeights, kMomentum, kVariance})
        Write(storage, entry, none);
      Write(kGradient, entry, gradient[entry]);
    }
    absl::Status status = Run([](boa_context *context) { UpdateAll(context, 1); });
    ASSERT_TRUE(status.ok()) << status;
    for (int64_t entry = 0; entry < 2; ++entry) {
      std::vector<float> got = Read<float>(kWeights, entry);
      for (int64_t i = 0; i < kElements; ++i)
        if (InParameters(i) && gradient[entry][i] != 0) {
          ASSERT_NEAR(got[i], std::copysign(0.01, -gradient[entry][i]), 0.01 * 1e-6)
              << beta << " " << entry << " " << i;
        }
    }
  }
}

TEST_P(EngineTest, UpdateWithoutItsNormIsAnError) {
  Program with = MakeProgram();
  with.train.clip = 1;
  Make(with, Options());
  for (int64_t entry = 0; entry < 2; ++entry)
    for (int32_t storage : {kWeights, kMomentum})
      Write(storage, entry, std::vector<float>(kElements));
  EXPECT_EQ(Run([](boa_context *context) { UpdateAll(context, 1); }).code(),
            absl::StatusCode::kInternal);
}

// Nothing is divided by a norm of 0: without gradients only the decay acts.
TEST_P(EngineTest, NormOfZeroClipsNothing) {
  Program with = MakeProgram();
  with.train.clip = 0.5;
  Make(with, Options());
  std::vector<float> weights = RandomFloats(3), none(kElements);
  for (int64_t entry = 0; entry < 2; ++entry) {
    Write(kWeights, entry, weights);
    for (int32_t storage : {kMomentum, kVariance, kGradient})
      Write(storage, entry, none);
  }
  absl::Status status = Run(
      [&](boa_context *context) {
        TakeNorm(context, 1);
        UpdateAll(context, 1);
      },
      1);
  ASSERT_TRUE(status.ok()) << status;
  const OptimizerSettings &config = program.train.optimizer;
  for (int64_t entry = 0; entry < 2; ++entry) {
    std::vector<float> got = Read<float>(kWeights, entry);
    for (int64_t i = 0; i < kElements; ++i)
      if (InParameters(i)) {
        double decay = config.peak * program.groups[0].parameters[i < 2048 ? 0 : 1].decay;
        ASSERT_NEAR(got[i], weights[i] * (1 - decay), 1e-6) << entry << " " << i;
      }
  }
}

TEST_P(EngineTest, NormThatIsNotANumberIsAnError) {
  Program with = MakeProgram();
  with.train.clip = 1;
  Make(with, Options());
  std::vector<float> gradient(kElements);
  gradient[0] = std::numeric_limits<float>::quiet_NaN();
  Write(kGradient, 0, gradient);
  absl::Status status = Run([](boa_context *context) { TakeNorm(context, 4); }, 4);
  EXPECT_EQ(status.message(), NotFiniteMessage("the gradient of block.0.matrix is not finite in "
                                               "step 4: lower the learning rate, or let such steps "
                                               "be left out (nonfinite = skip)"));
}

TEST_P(EngineTest, NormThatIsNotFiniteIsAnError) {
  Program with = MakeProgram();
  with.train.clip = 1;
  Make(with, Options());
  std::vector<float> gradient(kElements);
  gradient[2047] = std::numeric_limits<float>::quiet_NaN(); // padding: no matter
  Write(kGradient, 0, gradient);
  EXPECT_TRUE(Run([](boa_context *context) { TakeNorm(context, 1); }, 1).ok());
  gradient[1999] = std::numeric_limits<float>::infinity();
  Write(kGradient, 0, gradient);
  absl::Status status = Run([](boa_context *context) { TakeNorm(context, 2); }, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
}

// Without a norm, too, nothing that is not finite is taken for a model.
TEST_P(EngineTest, UpdateOfAGradientThatIsNotFiniteIsAnError) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY, -INFINITY}) {
    engine.reset();
    state.reset();
    std::filesystem::remove_all(scratch.path("state"));
    Make();
    WriteTensors();
    std::vector<float> gradient = RandomFloats(3);
    gradient[2047] = gradient[2001] = bad; // between parameters: no matter
    Write(kGradient, 1, gradient);
    absl::Status status = Run([](boa_context *context) { UpdateAll(context, 1); });
    EXPECT_TRUE(status.ok()) << status;
    gradient[2048 + 1000] = bad;
    Write(kGradient, 1, gradient);
    status = Run([](boa_context *context) { UpdateAll(context, 7); }, 7);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    EXPECT_EQ(status.message(), NotFiniteMessage("the gradient of block.1.bias is not finite in "
                                                 "step 7: lower the learning rate, or let such "
                                                 "steps be left out (nonfinite = skip)"));
    EXPECT_FALSE(CommitAll({7, 0, {}}).ok());
  }
}

TEST_P(EngineTest, UpdateThatOverflowsIsAnError) {
  Program with = MakeProgram();
  with.train.optimizer.peak = with.train.optimizer.floor = 1e36;
  Make(with, Options());
  WriteTensors();
  std::vector<float> weights = RandomFloats(1);
  weights[5] = -3e38f;
  Write(kWeights, 1, weights);
  absl::Status status = Run([](boa_context *context) { UpdateAll(context, 1); });
  EXPECT_EQ(status.message(),
            NotFiniteMessage("the weights or moments of block.1.matrix are not finite after the "
                             "update of step 1: lower the learning rate, or clip the gradients' "
                             "norm"));
}

// A step whose norm is not finite is as if it had not been, whether its updates
// come in its own run or in the next.
TEST_P(EngineTest, StepsThatAreNotFiniteAreLeftOut) {
  for (double clip : {0.0, 1.5})
    for (bool delayed : {false, true}) {
      SCOPED_TRACE(delayed);
      engine.reset();
      state.reset();
      std::filesystem::remove_all(scratch.path("state"));
      Program with = MakeProgram();
      with.train.clip = clip;
      with.train.nonfinite = Nonfinite::skip;
      Make(with, Options());
      WriteTensors();
      std::vector<std::vector<uint32_t>> before;
      for (int64_t step = 1; step <= 4; ++step) {
        std::vector<float> gradient = RandomFloats(step);
        if (step == 2)
          gradient[100] = std::numeric_limits<float>::quiet_NaN();
        Write(kGradient, 0, gradient);
        before = Tensors();
        absl::Status status = Run(
            [&](boa_context *context) {
              TakeNorm(context, step);
              if (!delayed)
                UpdateAll(context, step);
            },
            step);
        ASSERT_TRUE(status.ok()) << status;
        if (delayed)
          status = Run([&](boa_context *context) { UpdateAll(context, step); }, step + 1);
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(Tensors() == before, step == 2) << step;
        const std::map<int64_t, double> norms = engine->TakeNorms();
        ASSERT_EQ(norms.size(), 1u);
        EXPECT_EQ(norms.begin()->first, step);
        EXPECT_EQ(std::isfinite(norms.begin()->second), step != 2);
      }
    }
}

} // namespace
} // namespace boa::engine_test
