//===- loss_curve_test.cpp - Losses over the steps of a run ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/charts.h"
#include "runtime/view/loss_curve.h"
#include "runtime/view/metrics.h"

#include "test/runtime/scratch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>

namespace boa {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LossCurve, KeepsEachStepOfAShortRun) {
  LossCurve curve;
  curve.Add(3, 2.5);
  curve.Add(4, std::nan("")); // left out
  curve.Add(5, 1.5);
  ASSERT_EQ(curve.points().size(), 2u);
  EXPECT_EQ(curve.points()[1].first, 5);
  EXPECT_EQ(curve.points()[1].loss(), 1.5);
  EXPECT_EQ(curve.steps_of_point(), 1);
}

TEST(LossCurve, TakesMeansOfALongRun) {
  LossCurve curve;
  constexpr int64_t kSteps = 10000;
  for (int64_t step = 1; step <= kSteps; ++step)
    curve.Add(step, double(step));
  ASSERT_LE(curve.points().size(), LossCurve::kMostPoints);
  EXPECT_GT(curve.points().size(), LossCurve::kMostPoints / 2);
  int64_t next = 1, count = 0;
  for (const LossCurve::Point &point : curve.points()) {
    EXPECT_EQ(point.first, next);
    EXPECT_LE(point.last - point.first + 1, curve.steps_of_point());
    EXPECT_EQ(point.loss(), double(point.first + point.last) / 2);
    next = point.last + 1;
    count += point.count;
  }
  EXPECT_EQ(count, kSteps);
}

TEST(LossCurve, IsDrawnWithItsValues) {
  Losses losses;
  EXPECT_EQ(DrawLosses(losses), "");
  losses.training.Add(7, 2); // one step of which the losses are equal
  EXPECT_THAT(DrawLosses(losses), HasSubstr("step 7: 2.0000"));
  losses.training.Add(8, 1);
  losses.validation.Add(8, 1.25);
  const std::string picture = DrawLosses(losses);
  EXPECT_THAT(picture, HasSubstr("The training loss is 2.0000 in step 7 and 1.0000 in step 8. "
                                 "The validation loss is 1.2500 in step 8. "));
  EXPECT_THAT(picture, HasSubstr("<th scope=\"row\">7</th><td>2.0000</td><td>-</td>"));
  EXPECT_THAT(picture, HasSubstr("<th scope=\"row\">8</th><td>1.0000</td><td>1.2500</td>"));
  EXPECT_THAT(picture, Not(HasSubstr("nan")));
  // The axis ends at 0.
  losses.training.Add(9, 0.01);
  EXPECT_THAT(DrawLosses(losses), testing::AllOf(HasSubstr(">0.0<"), Not(HasSubstr(">-0"))));
}

// A resumed run draws what its file of metrics keeps.
TEST(LossCurve, GoesOnWithTheLossesOfFormerRuns) {
  Scratch scratch;
  std::string lines;
  for (int64_t step = 1; step <= 4; ++step) {
    StepRecord record;
    record.step = step;
    record.run = "a";
    record.loss = double(step);
    if (step % 2 == 0)
      record.validation_loss = step + 0.5;
    lines += FormatMetrics(record) + "\n";
  }
  auto metrics = Metrics::Continue(scratch.Write("metrics", lines), 3, "a");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  const Losses &former = metrics->former();
  ASSERT_EQ(former.training.points().size(), 3u);
  EXPECT_EQ(former.training.points()[2].loss(), 3);
  ASSERT_EQ(former.validation.points().size(), 1u);
  EXPECT_EQ(former.validation.points()[0].loss(), 2.5);
}

} // namespace
} // namespace boa
