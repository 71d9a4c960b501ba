//===- TrainTest.cpp - What settings of a training refuse -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One case a rule, each the whole text that a user sees.
//
//===----------------------------------------------------------------------===//
#include "test/frontend/Fixture.h"

using namespace boa;
using namespace boa::frontend;

TEST(TrainTest, MissingData) {
  EXPECT_EQ(refusal("  data = \"corpus.txt\"\n", ""),
            R"(tiny.boa:17:7: error: expected the setting 'data' in the train block
train tiny {
      ^~~~
)");
}

TEST(TrainTest, UnknownModel) {
  EXPECT_EQ(refusal("train tiny", "train tny"),
            R"(tiny.boa:17:7: error: no model is named 'tny', did you mean 'tiny'?
train tny {
      ^~~
tiny.boa:1:7: note: the model is 'tiny'
model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = 2) {
      ^~~~
)");
}

TEST(TrainTest, UnknownSetting) {
  EXPECT_EQ(
      refusal("micro_batch = 2", "microbatch = 2"),
      R"(tiny.boa:20:3: error: a train block has no setting 'microbatch', did you mean 'plan.micro_batch'?
  microbatch = 2
  ^~~~~~~~~~
)");
}

TEST(TrainTest, RepeatedSetting) {
  EXPECT_EQ(refusal("  micro_batch = 2", "  micro_batch = 2\n  micro_batch = 4"),
            R"(tiny.boa:21:3: error: 'micro_batch' is set twice
  micro_batch = 4
  ^~~~~~~~~~~
tiny.boa:20:3: note: first set here
  micro_batch = 2
  ^~~~~~~~~~~
)");
}

TEST(TrainTest, MicroBatchDividesBatch) {
  EXPECT_EQ(refusal("micro_batch = 2", "micro_batch = 3"),
            R"(tiny.boa:20:17: error: expected micro_batch = 3 to divide batch = 8
  micro_batch = 3
                ^
)");
}

TEST(TrainTest, WrongUnit) {
  EXPECT_EQ(refusal("8 sequences", "8 MiB"),
            R"(tiny.boa:19:13: error: expected batch in sequences but found 'MiB'
  batch = 8 MiB
            ^~~
)");
}

TEST(TrainTest, StepsOutOfRange) {
  EXPECT_EQ(refusal("steps = 10", "steps = 0"),
            R"(tiny.boa:21:11: error: expected steps between 1 and 1099511627776 but found 0
  steps = 0
          ^
)");
}

TEST(TrainTest, StepsNotWhole) {
  EXPECT_EQ(refusal("steps = 10", "steps = 1.5"),
            R"(tiny.boa:21:11: error: expected steps to be a whole number but found 1.5
  steps = 1.5
          ^~~
)");
}

TEST(TrainTest, DataIsNoString) {
  EXPECT_EQ(
      refusal("\"corpus.txt\"", "corpus"),
      R"(tiny.boa:18:10: error: expected data to be the path of a file, "...", tokens(...), text(...), chat(...) or mix(...), but found corpus
  data = corpus
         ^~~~~~
)");
}

TEST(TrainTest, UnknownOptimizer) {
  EXPECT_EQ(
      refusal("adamw(", "adam("),
      R"(tiny.boa:22:15: error: expected optimizer to be adamw(...), sgd(...) or lion(...) but found adam(lr = 0.001), did you mean 'adamw'?
  optimizer = adam(lr = 1e-3)
              ^~~~~~~~~~~~~~~
)");
}

TEST(TrainTest, OptimizerArgument) {
  EXPECT_EQ(
      refusal("lr = 1e-3", "rate = 1e-3"),
      R"(tiny.boa:22:21: error: expected lr, betas, eps, weight_decay or state in adamw(...) but found 'rate'
  optimizer = adamw(rate = 1e-3)
                    ^~~~
)");
}

TEST(TrainTest, OptimizerWithoutRate) {
  EXPECT_EQ(refusal("lr = 1e-3", "eps = 1e-8"),
            R"(tiny.boa:22:15: error: expected the argument 'lr' of adamw
  optimizer = adamw(eps = 1e-8)
              ^~~~~~~~~~~~~~~~~
)");
}

TEST(TrainTest, Betas) {
  EXPECT_EQ(refusal("lr = 1e-3", "lr = 1e-3, betas = (0.9, 1)"),
            R"(tiny.boa:22:46: error: expected a beta of at least 0 and less than 1 but found 1
  optimizer = adamw(lr = 1e-3, betas = (0.9, 1))
                                             ^
)");
}

TEST(TrainTest, BetasAreTwo) {
  EXPECT_EQ(refusal("lr = 1e-3", "lr = 1e-3, betas = 0.9"),
            R"(tiny.boa:22:40: error: expected betas to be two numbers, (a, b), but found 0.9
  optimizer = adamw(lr = 1e-3, betas = 0.9)
                                       ^~~
)");
}

TEST(TrainTest, RateOutOfRange) {
  EXPECT_EQ(refusal("lr = 1e-3", "lr = -1"),
            R"(tiny.boa:22:26: error: expected lr above 0 and at most 1000000 but found -1
  optimizer = adamw(lr = -1)
                         ^~
)");
}

TEST(TrainTest, UnknownRate) {
  EXPECT_EQ(
      refusal("lr = 1e-3", "lr = cosin(1e-3, 10)"),
      R"(tiny.boa:22:26: error: expected lr to be constant(...), linear(...) or cosine(...) but found cosin(0.001, 10), did you mean 'cosine'?
  optimizer = adamw(lr = cosin(1e-3, 10))
                         ^~~~~~~~~~~~~~~
)");
}

TEST(TrainTest, FloorOverPeak) {
  EXPECT_EQ(refusal("lr = 1e-3", "lr = cosine(1e-3, 10, 1e-2)"),
            R"(tiny.boa:22:43: error: expected floor to be at most peak
  optimizer = adamw(lr = cosine(1e-3, 10, 1e-2))
                                          ^~~~
)");
}

TEST(TrainTest, MaskToken) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  objective = masked(token = 64)"),
            R"(tiny.boa:22:30: error: expected token between 0 and 63 but found 64
  objective = masked(token = 64)
                             ^~
)");
}

TEST(TrainTest, Weights) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  weights = f16"),
      R"(tiny.boa:22:13: error: expected weights to be f32 or bf16 but found f16, did you mean 'bf16'?
  weights = f16
            ^~~
)");
}

// A word that stands for itself has nothing to do with arguments.
TEST(TrainTest, WordsTakeNoArguments) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  weights = f32(x = 3)"),
            R"(tiny.boa:22:13: error: 'f32' takes no arguments, but found f32(x = 3)
  weights = f32(x = 3)
            ^~~~~~~~~~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  place = ssd(0)"),
            R"(tiny.boa:22:11: error: 'ssd' takes no arguments, but found ssd(0)
  place = ssd(0)
          ^~~~~~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  place { saved = host() }"),
            R"(tiny.boa:22:19: error: 'host' takes no arguments, but found host()
  place { saved = host() }
                  ^~~~~~
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  objective = next_token(token = 3)"),
      R"(tiny.boa:22:15: error: 'next_token' takes no arguments, but found next_token(token = 3)
  objective = next_token(token = 3)
              ^~~~~~~~~~~~~~~~~~~~~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  schedule = vertical(recompute = true(1))"),
            R"(tiny.boa:22:35: error: 'true' takes no arguments, but found true(1)
  schedule = vertical(recompute = true(1))
                                  ^~~~~~~
)");
}

// Names of optimizers, rates and orders take the arguments that they have.
TEST(TrainTest, WordsTakeTheirOwnArguments) {
  EXPECT_EQ(refusal("adamw(lr = 1e-3)", "sgd(lr = 1e-3, betas = (0.9, 0.95))"),
            R"(tiny.boa:22:30: error: expected lr, momentum or state in sgd(...) but found 'betas'
  optimizer = sgd(lr = 1e-3, betas = (0.9, 0.95))
                             ^~~~~
)");
  EXPECT_EQ(refusal("lr = 1e-3", "lr = constant(peak = 1e-3, floor = 1e-4)"),
            R"(tiny.boa:22:48: error: expected peak or warmup in constant(...) but found 'floor'
  optimizer = adamw(lr = constant(peak = 1e-3, floor = 1e-4))
                                               ^~~~~
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  schedule = horizontal(snake = 1)"),
      R"(tiny.boa:22:25: error: expected delay, prefetch, recompute or keep in horizontal(...) but found 'snake'
  schedule = horizontal(snake = 1)
                        ^~~~~
)");
}

TEST(TrainTest, ClipIsAboveZero) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  clip = 0"),
      R"(tiny.boa:22:10: error: expected clip above 0 and at most 1000000000000 but found 0; leave clip out, or write none, for no clipping
  clip = 0
         ^
)");
  EXPECT_EQ(
      overrideRefusal("train.clip=-1.5"),
      R"(--set:1:12: error: expected clip above 0 and at most 1000000000000 but found -1.5; leave clip out, or write none, for no clipping
train.clip=-1.5
           ^~~~
)");
}

TEST(TrainTest, Delay) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  schedule = vertical(delay = 1.5)"),
            R"(tiny.boa:22:31: error: expected delay between 0 and 1 but found 1.5
  schedule = vertical(delay = 1.5)
                              ^~~
)");
}

TEST(TrainTest, Recompute) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  schedule = vertical(recompute = 1)"),
            R"(tiny.boa:22:35: error: expected recompute to be true or false but found 1
  schedule = vertical(recompute = 1)
                                  ^
)");
}

TEST(TrainTest, Schedule) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  schedule = diagonal"),
      R"(tiny.boa:22:14: error: expected schedule to be vertical or horizontal but found diagonal
  schedule = diagonal
             ^~~~~~~~
)");
}

TEST(TrainTest, Evaluate) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  evaluate = 50"),
            R"(tiny.boa:22:14: error: expected evaluate to be every(...) but found 50
  evaluate = 50
             ^~
)");
}

TEST(TrainTest, Commit) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  commit = 50"),
            R"(tiny.boa:22:12: error: expected commit to be every(...) or end but found 50
  commit = 50
           ^~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  commit = end(3)"),
            R"(tiny.boa:22:12: error: 'end' takes no arguments, but found end(3)
  commit = end(3)
           ^~~~~~
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  commit = every(0)"),
      R"(tiny.boa:22:18: error: expected the interval of commit between 1 and 1099511627776 but found 0
  commit = every(0)
                 ^
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  commit = every(0 s)"),
      R"(tiny.boa:22:18: error: expected the interval of commit above 0 s and at most 1000000000 s but found 0 s
  commit = every(0 s)
                 ^~~
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  commit = every(5 mins)"),
      R"(tiny.boa:22:20: error: expected the interval of commit to be steps, such as 200, or a time, such as 5 min, but found the unit 'mins', did you mean 'min'?
  commit = every(5 mins)
                   ^~~~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  commit = every(200, keep = 0)"),
            R"(tiny.boa:22:30: error: expected keep between 1 and 1000 but found 0
  commit = every(200, keep = 0)
                             ^
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  commit = every(200, batches = 2)"),
            R"(tiny.boa:22:23: error: expected interval or keep in every(...) but found 'batches'
  commit = every(200, batches = 2)
                      ^~~~~~~
)");
}

// Where nothing is said a commit is made every five minutes.
TEST(TrainTest, CommitIsByStepsOrByTime) {
  struct {
    std::vector<std::string> overrides;
    int64_t every;
    double seconds;
    int64_t keep;
  } cases[] = {
      {{}, 0, 300, 1},
      {{"train.commit=end"}, 0, 0, 1},
      {{"train.commit=every(200)"}, 200, 0, 1},
      {{"train.commit=every(200 steps, 3)"}, 200, 0, 3},
      {{"train.commit=every(5 min)"}, 0, 300, 1},
      {{"train.commit=every(0.5s)"}, 0, 0.5, 1},
      {{"train.commit=every(2 h)"}, 0, 7200, 1},
      {{"train.commit=every(30 s, keep = 2)"}, 0, 30, 2},
      {{"train.commit=every(200)", "train.commit.interval=1min", "train.commit.keep=4"}, 0, 60, 4}};
  for (const auto &wanted : cases) {
    FrontendResult result = compileText(kSpec, wanted.overrides);
    ASSERT_TRUE(result.spec) << result.diagnostics;
    EXPECT_EQ(result.spec->train.commit_every, wanted.every);
    EXPECT_EQ(result.spec->train.commit_seconds, wanted.seconds);
    EXPECT_EQ(result.spec->train.commit_keep, wanted.keep);
    // What is printed says the same again.
    FrontendResult again = compileText(result.ast);
    ASSERT_TRUE(again.spec) << again.diagnostics;
    EXPECT_EQ(again.spec->train.commit_seconds, wanted.seconds);
  }
}

TEST(TrainTest, Nonfinite) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  nonfinite = skp"),
      R"(tiny.boa:22:15: error: expected nonfinite to be stop or skip but found skp, did you mean 'skip'?
  nonfinite = skp
              ^~~
)");
  EXPECT_EQ(compileText(kSpec).spec->train.nonfinite, Nonfinite::stop);
  // As with clipping, vertical order then updates in the next step.
  FrontendResult skips = compileText(kSpec, {"train.nonfinite=skip"});
  ASSERT_TRUE(skips.spec);
  EXPECT_EQ(skips.spec->train.nonfinite, Nonfinite::skip);
  EXPECT_EQ(skips.spec->plan.delay, 1);
  EXPECT_EQ(skips.spec->train.clip, 0);
}

TEST(TrainTest, Update) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  update = ssd"),
            R"(tiny.boa:22:12: error: expected update to be host or device but found ssd
  update = ssd
           ^~~
)");
  EXPECT_EQ(compileText(kSpec).spec->plan.update, UpdatePlace::host);
  FrontendResult device = compileText(kSpec, {"train.update=device"});
  ASSERT_TRUE(device.spec);
  EXPECT_EQ(device.spec->plan.update, UpdatePlace::device);
}

TEST(TrainTest, SkippingAndDelay) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  nonfinite = skip\n  schedule = vertical(delay = 0.5)"),
      R"(tiny.boa:23:31: error: to leave out a step, nonfinite = skip needs all gradients before the first update: delay must be 0 or 1
  schedule = vertical(delay = 0.5)
                              ^~~
tiny.boa:22:15: note: skipping is set here
  nonfinite = skip
              ^~~~
)");
}

TEST(TrainTest, Tier) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  place = disk"),
      R"(tiny.boa:22:11: error: expected place to be device, host or ssd but found disk; an SSD is ssd
  place = disk
          ^~~~
)");
}

TEST(TrainTest, Role) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  place { optimizer = host 40% }"),
            R"(tiny.boa:22:32: error: expected ',' and another place for the rest but found '}'
  place { optimizer = host 40% }
                               ^
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  place { optimizer = host 40%, ssd 60%, device }"),
      R"(tiny.boa:22:37: error: expected a share above 0% that leaves something for the rest but found 60% of 60%
  place { optimizer = host 40%, ssd 60%, device }
                                    ^~~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  place { saved = host 4 layers, ssd }"),
            R"(tiny.boa:22:24: error: the model has 2 layers, but found 4 layers
  place { saved = host 4 layers, ssd }
                       ^~~~~~~~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  place = device 1 layer, host 2 layers, ssd"),
            R"(tiny.boa:22:32: error: the model has 1 of 2 layers left, but found 2 layers
  place = device 1 layer, host 2 layers, ssd
                               ^~~~~~~~
)");
  EXPECT_EQ(compileText(edited("steps = 10", "steps = 10\n  place = host 1 layer, ssd"),
                        {"model.depth=1"})
                .diagnostics,
            R"(tiny.boa:22:16: error: no layer of the model repeats: expected one place, or shares
  place = host 1 layer, ssd
               ^~~~~~~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  place { saved = host 0 layers, ssd }"),
            R"(tiny.boa:22:24: error: expected at least 1 layer but found 0
  place { saved = host 0 layers, ssd }
                       ^~~~~~~~
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  place { saved = host 40%, device 2 layers, ssd }"),
      R"(tiny.boa:22:36: error: expected numbers of layers before shares, which are of the layers behind them
  place { saved = host 40%, device 2 layers, ssd }
                                   ^~~~~~~~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  place { saved = host 1.5 layers, ssd }"),
            R"(tiny.boa:22:24: error: expected a whole number of layers but found 1.5
  place { saved = host 1.5 layers, ssd }
                       ^~~~~~~~~~
)");
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  place { weight = ssd }"),
            R"(tiny.boa:22:11: error: place has no setting 'weight', did you mean 'weights'?
  place { weight = ssd }
          ^~~~~~
)");
}

TEST(TrainTest, SecondModel) {
  EXPECT_EQ(refusal("train tiny", "model other { }\ntrain tiny"),
            R"(tiny.boa:17:1: error: expected one model but found another
model other { }
^~~~~
tiny.boa:1:1: note: the first is here
model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = 2) {
^~~~~
)");
}

TEST(TrainTest, RateIsNotZero) {
  EXPECT_EQ(refusal("lr = 1e-3", "lr = 0"),
            R"(tiny.boa:22:26: error: expected lr above 0 and at most 1000000 but found 0
  optimizer = adamw(lr = 0)
                         ^
)");
  EXPECT_EQ(refusal("lr = 1e-3", "lr = linear(0, 10)"),
            R"(tiny.boa:22:33: error: expected peak above 0 and at most 1000000 but found 0
  optimizer = adamw(lr = linear(0, 10))
                                ^
)");
}

TEST(TrainTest, ClippingAndDelay) {
  for (const char *order : {"vertical  ", "horizontal"})
    EXPECT_EQ(
        refusal("steps = 10",
                "steps = 10\n  clip = 1.5\n  schedule = " + std::string(order) + "(delay = 0.5)"),
        R"(tiny.boa:23:33: error: clipping by the global norm needs all gradients before the first update: delay must be 0 or 1
  schedule = )" +
            std::string(order) + R"((delay = 0.5)
                                ^~~
tiny.boa:22:10: note: clipping is set here
  clip = 1.5
         ^~~
)");
}
