//===- PatternTest.cpp - Parameters and activations by pattern ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Patterns of parameters: `freeze`, and blocks of settings. Patterns of activations.
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

/// With a plan whose layers keep their activations.
static std::string planned(const std::string &activations) {
  return edited("machine laptop {", "plan {\n  schedule = vertical(recompute = false)\n" +
                                        activations + "}\nmachine laptop {");
}

TEST(PatternTest, ActivationsOfNone) {
  EXPECT_EQ(
      compileText(planned("  activations \"block.q\" { save = false }\n")).diagnostics,
      R"(tiny.boa:26:15: error: no activation of a layer matches "block.q": there are block.rms_norm, block.linear, block.attention and block.add
  activations "block.q" { save = false }
              ^~~~~~~~~
)");
}

TEST(PatternTest, ActivationsHaveAPattern) {
  EXPECT_EQ(
      compileText(planned("  activations { save = false }\n")).diagnostics,
      R"(tiny.boa:26:3: error: expected a pattern after 'activations', activations "block.gelu" { ... }
  activations { save = false }
  ^~~~~~~~~~~
)");
}

TEST(PatternTest, ActivationsHaveNoSuchSetting) {
  EXPECT_EQ(
      compileText(planned("  activations \"*\" { keep = false }\n")).diagnostics,
      R"(tiny.boa:26:21: error: an activations block has no setting 'keep', did you mean 'train.commit.keep' or 'plan.schedule.keep'?
  activations "*" { keep = false }
                    ^~~~
)");
}

TEST(PatternTest, ActivationsLiveSomewhere) {
  EXPECT_EQ(
      compileText(planned("  activations \"*\" { save = maybe  place = disk }\n")).diagnostics,
      R"(tiny.boa:26:28: error: expected save to be true or false but found maybe
  activations "*" { save = maybe  place = disk }
                           ^~~~~
tiny.boa:26:43: error: expected place to be device, host or ssd but found disk; an SSD is ssd
  activations "*" { save = maybe  place = disk }
                                          ^~~~
)");
}

TEST(PatternTest, ActivationsOfMoreLayers) {
  EXPECT_EQ(
      compileText(planned("  activations \"*\" { place = host 3 layers, ssd }\n")).diagnostics,
      R"(tiny.boa:26:34: error: the model has 2 layers, but found 3 layers
  activations "*" { place = host 3 layers, ssd }
                                 ^~~~~~~~
)");
}

TEST(PatternTest, ActivationsOfRoles) {
  EXPECT_EQ(compileText(planned("  activations \"*\" { place { saved = host } }\n")).diagnostics,
            R"(tiny.boa:26:21: error: expected 'place = ...'
  activations "*" { place { saved = host } }
                    ^~~~~
)");
}

// The last block says that they are not kept.
TEST(PatternTest, ActivationsNowhere) {
  EXPECT_EQ(
      compileText(planned("  activations \"block.linear\" { place = host }\n"
                          "  activations \"*\" { save = false }\n"))
          .diagnostics,
      R"(tiny.boa:26:15: error: all activations that match "block.linear" are computed again: they live nowhere
  activations "block.linear" { place = host }
              ^~~~~~~~~~~~~~
)");
}

// An option may take away what the plan relies on.
TEST(PatternTest, ActivationsOfNoLayer) {
  EXPECT_EQ(
      refusal("machine laptop {",
              "plan {\n  activations \"*\" { save = true }\n}\nmachine laptop {"),
      R"(tiny.boa:25:28: error: no layer keeps its activations: expected schedule = vertical(recompute = false), or keep = N layers
  activations "*" { save = true }
                           ^~~~
)");
  EXPECT_EQ(
      refusal("machine laptop {",
              "plan {\n  activations \"*\" { place = ssd }\n}\nmachine laptop {"),
      R"(tiny.boa:25:29: error: no layer keeps its activations: expected schedule = vertical(recompute = false), or keep = N layers
  activations "*" { place = ssd }
                            ^~~
)");
  EXPECT_TRUE(compileText(planned("  activations \"*\" { save = true }\n"),
                          {"plan.schedule.recompute=true"})
                  .spec);
}

TEST(PatternTest, ActivationsAreNoOption) {
  EXPECT_EQ(
      overrideRefusal("plan.activations.save=false"),
      R"(--set:1:6: error: settings of some activations stand in the spec: activations "PATTERN" { ... }
plan.activations.save=false
     ^~~~~~~~~~~
)");
}

// Later patterns win. A place is of what is kept. Names are those of lets, then of builtins.
TEST(PatternTest, Activations) {
  std::string spec = planned("  activations \"*\" { save = false  place = ssd }\n"
                             "  activations \"block.a*\" { save = true }\n"
                             "  activations \"block.n?\" { place = host }\n");
  const std::string from = "let q, k, v = split(linear(rms_norm(x, g), w, b), 3)";
  spec.replace(spec.find(from), from.size(),
               "let n1 = rms_norm(x, g)\n    let n2 = n1\n"
               "    let q, k, v = split(linear(n2, w, b), 3)");
  auto result = compileText(spec);
  EXPECT_NE(result.diagnostics.find("\"block.n?\" are computed again"), std::string::npos)
      << result.diagnostics;
  const std::string places = "\"block.n?\" { place";
  spec.replace(spec.find(places), places.size(), "\"block.n?\" { save = true place");
  result = compileText(spec);
  ASSERT_TRUE(result.spec) << result.diagnostics;
  const auto &operations = result.spec->model.stages[1].operations;
  std::string names;
  for (const Operation &operation : operations)
    names += operation.name + (operation.plan.save ? " saved, " : ", ");
  EXPECT_EQ(names, "n1 saved, linear, split saved, attention saved, add saved, ");
  EXPECT_EQ(operations[0].plan.place.parts[0].tier, HomeTier::host);
  EXPECT_EQ(operations[3].plan.place.parts[0].tier, HomeTier::ssd);
  EXPECT_TRUE(result.spec->model.stages[0].operations[0].plan.place.parts.empty());
}
