//===- BuiltinTest.cpp - What tensor code refuses ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One case a rule of the functions and operators, each the whole text that a
// user sees.
//
//===----------------------------------------------------------------------===//
#include "test/frontend/Fixture.h"

using namespace boa;
using namespace boa::frontend;

TEST(BuiltinTest, UnknownFunction) {
  EXPECT_EQ(refusal("rms_norm(x, g)", "rmsnorm(x, g)"),
            R"(tiny.boa:10:32: error: no function is named 'rmsnorm', did you mean 'rms_norm'?
    let q, k, v = split(linear(rmsnorm(x, g), w, b), 3)
                               ^~~~~~~~~~~~~
)");
}

// Near in spelling is not near in meaning.
TEST(BuiltinTest, FunctionsOfOtherFrameworks) {
  EXPECT_EQ(
      refusal("rms_norm(x, g)", "relu(x)"),
      R"(tiny.boa:10:32: error: there is no 'relu': the activations here are gelu(x) and silu(x)
    let q, k, v = split(linear(relu(x), w, b), 3)
                               ^~~~~~~
)");
  std::string said = refusal("rms_norm(x, g)", "dropout(x)");
  EXPECT_EQ(said.find("did you mean"), std::string::npos) << said;
  said = refusal("rms_norm(x, g)", "fourier(x)");
  EXPECT_NE(said.find("no function is named 'fourier'; there are linear, transpose, "),
            std::string::npos)
      << said;
}

// A target that is left out is -1, which is no row of the table.
TEST(BuiltinTest, TargetsAreNoTokens) {
  EXPECT_EQ(refusal("linear(x, transpose(embed.wte))",
                    "linear(x + embedding(embed.wte, targets), transpose(embed.wte))"),
            R"(tiny.boa:14:58: error: expected the tokens of the model but found the targets
    return cross_entropy(linear(x + embedding(embed.wte, targets), transpose(embed.wte)), targets)
                                                         ^~~~~~~
)");
}

TEST(BuiltinTest, CausalIsAWordOrAnArgument) {
  for (const char *form : {"causal", "causal = true"}) {
    FrontendResult result = compileText(edited("heads, causal", std::string("heads, ") + form));
    ASSERT_TRUE(result.spec) << result.diagnostics;
    EXPECT_TRUE(result.spec->model.stages[1].operations[3].causal) << form;
  }
  FrontendResult open = compileText(edited("heads, causal", "heads, causal = false"),
                                    {"train.objective=masked(token = 3)"});
  ASSERT_TRUE(open.spec) << open.diagnostics;
  EXPECT_FALSE(open.spec->model.stages[1].operations[3].causal);
  // Which the next token must not be predicted with.
  std::string said = refusal("heads, causal", "heads, causal = false");
  EXPECT_NE(said.find("every attention must be causal"), std::string::npos) << said;
  EXPECT_EQ(refusal("heads, causal", "heads, causal = 1"),
            R"(tiny.boa:11:51: error: expected causal to be true or false but found 1
    return x + attention(q, k, v, heads, causal = 1)
                                                  ^
)");
  EXPECT_EQ(refusal("heads, causal", "heads, causal, causal = true"),
            R"(tiny.boa:11:59: error: 'causal' is given twice
    return x + attention(q, k, v, heads, causal, causal = true)
                                                          ^~~~
)");
}

// No second error for the names that the broken let would have bound.
TEST(BuiltinTest, UnknownName) {
  EXPECT_EQ(refusal("linear(rms_norm(x, g), w, b)", "linear(rms_norm(z, g), w, b)"),
            R"(tiny.boa:10:41: error: nothing here is named 'z'
    let q, k, v = split(linear(rms_norm(z, g), w, b), 3)
                                        ^
)");
}

TEST(BuiltinTest, TooFewArguments) {
  EXPECT_EQ(
      refusal("rms_norm(x, g)", "rms_norm(x)"),
      R"(tiny.boa:10:32: error: expected rms_norm(x, w[, eps = ...][, heads = ...]) but found 1 argument
    let q, k, v = split(linear(rms_norm(x), w, b), 3)
                               ^~~~~~~~~~~
)");
}

TEST(BuiltinTest, UnknownArgument) {
  EXPECT_EQ(
      refusal("rms_norm(x, g)", "rms_norm(x, g, epsilon = 1e-6)"),
      R"(tiny.boa:10:47: error: expected rms_norm(x, w[, eps = ...][, heads = ...]) but found the argument 'epsilon'
    let q, k, v = split(linear(rms_norm(x, g, epsilon = 1e-6), w, b), 3)
                                              ^~~~~~~
)");
}

TEST(BuiltinTest, LinearWeight) {
  EXPECT_EQ(
      refusal("linear(x, transpose(embed.wte))", "linear(x, embed.wte)"),
      R"(tiny.boa:14:36: error: expected a weight whose first dimension is the last of x, [context, width] = [16, 32], but found [vocab, width] = [64, 32]
    return cross_entropy(linear(x, embed.wte), targets)
                                   ^~~~~~~~~
)");
}

TEST(BuiltinTest, LinearBias) {
  EXPECT_EQ(
      refusal("param b: [3 * width]", "param b: [width]"),
      R"(tiny.boa:10:51: error: expected the bias of linear to be [3 * width] = [96] but found [width] = [32]
    let q, k, v = split(linear(rms_norm(x, g), w, b), 3)
                                                  ^
)");
}

TEST(BuiltinTest, WeightThatIsNoParameter) {
  EXPECT_EQ(
      refusal("rms_norm(x, g)", "rms_norm(x, x)"),
      R"(tiny.boa:10:44: error: expected the weight of rms_norm to be a parameter but found [context, width] = [16, 32]
    let q, k, v = split(linear(rms_norm(x, x), w, b), 3)
                                           ^
)");
}

TEST(BuiltinTest, TransposeElsewhere) {
  EXPECT_EQ(
      refusal("x + attention", "x + transpose(w) * attention"),
      R"(tiny.boa:11:16: error: transpose(...) can stand only as the weight of linear(x, transpose(w))
    return x + transpose(w) * attention(q, k, v, heads, causal)
               ^~~~~~~~~~~~
)");
}

TEST(BuiltinTest, NormWeight) {
  EXPECT_EQ(
      refusal("param g: [width]", "param g: [context]"),
      R"(tiny.boa:10:44: error: expected the weight of rms_norm to be [width] = [32] but found [context] = [16]
    let q, k, v = split(linear(rms_norm(x, g), w, b), 3)
                                           ^
)");
}

TEST(BuiltinTest, EmbeddingTable) {
  EXPECT_EQ(
      refusal("param wte: [vocab, width]", "param wte: [vocab / 2, width]"),
      R"(tiny.boa:4:22: error: expected a table with a row for each of vocab = 64 tokens but found [vocab / 2, width] = [32, 32]
    return embedding(wte, tokens)
                     ^~~
tiny.boa:14:26: error: expected logits [context, vocab] with vocab = 64 for targets [context] token = [16] but found [context, vocab / 2] = [16, 32]
    return cross_entropy(linear(x, transpose(embed.wte)), targets)
                         ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
)");
}

TEST(BuiltinTest, HeadsDivideWidth) {
  EXPECT_EQ(refusal("heads = 4", "heads = 5"),
            R"(tiny.boa:11:35: error: expected heads = 5 to divide width = 32
    return x + attention(q, k, v, heads, causal)
                                  ^~~~~
)");
}

TEST(BuiltinTest, KvHeadsDivideHeads) {
  EXPECT_EQ(refusal("heads, causal", "heads, kv_heads = 3, causal"),
            R"(tiny.boa:11:53: error: expected kv_heads = 3 to divide heads = 4
    return x + attention(q, k, v, heads, kv_heads = 3, causal)
                                                    ^
)");
}

TEST(BuiltinTest, GroupedQueries) {
  EXPECT_EQ(
      refusal("heads, causal", "heads, kv_heads = 2, causal"),
      R"(tiny.boa:11:29: error: expected k of attention to be [16, 16], the length of q and kv_heads times the width of a head, but found [context, width] = [16, 32]
    return x + attention(q, k, v, heads, kv_heads = 2, causal)
                            ^
)");
}

TEST(BuiltinTest, RotaryPairs) {
  EXPECT_EQ(
      refusal("attention(q, k, v,", "attention(rotary(q, width), k, v,"),
      R"(tiny.boa:11:36: error: expected heads of an even width, which rotary turns in pairs, but found 1
    return x + attention(rotary(q, width), k, v, heads, causal)
                                   ^~~~~
)");
}

TEST(BuiltinTest, RotaryScaling) {
  auto scaled = [](const std::string &scaling) {
    return refusal("attention(q, k, v,",
                   "attention(rotary(q, heads, scaling = " + scaling + "), k, v,");
  };
  EXPECT_EQ(
      scaled("yarn(factor = 4)"),
      R"(tiny.boa:11:53: error: expected scaling to be linear(factor = ...) or llama3(factor = ..., low = 1, high = 4, context = ...) but found yarn(factor = 4)
    return x + attention(rotary(q, heads, scaling = yarn(factor = 4)), k, v, heads, causal)
                                                    ^~~~~~~~~~~~~~~~
)");
  EXPECT_EQ(scaled("llama3(factor = 8)"),
            R"(tiny.boa:11:53: error: llama3 needs context = ...
    return x + attention(rotary(q, heads, scaling = llama3(factor = 8)), k, v, heads, causal)
                                                    ^~~~~~~~~~~~~~~~~~
)");
  EXPECT_EQ(scaled("linear(0.25)"),
            R"(tiny.boa:11:60: error: expected linear(factor = ...) but found 0.25
    return x + attention(rotary(q, heads, scaling = linear(0.25)), k, v, heads, causal)
                                                           ^~~~
)");
  EXPECT_EQ(
      scaled("linear(factor = 0.25)"),
      R"(tiny.boa:11:69: error: expected a factor of 1 or more, by which angles are divided, but found 0.25
    return x + attention(rotary(q, heads, scaling = linear(factor = 0.25)), k, v, heads, causal)
                                                                    ^~~~
)");
  EXPECT_EQ(scaled("llama3(factor = 8, low = 4, high = 4, context = 8)"),
            R"(tiny.boa:11:53: error: expected low to be less than high
    return x + attention(rotary(q, heads, scaling = llama3(factor = 8, low = 4, high = 4, context = 8)), k, v, heads, causal)
                                                    ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
)");
}

TEST(BuiltinTest, NormOfHeads) {
  EXPECT_EQ(
      refusal("rms_norm(x, g)", "rms_norm(x, g, heads = heads)"),
      R"(tiny.boa:10:44: error: expected the weight of rms_norm to be [8] but found [width] = [32]
    let q, k, v = split(linear(rms_norm(x, g, heads = heads), w, b), 3)
                                           ^
)");
  EXPECT_EQ(refusal("rms_norm(x, g)", "rms_norm(x, g, heads = 5)"),
            R"(tiny.boa:10:55: error: expected heads = 5 to divide width = 32
    let q, k, v = split(linear(rms_norm(x, g, heads = 5), w, b), 3)
                                                      ^
)");
}

TEST(BuiltinTest, Windows) {
  auto windowOf = [](const std::string &arguments) {
    FrontendResult result = compileText(edited("heads, causal", "heads, " + arguments));
    EXPECT_TRUE(result.spec) << result.diagnostics;
    const Operation &attention = result.spec->model.stages[1].operations[3];
    EXPECT_TRUE(attention.causal);
    return attention.window;
  };
  EXPECT_EQ(windowOf("window = 4"), 4);
  EXPECT_EQ(windowOf("causal, window = context - 1"), 15);
  // Which hides nothing.
  EXPECT_EQ(windowOf("causal, window = context"), 0);
  EXPECT_EQ(refusal("heads, causal", "heads, causal = false, window = 4"),
            R"(tiny.boa:11:67: error: a window is of causal attention: it hides later positions, too
    return x + attention(q, k, v, heads, causal = false, window = 4)
                                                                  ^
)");
  EXPECT_EQ(refusal("heads, causal", "heads, window = 0"),
            R"(tiny.boa:11:51: error: expected window between 1 and 2147483647 but found 0
    return x + attention(q, k, v, heads, window = 0)
                                                  ^
)");
}

TEST(BuiltinTest, ExactIsAWordOrAnArgument) {
  for (const char *form : {"gelu(x, exact)", "gelu(x, exact = true)", "gelu(x, exact = false)"}) {
    FrontendResult result =
        compileText(edited("rms_norm(x, g)", std::string("rms_norm(") + form + ", g)"));
    ASSERT_TRUE(result.spec) << result.diagnostics;
    EXPECT_EQ(result.spec->model.stages[1].operations[0].exact,
              std::string(form).find("false") == std::string::npos)
        << form;
  }
  EXPECT_EQ(refusal("rms_norm(x, g)", "rms_norm(gelu(x, exact = 2), g)"),
            R"(tiny.boa:10:57: error: expected exact to be true or false but found 2
    let q, k, v = split(linear(rms_norm(gelu(x, exact = 2), g), w, b), 3)
                                                        ^
)");
  // The first argument is a value, whatever its name.
  EXPECT_EQ(refusal("rms_norm(x, g)", "rms_norm(gelu(exact), g)"),
            R"(tiny.boa:10:46: error: nothing here is named 'exact'
    let q, k, v = split(linear(rms_norm(gelu(exact), g), w, b), 3)
                                             ^~~~~
)");
}

TEST(BuiltinTest, SplitCount) {
  EXPECT_EQ(
      refusal("split(linear(rms_norm(x, g), w, b), 3)", "split(linear(rms_norm(x, g), w, b), 5)"),
      R"(tiny.boa:10:55: error: expected the number of parts = 5 to divide 3 * width = 96
    let q, k, v = split(linear(rms_norm(x, g), w, b), 5)
                                                      ^
)");
}

TEST(BuiltinTest, SplitSizes) {
  EXPECT_EQ(
      refusal("split(linear(rms_norm(x, g), w, b), 3)",
              "split(linear(rms_norm(x, g), w, b), (width, width, 2))"),
      R"(tiny.boa:10:55: error: expected parts that add up to the last dimension of [context, 3 * width] = [16, 96] but found 66
    let q, k, v = split(linear(rms_norm(x, g), w, b), (width, width, 2))
                                                      ^~~~~~~~~~~~~~~~~
)");
}

// No second error for the v that is not bound.
TEST(BuiltinTest, SplitNames) {
  EXPECT_EQ(refusal("let q, k, v =", "let q, k ="),
            R"(tiny.boa:10:16: error: expected as many values as names, 2, but found 3
    let q, k = split(linear(rms_norm(x, g), w, b), 3)
               ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
)");
}

TEST(BuiltinTest, Logits) {
  EXPECT_EQ(
      refusal("cross_entropy(linear(x, transpose(embed.wte)), targets)",
              "cross_entropy(x, targets)"),
      R"(tiny.boa:14:26: error: expected logits [context, vocab] with vocab = 64 for targets [context] token = [16] but found [context, width] = [16, 32]
    return cross_entropy(x, targets)
                         ^
)");
}

TEST(BuiltinTest, Targets) {
  EXPECT_EQ(
      refusal("transpose(embed.wte)), targets)", "transpose(embed.wte)), x)"),
      R"(tiny.boa:14:59: error: expected the targets of cross_entropy to be tokens but found [context, width] = [16, 32]
    return cross_entropy(linear(x, transpose(embed.wte)), x)
                                                          ^
)");
}

TEST(BuiltinTest, AddShapes) {
  EXPECT_EQ(
      refusal("x + attention", "w + attention"),
      R"(tiny.boa:11:12: error: expected an activation on the left of '+' but found a parameter [width, 3 * width] = [32, 96]; write the parameter on the right
    return w + attention(q, k, v, heads, causal)
           ^
)");
}

TEST(BuiltinTest, AddSuffix) {
  EXPECT_EQ(
      refusal("x + attention(", "x + b + attention("),
      R"(tiny.boa:11:12: error: the shapes beside '+' do not fit: [context, width] = [16, 32] and [3 * width] = [96]
    return x + b + attention(q, k, v, heads, causal)
           ^~~~~
)");
}

TEST(BuiltinTest, Minus) {
  EXPECT_EQ(refusal("x + attention", "x - attention"),
            R"(tiny.boa:11:12: error: expected '+' or '*' between tensors but found '-'
    return x - attention(q, k, v, heads, causal)
           ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
)");
}

TEST(BuiltinTest, NumberPlusTensor) {
  EXPECT_EQ(
      refusal("x + attention", "1 + x + attention"),
      R"(tiny.boa:11:12: error: a number and a tensor can only be multiplied, or the tensor divided by a number that is not zero
    return 1 + x + attention(q, k, v, heads, causal)
           ^~~~~
)");
}

// Kernels compute in f32: they would take infinity or 0 in place of these.
TEST(BuiltinTest, ConstantsFitF32) {
  EXPECT_EQ(
      refusal("rms_norm(x, g)", "rms_norm(1e39 * x, g)"),
      R"(tiny.boa:10:41: error: expected the factor 1e+39 to fit f32, in which kernels compute: 0, or a size from 1.18e-38 to 3.4e38
    let q, k, v = split(linear(rms_norm(1e39 * x, g), w, b), 3)
                                        ^~~~~~~~
)");
  EXPECT_EQ(
      refusal("rms_norm(x, g)", "rms_norm(x / 1e39, g)"),
      R"(tiny.boa:10:41: error: expected the factor 1.0000000000000001e-39 to fit f32, in which kernels compute: 0, or a size from 1.18e-38 to 3.4e38
    let q, k, v = split(linear(rms_norm(x / 1e39, g), w, b), 3)
                                        ^~~~~~~~
)");
  EXPECT_EQ(
      refusal("rms_norm(x, g)", "rms_norm(x, g, eps = 1e-60)"),
      R"(tiny.boa:10:53: error: expected eps to fit f32, in which kernels compute: at least 1.18e-38 but found 1e-60
    let q, k, v = split(linear(rms_norm(x, g, eps = 1e-60), w, b), 3)
                                                    ^~~~~
)");
  EXPECT_EQ(
      refusal("wte: [vocab, width] = normal(0.02)", "wte: [vocab, width] = normal(1e-50)"),
      R"(tiny.boa:3:40: error: expected a scale that fits f32: 0, or at least 1.18e-38 but found 1e-50
    param wte: [vocab, width] = normal(1e-50)
                                       ^~~~~
)");
  EXPECT_EQ(refusal("rms_norm(x, g)", "rms_norm(0.0 * x, g)"), "");
}

// Updates are in f32.
TEST(BuiltinTest, SettingsFitF32) {
  EXPECT_EQ(overrideRefusal("train.optimizer.lr=1e-60"),
            R"(--set:1:20: error: expected lr to fit f32: 0, or at least 1.18e-38 but found 1e-60
train.optimizer.lr=1e-60
                   ^~~~~
)");
  EXPECT_EQ(
      overrideRefusal("train.optimizer=adamw(lr = cosine(1e-3, warmup = 2 steps, floor = 1e-60))"),
      R"(--set:1:67: error: expected floor to fit f32: 0, or at least 1.18e-38 but found 1e-60
train.optimizer=adamw(lr = cosine(1e-3, warmup = 2 steps, floor = 1e-60))
                                                                  ^~~~~
)");
  EXPECT_EQ(
      overrideRefusal("train.optimizer=adamw(lr = 1e-3, betas = (0.9, 1e-60))"),
      R"(--set:1:48: error: expected a beta that fits f32: 0, or at least 1.18e-38 but found 1e-60
train.optimizer=adamw(lr = 1e-3, betas = (0.9, 1e-60))
                                               ^~~~~
)");
}
