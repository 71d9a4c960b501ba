//===- StageTest.cpp - How stages and layers may be connected ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Several kinds of layers, side inputs, shared parameters of layers. One case a rule, each the
// whole text that a user sees.
//
//===----------------------------------------------------------------------===//
#include "test/frontend/Fixture.h"

using namespace boa;
using namespace boa::frontend;

namespace {
/// A further layer, up to its `repeat`.
const std::string kScaleLayer = "  layer more(x: [context, width]) -> [context, width]";

/// The specification whose layer also takes the result of a stage.
std::string takingAlso(const std::string &stage, const std::string &type = "[context, width]") {
  std::string text = edited("block(x: [context, width])",
                            "block(x: [context, width], start: " + type + " = " + stage + ")");
  return text.replace(text.find("return x +"), 10, "return x + start +");
}
} // namespace

// Layers give back what they take, whatever their number; stages between them may not.
TEST(StageTest, LayerOfAnotherShape) {
  EXPECT_EQ(
      refusal("x: [context, width]) -> [context, width] repeat",
              "x: [context, width]) -> [context, 3 * width] repeat"),
      R"(tiny.boa:6:39: error: expected a layer to return the shape that it takes, [context, width] = [16, 32], but found [context, 3 * width] = [16, 96]
  layer block(x: [context, width]) -> [context, 3 * width] repeat depth {
                                      ^~~~~~~~~~~~~~~~~~~~
tiny.boa:6:18: note: taken here
  layer block(x: [context, width]) -> [context, 3 * width] repeat depth {
                 ^~~~~~~~~~~~~~~~
)");
}

// The ends of a model are no layers.
TEST(StageTest, LayerAtTheEnd) {
  EXPECT_EQ(
      refusal("stage head(x: [context, width], targets: [context] token) -> loss {",
              "layer head(x: [context, width], targets: [context] token) -> loss repeat 2 {"),
      R"(tiny.boa:13:9: error: expected a stage before the layers, which takes the tokens, and one after them, which returns the loss
  layer head(x: [context, width], targets: [context] token) -> loss repeat 2 {
        ^~~~
)");
}

// A stage takes results of earlier stages, which its arguments name.
TEST(StageTest, SideInput) {
  EXPECT_EQ(refusal("block(x: [context, width])",
                    "block(x: [context, width], start: [context, width] = embed)"),
            "tiny.boa:6:36: error: argument 'start' is never used\n"
            "  layer block(x: [context, width], start: [context, width] = embed) -> "
            "[context, width] repeat depth {\n"
            "                                   ^~~~~\n");
  EXPECT_EQ(compileText(takingAlso("embed")).diagnostics, "");
}

TEST(StageTest, SideInputOfNoStage) {
  EXPECT_EQ(compileText(takingAlso("embd")).diagnostics,
            R"(tiny.boa:6:62: error: no stage is named 'embd', did you mean 'embed'?
  layer block(x: [context, width], start: [context, width] = embd) -> [context, width] repeat depth {
                                                             ^~~~
)");
}

TEST(StageTest, SideInputOfItself) {
  EXPECT_EQ(compileText(takingAlso("block")).diagnostics,
            R"(tiny.boa:6:62: error: 'block' cannot take its own result: expected an earlier stage
  layer block(x: [context, width], start: [context, width] = block) -> [context, width] repeat depth {
                                                             ^~~~~
)");
}

TEST(StageTest, SideInputOfALaterStage) {
  EXPECT_EQ(compileText(takingAlso("head")).diagnostics,
            R"(tiny.boa:6:62: error: stage 'head' comes after 'block': expected an earlier stage
  layer block(x: [context, width], start: [context, width] = head) -> [context, width] repeat depth {
                                                             ^~~~
tiny.boa:13:9: note: it is here
  stage head(x: [context, width], targets: [context] token) -> loss {
        ^~~~
)");
}

TEST(StageTest, SideInputOfAnotherShape) {
  EXPECT_EQ(
      compileText(takingAlso("embed", "[context, heads]")).diagnostics,
      R"(tiny.boa:6:43: error: expected what stage 'embed' returns, [context, width] = [16, 32], but found [context, heads] = [16, 4]
  layer block(x: [context, width], start: [context, heads] = embed) -> [context, width] repeat depth {
                                          ^~~~~~~~~~~~~~~~
tiny.boa:2:43: note: returned here
  stage embed(tokens: [context] token) -> [context, width] {
                                          ^~~~~~~~~~~~~~~~
)");
}

TEST(StageTest, SideInputTwice) {
  EXPECT_EQ(compileText(takingAlso("embed, again: [context, width] = embed")).diagnostics,
            R"(tiny.boa:6:95: error: the result of 'embed' is an argument already
  layer block(x: [context, width], start: [context, width] = embed, again: [context, width] = embed) -> [context, width] repeat depth {
                                                                                              ^~~~~
tiny.boa:6:36: note: this one has it
  layer block(x: [context, width], start: [context, width] = embed, again: [context, width] = embed) -> [context, width] repeat depth {
                                   ^~~~~
)");
}

// What the place of a stage in the model gives needs no name of a stage, and stands first.
TEST(StageTest, OrderOfArguments) {
  EXPECT_EQ(refusal("block(x: [context, width])",
                    "block(start: [context, width] = embed, x: [context, width])"),
            R"(tiny.boa:6:41: error: expected arguments that name a stage after those that name none
  layer block(start: [context, width] = embed, x: [context, width]) -> [context, width] repeat depth {
                                        ^~~~~
)");
  EXPECT_EQ(
      refusal("block(x: [context, width])", "block(x: [context, width], start: [context, width])"),
      R"(tiny.boa:6:36: error: expected one argument, the result of the stage before, but found 2; a further one names its stage: 'start: [...] = STAGE'
  layer block(x: [context, width], start: [context, width]) -> [context, width] repeat depth {
                                   ^~~~~
)");
  // A stage that names what it takes may leave out the result before it.
  EXPECT_EQ(compileText(edited("block(x: [context, width])", "block(x: [context, width] = embed)"))
                .diagnostics,
            "");
}

namespace {
/// The specification whose first stage returns the tokens, too.
std::string returningTokens(const std::string &types, const std::string &values) {
  std::string text = edited("token) -> [context, width] {", "token) -> " + types + " {");
  return text.replace(text.find("return embedding(wte, tokens)"), 29, "return " + values);
}
const std::string kTwo = "([context, width], [context] token)";
} // namespace

// A stage returns several values. Later stages take them in order, by number, or not at all.
TEST(StageTest, SeveralResults) {
  const std::string two = returningTokens(kTwo, "(embedding(wte, tokens), tokens)");
  EXPECT_EQ(compileText(two).diagnostics, "");
  std::string text = two;
  text.replace(text.find("block(x: [context, width])"), 26,
               "block(x: [context, width], t: [context] token = embed[2])");
  EXPECT_EQ(compileText(text).diagnostics,
            R"(tiny.boa:6:57: error: expected one of the 2 results of 'embed', from 0, but found 2
  layer block(x: [context, width], t: [context] token = embed[2]) -> [context, width] repeat depth {
                                                        ^~~~~
tiny.boa:2:43: note: returned here
  stage embed(tokens: [context] token) -> ([context, width], [context] token) {
                                          ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
)");
  EXPECT_EQ(compileText(returningTokens(kTwo, "embedding(wte, tokens)")).diagnostics,
            R"(tiny.boa:4:12: error: expected stage 'embed' to return 2 values but found 1
    return embedding(wte, tokens)
           ^~~~~~~~~~~~~~~~~~~~~~
tiny.boa:2:43: note: declared here
  stage embed(tokens: [context] token) -> ([context, width], [context] token) {
                                          ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
)");
}

// Only the model's own tokens are rows of a table.
TEST(StageTest, EmbeddingOfPassedTokens) {
  std::string text = returningTokens(kTwo, "(embedding(wte, tokens), tokens)");
  text.replace(text.find("block(x: [context, width])"), 26,
               "block(x: [context, width], t: [context] token)");
  text.replace(text.find("return x +"), 10, "return x + embedding(embed.wte, t) +");
  EXPECT_EQ(
      compileText(text).diagnostics,
      R"(tiny.boa:11:37: error: expected the tokens of the model but found what a stage returns
    return x + embedding(embed.wte, t) + attention(q, k, v, heads, causal)
                                    ^
)");
  text.replace(text.find("t: [context] token)"), 19, "t: [context] token = tokens)");
  EXPECT_EQ(compileText(text).diagnostics, "");
}

// Tokens have no gradient: a stage may take them twice. The first stage may name them, too.
TEST(StageTest, TokensTwice) {
  std::string text =
      edited("targets: [context] token)", "targets: [context] token, t: [context] "
                                          "token = tokens, u: [context] token = tokens)");
  text.replace(text.find("linear(x, transpose"), 8,
               "linear(x + embedding(embed.wte, t) + embedding(embed.wte, u)");
  EXPECT_EQ(compileText(text).diagnostics, "");
  EXPECT_EQ(refusal("embed(tokens: [context] token)", "embed(tokens: [context] token = tokens)"),
            "");
}

TEST(StageTest, LayersThatCarryTokens) {
  std::string text = edited("block(x: [context, width]) -> [context, width] repeat",
                            "block(t: [context] token = tokens, x: [context, width] = embed) -> "
                            "([context] token, [context, width]) repeat");
  text.replace(text.find("return x +"), 10, "return (t, x +");
  text.insert(text.find("causal)") + 7, ")");
  text.replace(text.find("head(x: [context, width], targets: [context] token)"), 51,
               "head(targets: [context] token, x: [context, width] = block[1])");
  EXPECT_EQ(
      compileText(text).diagnostics,
      R"(tiny.boa:6:36: error: layers carry 't' on: expected what a stage returns but found the tokens
  layer block(t: [context] token = tokens, x: [context, width] = embed) -> ([context] token, [context, width]) repeat depth {
                                   ^~~~~~
)");
}

// A message names the argument that is missing.
TEST(StageTest, MissingArguments) {
  EXPECT_EQ(
      refusal("head(x: [context, width], targets: [context] token)",
              "head(x: [context, width] = block)"),
      R"(tiny.boa:13:9: error: expected an argument that names no stage, the targets, but found none
  stage head(x: [context, width] = block) -> loss {
        ^~~~
)");
  std::string text = returningTokens(kTwo, "(embedding(wte, tokens), tokens)");
  text.replace(text.find("block(x: [context, width])"), 26, "block()");
  EXPECT_EQ(
      compileText(text).diagnostics,
      R"(tiny.boa:6:9: error: expected 1 to 2 arguments, results of the stage before, but found 0
  layer block() -> [context, width] repeat depth {
        ^~~~~
)");
}

// Each result is stored by itself, in each layer and micro-batch.
TEST(StageTest, MostResults) {
  std::string types = "([context, width]", values = "(embedding(wte, tokens)";
  for (int i = 0; i < 16; ++i) {
    types += ", [context] token";
    values += ", tokens";
  }
  const std::string said = compileText(returningTokens(types + ")", values + ")")).diagnostics;
  EXPECT_EQ(said.substr(0, said.find('\n')),
            "tiny.boa:2:43: error: a stage returns at most 16 values, 'embed' returns 17");
  types.resize(types.rfind(','));
  values.resize(values.rfind(','));
  EXPECT_EQ(compileText(returningTokens(types + ")", values + ")")).diagnostics, "");
}

// A layer carries as many values as it returns.
TEST(StageTest, LayerOfSeveralResults) {
  std::string text = edited("x: [context, width]) -> [context, width] repeat",
                            "x: [context, width]) -> ([context, width], [context, width]) repeat");
  EXPECT_EQ(
      compileText(text).diagnostics,
      R"(tiny.boa:6:39: error: expected a layer to return no more values than it takes, 1, but found 2
  layer block(x: [context, width]) -> ([context, width], [context, width]) repeat depth {
                                      ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
)");
}

// Layers may carry a result in two arguments. One layer carries nothing on: it takes it twice.
TEST(StageTest, LayersOfOneResult) {
  std::string text =
      edited("  stage head(x: [context, width], targets: [context] token)",
             "  layer more(x: [context, width] = embed, y: [context, width] = embed) -> ([context, "
             "width], [context, width]) repeat depth {\n    return (y, x)\n  }\n  stage head(x: "
             "[context, width], targets: [context] token, z: [context, width] = block)");
  text.replace(text.find("linear(x, transpose"), 8, "linear(x + z");
  EXPECT_EQ(compileText(text).diagnostics, "");
  text.insert(text.rfind("repeat depth") + 12, " / 2");
  EXPECT_EQ(compileText(text).diagnostics,
            R"(tiny.boa:13:65: error: the result of 'embed' is an argument already
  layer more(x: [context, width] = embed, y: [context, width] = embed) -> ([context, width], [context, width]) repeat depth / 2 {
                                                                ^~~~~
tiny.boa:13:14: note: this one has it
  layer more(x: [context, width] = embed, y: [context, width] = embed) -> ([context, width], [context, width]) repeat depth / 2 {
             ^
)");
}

// Stages would not be trained if no later stage took their result.
TEST(StageTest, ResultThatNobodyTakes) {
  EXPECT_EQ(refusal("  stage head(x: [context, width], targets: [context] token)",
                    kScaleLayer + " repeat 2 {\n    return x * block.g\n  }\n  stage head(targets: "
                                  "[context] token, x: [context, width] = block)"),
            R"(tiny.boa:13:9: error: no later stage takes what 'more' returns
  layer more(x: [context, width]) -> [context, width] repeat 2 {
        ^~~~
)");
  EXPECT_EQ(compileText(returningTokens("([context, width], [context, width])",
                                        "(embedding(wte, tokens), embedding(wte, tokens))"))
                .diagnostics,
            R"(tiny.boa:2:62: error: no later stage takes this result of 'embed'
  stage embed(tokens: [context] token) -> ([context, width], [context, width]) {
                                                             ^~~~~~~~~~~~~~~~
)");
}

// Layers share the parameters of other layers one by one: there must be as many.
TEST(StageTest, LayerParameterShared) {
  EXPECT_EQ(
      refusal("transpose(embed.wte)", "block.w"),
      R"(tiny.boa:14:36: error: 'block.w' is a parameter of 2 layers: a stage that is no layer cannot share it
    return cross_entropy(linear(x, block.w), targets)
                                   ^~~~~~~
tiny.boa:6:9: note: the layer is here
  layer block(x: [context, width]) -> [context, width] repeat depth {
        ^~~~~
)");
  EXPECT_EQ(
      refusal("  stage head",
              kScaleLayer + " repeat 3 {\n    return x * block.g\n  }\n  stage head"),
      R"(tiny.boa:14:16: error: 'block.g' is a parameter of 2 layers: 3 layers 'more' cannot share it
    return x * block.g
               ^~~~~~~
tiny.boa:6:9: note: the layer is here
  layer block(x: [context, width]) -> [context, width] repeat depth {
        ^~~~~
)");
  EXPECT_EQ(refusal("  stage head", kScaleLayer + " repeat depth {\n    return x * block.g\n  }\n"
                                                  "  stage head"),
            "");
}
