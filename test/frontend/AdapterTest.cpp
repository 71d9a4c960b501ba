//===- AdapterTest.cpp - Adapters of low rank -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/frontend/Fixture.h"

#include <cmath>

using namespace boa;
using namespace boa::frontend;

/// The specification with these adapters in line 22.
static std::string adapted(const std::string &arguments, std::string text = kSpec) {
  const std::string before = "steps = 10\n";
  const size_t at = text.find(before) + before.size();
  return text.insert(at, "  adapters = lora(" + arguments + ")\n");
}

static std::string refused(const std::string &arguments) {
  return compileText(adapted(arguments)).diagnostics;
}

// The product, then a sum of it with a scaled product of two small matrices. All else is frozen.
TEST(AdapterTest, RewritesProducts) {
  auto result = compileText(adapted("rank = 4, alpha = 8, targets = \"block.w\""));
  ASSERT_TRUE(result.spec) << result.diagnostics;
  const StageSpec &block = result.spec->model.stages[1];
  ASSERT_EQ(block.params.size(), 5u);
  const ParamSpec &w = block.params[0], &a = block.params[3], &b = block.params[4];
  EXPECT_EQ(a.name, "w_lora_a");
  EXPECT_EQ(a.shape.values(), (std::vector<int64_t>{4, 32}));
  EXPECT_EQ(a.init, Init::Uniform);
  EXPECT_DOUBLE_EQ(a.scale, 1 / std::sqrt(32.0));
  EXPECT_EQ(b.name, "w_lora_b");
  EXPECT_EQ(b.shape.values(), (std::vector<int64_t>{96, 4}));
  EXPECT_EQ(b.init, Init::Zeros);
  EXPECT_EQ(a.position.line, 22u);
  for (const StageSpec &stage : result.spec->model.stages)
    for (const ParamSpec &param : stage.params)
      EXPECT_EQ(param.frozen, &param != &a && &param != &b) << param.name;
  ASSERT_TRUE(w.adapter);
  EXPECT_EQ(w.adapter->down, 3u);
  EXPECT_EQ(w.adapter->up, 4u);
  EXPECT_EQ(w.adapter->alpha, 8);
  EXPECT_FALSE(w.adapter->transposed);

  // rms_norm, then these.
  const auto &operations = block.operations;
  ASSERT_GE(operations.size(), 6u);
  const Operation &product = operations[1], &down = operations[2], &scaled = operations[3],
                  &up = operations[4], &sum = operations[5];
  EXPECT_EQ(product.kind, OperationKind::Linear);
  EXPECT_EQ(product.operands.size(), 3u);
  EXPECT_FALSE(product.transpose);
  EXPECT_EQ(down.kind, OperationKind::Linear);
  EXPECT_TRUE(down.transpose && up.transpose);
  EXPECT_EQ(down.operands[0], product.operands[0]);
  EXPECT_EQ(scaled.kind, OperationKind::Scale);
  EXPECT_EQ(scaled.number, 2);
  EXPECT_EQ(scaled.operands, down.results);
  EXPECT_EQ(up.operands[0], scaled.results[0]);
  EXPECT_EQ(block.values[up.results[0]].values(), (std::vector<int64_t>{16, 96}));
  EXPECT_EQ(sum.kind, OperationKind::Add);
  EXPECT_EQ(sum.operands, (std::vector<uint32_t>{product.results[0], up.results[0]}));
  EXPECT_EQ(sum.name, "linear"); // as a plan finds it without adapters
  EXPECT_EQ(operations[6].operands, sum.results);

  // The model without them is there, too.
  ASSERT_TRUE(result.spec->base);
  EXPECT_EQ(result.spec->base->stages[1].params.size(), 3u);
  EXPECT_FALSE(result.spec->base->stages[1].params[0].frozen);
}

// A weight that two stages share has one adapter, which both take.
TEST(AdapterTest, SharedWeights) {
  const std::string shared = R"(  layer more(x: [context, width]) -> [context, width] repeat depth {
    let q, k, v = split(linear(x, block.w), 3)
    return x + attention(q, k, v, heads, causal)
  }
  stage head()";
  auto result = compileText(
      adapted("rank = 4, alpha = 8, targets = \"block.w\"", edited("  stage head(", shared)));
  ASSERT_TRUE(result.spec) << result.diagnostics;
  const StageSpec &more = result.spec->model.stages[2];
  EXPECT_TRUE(more.params.empty());
  ASSERT_EQ(more.uses.size(), 3u);
  for (uint32_t i : {0, 1, 2})
    EXPECT_EQ(more.uses[i].stage, 1u);
  EXPECT_EQ(more.uses[1].param, 3u);
  EXPECT_EQ(more.uses[2].param, 4u);
  EXPECT_EQ(more.operations[4].kind, OperationKind::Add);
}

TEST(AdapterTest, Overrides) {
  const std::string text = adapted("rank = 4, alpha = 8, targets = \"block.w\"");
  auto result = compileText(
      text, {"train.adapters.rank=2", "train.adapters.alpha=3", "train.adapters.targets=block.?"});
  EXPECT_EQ(result.spec, std::nullopt); // block.b is no weight of linear
  result = compileText(text, {"train.adapters.rank=2", "train.adapters.alpha=3"});
  ASSERT_TRUE(result.spec) << result.diagnostics;
  EXPECT_EQ(result.spec->model.stages[1].params[3].shape.values(), (std::vector<int64_t>{2, 32}));
  EXPECT_EQ(result.spec->model.stages[1].operations[3].number, 1.5);
  result = compileText(text, {"train.adapters=none"});
  ASSERT_TRUE(result.spec) << result.diagnostics;
  EXPECT_EQ(result.spec->model.stages[1].params.size(), 3u);
  EXPECT_EQ(result.spec->base, std::nullopt);
}

// Patterns of parameters reach adapters, but no frozen weight.
TEST(AdapterTest, Patterns) {
  std::string text = adapted("rank = 4, alpha = 8, targets = \"block.w\"");
  const std::string block = "  parameters \"*_lora_b\" { lr_scale = 16 }\n";
  auto result = compileText(std::string(text).insert(text.find("  adapters"), block));
  ASSERT_TRUE(result.spec) << result.diagnostics;
  EXPECT_EQ(result.spec->model.stages[1].params[3].lrScale, std::nullopt);
  EXPECT_EQ(result.spec->model.stages[1].params[4].lrScale, 16);
}

// Two specs of one model have one layout, in whatever order they name targets.
TEST(AdapterTest, Order) {
  const std::string head = edited("cross_entropy(linear(x, transpose(embed.wte)), targets)",
                                  "cross_entropy(linear(linear(x, first), second), targets)");
  std::string text = head;
  text.insert(text.find("    return cross_entropy"), "    param first: [width, width] = zeros\n"
                                                     "    param second: [width, vocab] = zeros\n");
  for (const char *targets :
       {"(\"head.first\", \"head.second\", \"block.w\")",
        "(\"head.second\", \"block.w\", \"head.first\")", "(\"*.second\", \"*.w\", \"*.f*\")"}) {
    auto result =
        compileText(adapted("rank = 4, alpha = 8, targets = " + std::string(targets), text));
    ASSERT_TRUE(result.spec) << result.diagnostics;
    EXPECT_EQ(result.spec->train.adapters, "lora(rank = 4, alpha = 8, targets = (\"block.w\", "
                                           "\"head.first\", \"head.second\"))");
    std::string names;
    for (const ParamSpec &param : result.spec->model.stages[2].params)
      names += param.name + " ";
    EXPECT_EQ(names, "first second first_lora_a first_lora_b second_lora_a second_lora_b ");
  }
}

TEST(AdapterTest, OtherUses) {
  EXPECT_EQ(
      refused("rank = 4, alpha = 8, targets = (\"block.w\", \"*.wte\")"),
      R"(tiny.boa:22:62: error: expected targets to be weights of linear, but 'embed.wte' is used by embedding
  adapters = lora(rank = 4, alpha = 8, targets = ("block.w", "*.wte"))
                                                             ^~~~~~~
tiny.boa:4:12: note: it is used here
    return embedding(wte, tokens)
           ^~~~~~~~~
)");
  EXPECT_EQ(
      refused("rank = 4, alpha = 8, targets = \"block.b\""),
      R"(tiny.boa:22:50: error: expected targets to be weights of linear, but 'block.b' is used as the bias of linear
  adapters = lora(rank = 4, alpha = 8, targets = "block.b")
                                                 ^~~~~~~~~
tiny.boa:10:25: note: it is used here
    let q, k, v = split(linear(rms_norm(x, g), w, b), 3)
                        ^~~~~~
)");
}

TEST(AdapterTest, BothWays) {
  const std::string both = edited("return x + attention(q, k, v, heads, causal)",
                                  "param s: [width, width] = normal(0.02)\n    return linear("
                                  "linear(attention(q, k, v, heads, causal), s), transpose(s))");
  const std::string text = adapted("4, 8, \"block.s\"", both);
  EXPECT_EQ(
      compileText(text).diagnostics,
      R"(tiny.boa:23:25: error: 'block.s' is used both as s and as transpose(s): an adapter is for one of them
  adapters = lora(4, 8, "block.s")
                        ^~~~~~~~~
tiny.boa:12:19: note: one use is here
    return linear(linear(attention(q, k, v, heads, causal), s), transpose(s))
                  ^~~~~~
tiny.boa:12:12: note: the other is here
    return linear(linear(attention(q, k, v, heads, causal), s), transpose(s))
           ^~~~~~
)");
}

TEST(AdapterTest, NamesThatAreTaken) {
  const std::string text =
      edited("param b: [3 * width] = zeros", "param w_lora_b: [3 * width] = zeros");
  std::string renamed = text;
  renamed.replace(renamed.find("g), w, b)"), 9, "g), w, w_lora_b)");
  EXPECT_EQ(
      compileText(adapted("rank = 4, alpha = 8, targets = \"block.w\"", renamed)).diagnostics,
      R"(tiny.boa:22:50: error: the adapter of 'block.w' would be named 'w_lora_b', as another parameter is
  adapters = lora(rank = 4, alpha = 8, targets = "block.w")
                                                 ^~~~~~~~~
tiny.boa:8:11: note: rename this one
    param w_lora_b: [3 * width] = zeros
          ^~~~~~~~
)");
}

TEST(AdapterTest, Numbers) {
  EXPECT_EQ(
      refused("rank = 33, alpha = 8, targets = \"block.w\""),
      R"(tiny.boa:22:26: error: expected rank to be at most the least dimension of 'block.w', [width, 3 * width] = [32, 96], but found 33
  adapters = lora(rank = 33, alpha = 8, targets = "block.w")
                         ^~
)");
  EXPECT_EQ(refused("rank = 4, alpha = 0, targets = \"block.w\""),
            R"(tiny.boa:22:37: error: expected alpha above 0 and at most 1000000 but found 0
  adapters = lora(rank = 4, alpha = 0, targets = "block.w")
                                    ^
)");
  EXPECT_EQ(refused("rank = 4, targets = \"block.w\""),
            R"(tiny.boa:22:14: error: expected the argument 'alpha' of lora
  adapters = lora(rank = 4, targets = "block.w")
             ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
)");
  EXPECT_EQ(
      refused("rank = 4, alpha = 8, targets = block.w"),
      R"(tiny.boa:22:50: error: expected targets to be a pattern of names, "q_proj", or several, ("q_proj", "v_proj"), but found block.w
  adapters = lora(rank = 4, alpha = 8, targets = block.w)
                                                 ^~~~~~~
)");
}

TEST(AdapterTest, FreezeIsSaid) {
  std::string text = adapted("rank = 4, alpha = 8, targets = \"block.w\"");
  text.insert(text.find("  adapters"), "  freeze = \"*\"\n");
  EXPECT_EQ(
      compileText(text).diagnostics,
      R"(tiny.boa:22:12: error: all parameters of a model with adapters are frozen: leave freeze out
  freeze = "*"
           ^~~
tiny.boa:23:14: note: the adapters are here
  adapters = lora(rank = 4, alpha = 8, targets = "block.w")
             ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
)");
}

// Kernels multiply by the quotient.
TEST(AdapterTest, QuotientFitsF32) {
  EXPECT_EQ(
      refused("rank = 4, alpha = 2e-38, targets = \"block.w\""),
      R"(tiny.boa:22:37: error: expected alpha / rank to fit f32: at least 1.18e-38 but found 5e-39
  adapters = lora(rank = 4, alpha = 2e-38, targets = "block.w")
                                    ^~~~~
)");
}

TEST(AdapterTest, Habits) {
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  lora = 8"),
      R"(tiny.boa:22:3: error: a train block has no setting 'lora'; write adapters = lora(rank = 8, alpha = 16, targets = "all-linear")
  lora = 8
  ^~~~
)");
}
