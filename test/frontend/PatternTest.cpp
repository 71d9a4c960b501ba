//===- PatternTest.cpp - Parameters by pattern ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Patterns of parameters: `freeze`, and blocks of settings.
//
//===----------------------------------------------------------------------===//
#include "test/frontend/Fixture.h"

using namespace boa;
using namespace boa::frontend;

TEST(PatternTest, FreezeMatchesNothing) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  freeze = (\"embed.*\", \"block.q\")"),
            R"(tiny.boa:22:24: error: no parameter matches "block.q", did you mean 'block.w'?
  freeze = ("embed.*", "block.q")
                       ^~~~~~~~~
)");
}

TEST(PatternTest, FreezeLeavesNothing) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  freeze = \"*\""),
            R"(tiny.boa:22:12: error: freeze leaves no parameter to train
  freeze = "*"
           ^~~
)");
}

TEST(PatternTest, FreezeIsPatterns) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  freeze = embed"),
      R"(tiny.boa:22:12: error: expected freeze to be a pattern of names, "block.*", or several, ("embed.*", "block.ln*"), but found embed
  freeze = embed
           ^~~~~
)");
}

TEST(PatternTest, ParametersHaveAPattern) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  parameters { lr_scale = 2 }"),
      R"(tiny.boa:22:3: error: expected a pattern after 'parameters', parameters "block.ln*" { ... }
  parameters { lr_scale = 2 }
  ^~~~~~~~~~
)");
}

TEST(PatternTest, ParametersOfNone) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  parameters \"head.*\" { lr_scale = 2 }"),
            R"(tiny.boa:22:14: error: no parameter matches "head.*": names are such as 'embed.wte'
  parameters "head.*" { lr_scale = 2 }
             ^~~~~~~~
)");
}

TEST(PatternTest, ParametersOfFrozen) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  freeze = \"block.*\"\n"
                            "  parameters \"*.g\" { weight_decay = 0 }"),
      R"(tiny.boa:23:14: error: all parameters that match "*.g" are frozen: nothing updates them
  parameters "*.g" { weight_decay = 0 }
             ^~~~~
)");
}

TEST(PatternTest, ParametersHaveNoSuchSetting) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  parameters \"*.g\" { lr = 2 }"),
      R"(tiny.boa:22:22: error: a parameters block has no setting 'lr', did you mean 'train.optimizer.lr'?
  parameters "*.g" { lr = 2 }
                     ^~
)");
}

TEST(PatternTest, ParametersOutOfRange) {
  EXPECT_EQ(refusal("steps = 10", "steps = 10\n  parameters \"*.g\" { weight_decay = 2 }"),
            R"(tiny.boa:22:37: error: expected weight_decay between 0 and 1 but found 2
  parameters "*.g" { weight_decay = 2 }
                                    ^
)");
}

TEST(PatternTest, ParametersAreNoOption) {
  EXPECT_EQ(
      overrideRefusal("train.parameters.lr_scale=2"),
      R"(--set:1:7: error: settings of some parameters stand in the spec: parameters "PATTERN" { ... }
train.parameters.lr_scale=2
      ^~~~~~~~~~
)");
}

// The later pattern wins, and a parameter that none matches has nothing of its own. A shell takes
// the quotes of a single pattern away.
TEST(PatternTest, Patterns) {
  auto result =
      compileText(edited("steps = 10", "steps = 10\n  parameters \"block.?\" { lr_scale = 0.5 }\n"
                                       "  parameters \"*.b\" { lr_scale = 2  weight_decay = 0.1 }"),
                  {"train.freeze=*.wte"});
  ASSERT_TRUE(result.spec) << result.diagnostics;
  const auto &stages = result.spec->model.stages;
  EXPECT_TRUE(stages[0].params[0].frozen);
  const ParamSpec &w = stages[1].params[0], &b = stages[1].params[1];
  EXPECT_FALSE(w.frozen || b.frozen);
  EXPECT_EQ(w.lrScale, 0.5);
  EXPECT_EQ(w.weightDecay, std::nullopt);
  EXPECT_EQ(b.lrScale, 2);
  EXPECT_EQ(b.weightDecay, 0.1);
}
