//===- LossTest.cpp - The loss of a step in micro-batches -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/gradients/Harness.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace boa::testing;

namespace {

// A trainer gives each micro-batch its share of the counted targets as the gradient of its mean.
// Then losses and gradients add up to those of the step, however it is cut. A micro-batch without
// counted targets adds nothing.
TEST(CrossEntropy, AddsUpOverMicroBatches) {
  constexpr int64_t kBatch = 8, kContext = 6, kVocab = 7;
  const Values logits = randomValues(kBatch * kContext * kVocab, 5);
  for (bool counts : {true, false}) {
    Values targets(kBatch * kContext, -1);
    for (int64_t i = 0; counts && i < kBatch * kContext; ++i) // ever more, none in the first two
      if (i % kContext < i / kContext - 1)
        targets[i] = double(i * i % kVocab);
    const double all = double(std::max<int64_t>(
        std::count_if(targets.begin(), targets.end(), [](double t) { return t >= 0; }), 1));
    double loss[2] = {};
    Values gradient[2];
    for (int64_t rows : {kBatch, int64_t(1), int64_t(2), int64_t(4)}) {
      const bool cut = rows < kBatch;
      loss[cut] = 0, gradient[cut].clear();
      const std::string shape = std::to_string(rows) + "x6", type = "tensor<" + shape + "x7xf32>";
      const std::string text = "func.func @f(%x: " + type + ", %t: tensor<" + shape +
                               "xi32>) -> tensor<f32> {\n  %y = boa.cross_entropy %x, %t : (" +
                               type + ", tensor<" + shape +
                               "xi32>) -> tensor<f32>\n  return %y : tensor<f32>\n}\n";
      for (int64_t row = 0; row < kBatch; row += rows) {
        auto part = [&](const Values &of, int64_t width) {
          return Values(of.begin() + row * width, of.begin() + (row + rows) * width);
        };
        const Values x = part(logits, kContext * kVocab), t = part(targets, kContext);
        const double share =
            double(std::count_if(t.begin(), t.end(), [](double v) { return v >= 0; })) / all;
        loss[cut] += share * Compiled::get(text)->run({x, t}).front().front();
        const Values d = Compiled::get(text, /*gradient=*/true)->run({x, t, {share}}).front();
        gradient[cut].insert(gradient[cut].end(), d.begin(), d.end());
      }
      EXPECT_NEAR(loss[cut], loss[0], 1e-6 * loss[0]) << rows;
      if (counts)
        EXPECT_LT(relativeError(gradient[cut], gradient[0]), 1e-6) << rows;
    }
    EXPECT_EQ(loss[0] > 0, counts);
    EXPECT_EQ(squareOf(gradient[0]) > 0, counts);
    EXPECT_EQ(squareOf(gradient[1]) > 0, counts);
  }
}

} // namespace
