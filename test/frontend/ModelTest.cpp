//===- ModelTest.cpp - What the parser and the model checker refuse ------------===//
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

// What stands at the top level is a model, a train block or a machine.
TEST(SyntaxTest, AnUnknownItem) {
  EXPECT_EQ(
      refusal("train tiny {", "trian tiny {"),
      R"(tiny.boa:17:1: error: expected 'model', 'train', 'plan' or 'machine' but found 'trian', did you mean 'train'?
trian tiny {
^~~~~
)");
}

// As a comment, the slashes would silently make 1200 of a division by 4.
TEST(SyntaxTest, ACommentOfSlashes) {
  EXPECT_EQ(refusal("steps = 10", "steps = 1200 // 4"),
            R"(tiny.boa:21:16: error: unexpected '//': comments begin with #, and one / divides
  steps = 1200 // 4
               ^~
)");
}

// A constant that only an unused one names is unused, too. A constant whose only use an option
// replaces counts as used.
TEST(SyntaxTest, UnusedConstants) {
  EXPECT_EQ(refusal("depth = 2)", "depth = 2, rate = 3, drop = 2 * rate)"),
            R"(tiny.boa:1:72: error: constant 'rate' is never used
model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = 2, rate = 3, drop = 2 * rate) {
                                                                       ^~~~
tiny.boa:1:82: error: constant 'drop' is never used
model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = 2, rate = 3, drop = 2 * rate) {
                                                                                 ^~~~
)");
  std::string text = edited("depth = 2)", "depth = 2, total = 10)");
  text.replace(text.find("steps = 10"), 10, "steps = total");
  EXPECT_EQ(compileText(text, {"train.steps=5"}).diagnostics, "");
}

TEST(SyntaxTest, AMissingBrace) {
  EXPECT_EQ(refusal("  }\n  layer block", "  layer block"),
            R"(tiny.boa:5:3: error: expected '}' at the end of stage 'embed' but found 'layer'
  layer block(x: [context, width]) -> [context, width] repeat depth {
  ^~~~~
)");
}

TEST(SyntaxTest, AnUnknownStage) {
  EXPECT_EQ(
      refusal("  layer block", "  layr block"),
      R"(tiny.boa:6:3: error: expected 'stage' or 'layer' but found 'layr', did you mean 'layer'?
  layr block(x: [context, width]) -> [context, width] repeat depth {
  ^~~~
)");
}

// One error for the statement, and the parser goes on with the next.
TEST(SyntaxTest, AnUnknownStatement) {
  EXPECT_EQ(
      refusal("    let q", "    lat q"),
      R"(tiny.boa:10:5: error: expected 'param', 'let' or 'return' but found 'lat', did you mean 'let'?
    lat q, k, v = split(linear(rms_norm(x, g), w, b), 3)
    ^~~
)");
}

TEST(SyntaxTest, AReservedWord) {
  EXPECT_EQ(
      refusal("param b: [3 * width]", "param repeat: [3 * width]"),
      R"(tiny.boa:8:11: error: expected the name of a parameter but found 'repeat', a word of the language
    param repeat: [3 * width] = zeros
          ^~~~~~
)");
}

TEST(SyntaxTest, AMissingType) {
  EXPECT_EQ(refusal("stage embed(tokens: [context] token)", "stage embed(tokens)"),
            R"(tiny.boa:2:21: error: expected ':' after the name of an argument but found ')'
  stage embed(tokens) -> [context, width] {
                    ^
)");
}

TEST(SyntaxTest, AMissingValue) {
  EXPECT_EQ(refusal("    param g: [width] = ones", "    param g: [width] ="),
            R"(tiny.boa:10:5: error: expected a value but found 'let', a word of the language
    let q, k, v = split(linear(rms_norm(x, g), w, b), 3)
    ^~~
)");
}

TEST(SyntaxTest, AnOpenString) {
  EXPECT_EQ(refusal("\"corpus.txt\"", "\"corpus.txt"),
            R"(tiny.boa:18:10: error: expected '"' at the end of the string
  data = "corpus.txt
         ^~~~~~~~~~~
)");
}

TEST(SyntaxTest, ANumberOutOfRange) {
  EXPECT_EQ(refusal("width = 32", "width = 99999999999999999999"),
            R"(tiny.boa:1:46: error: the number is out of range
model tiny(vocab = 64, context = 16, width = 99999999999999999999, heads = 4, depth = 2) {
                                             ^~~~~~~~~~~~~~~~~~~~
)");
}

TEST(SyntaxTest, AStrayCharacter) {
  EXPECT_EQ(refusal("width = 32", "width = 32 @"),
            R"(tiny.boa:1:49: error: unexpected '@': linear(x, w) multiplies by a parameter
model tiny(vocab = 64, context = 16, width = 32 @, heads = 4, depth = 2) {
                                                ^
)");
}

TEST(SyntaxTest, ASettingWithoutValue) {
  EXPECT_EQ(refusal("  steps = 10\n", "  steps\n"),
            R"(tiny.boa:22:3: error: expected '=' or '{' after 'steps' but found 'optimizer'
  optimizer = adamw(lr = 1e-3)
  ^~~~~~~~~
)");
}

// Statements, settings and items recover separately.
TEST(SyntaxTest, SeveralErrorsInOneRun) {
  EXPECT_EQ(refusal("    param g: [width] = ones\n    let q, k, v =",
                    "    param g [width] = ones\n    let q, k, ="),
            R"(tiny.boa:9:13: error: expected ':' after the name of a parameter but found '['
    param g [width] = ones
            ^
tiny.boa:10:15: error: expected a name after 'let' but found '='
    let q, k, = split(linear(rms_norm(x, g), w, b), 3)
              ^
)");
}

TEST(ModelTest, ModelWithoutVocab) {
  EXPECT_EQ(refusal("vocab = 64, ", "v = 64, "),
            R"(tiny.boa:1:7: error: model 'tiny' needs the constant 'vocab'
model tiny(v = 64, context = 16, width = 32, heads = 4, depth = 2) {
      ^~~~
)");
}

TEST(ModelTest, ConstantDefinedLater) {
  EXPECT_EQ(refusal("width = 32, heads = 4", "width = 8 * heads, heads = 4"),
            R"(tiny.boa:1:50: error: 'heads' is defined later: a constant can use those before it
model tiny(vocab = 64, context = 16, width = 8 * heads, heads = 4, depth = 2) {
                                                 ^~~~~
tiny.boa:1:57: note: defined here
model tiny(vocab = 64, context = 16, width = 8 * heads, heads = 4, depth = 2) {
                                                        ^~~~~
)");
  EXPECT_EQ(refusal("width = 32", "width = 2 * width"),
            R"(tiny.boa:1:50: error: the value of 'width' uses 'width' itself
model tiny(vocab = 64, context = 16, width = 2 * width, heads = 4, depth = 2) {
                                                 ^~~~~
)");
}

TEST(ModelTest, ValueDefinedLater) {
  EXPECT_EQ(
      refusal("    return x + attention(q, k, v, heads, causal)",
              "    let y = z\n    let z = x + attention(q, k, v, heads, causal)\n    return y"),
      R"(tiny.boa:11:13: error: 'z' is defined later: a value can use those before it
    let y = z
            ^
tiny.boa:12:9: note: defined here
    let z = x + attention(q, k, v, heads, causal)
        ^
)");
}

TEST(ModelTest, RepeatedConstant) {
  EXPECT_EQ(refusal("heads = 4", "width = 4"),
            R"(tiny.boa:1:50: error: constant 'width' is defined twice
model tiny(vocab = 64, context = 16, width = 32, width = 4, depth = 2) {
                                                 ^~~~~
tiny.boa:1:38: note: first defined here
model tiny(vocab = 64, context = 16, width = 32, width = 4, depth = 2) {
                                     ^~~~~
)");
}

TEST(ModelTest, UnknownConstant) {
  EXPECT_EQ(refusal("[vocab, width]", "[vocab, witdh]"),
            R"(tiny.boa:3:24: error: no constant is named 'witdh', did you mean 'width'?
    param wte: [vocab, witdh] = normal(0.02)
                       ^~~~~
)");
}

TEST(ModelTest, Overflow) {
  EXPECT_EQ(refusal("depth = 2", "depth = 9223372036854775807 + 1"),
            R"(tiny.boa:1:69: error: the value of 9223372036854775807 + 1 does not fit 64 bits
model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = 9223372036854775807 + 1) {
                                                                    ^~~~~~~~~~~~~~~~~~~~~~~
)");
}

TEST(ModelTest, DivisionByZero) {
  EXPECT_EQ(refusal("depth = 2", "depth = 2 / (heads - 4)"),
            R"(tiny.boa:1:73: error: division by zero
model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = 2 / (heads - 4)) {
                                                                        ^~~~~~~~~~~
)");
}

TEST(ModelTest, DivisionWithRemainder) {
  EXPECT_EQ(refusal("depth = 2", "depth = width / 5"),
            R"(tiny.boa:1:69: error: expected 5 to divide width = 32
model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = width / 5) {
                                                                    ^~~~~~~~~
)");
}

TEST(ModelTest, NoLayer) {
  EXPECT_EQ(
      refusal("  layer block", "  stage block"),
      R"(tiny.boa:1:7: error: expected a layer, 'layer NAME(...) -> ... repeat N { ... }', but found none
model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = 2) {
      ^~~~
)");
}

TEST(ModelTest, LayerWithoutRepeat) {
  EXPECT_EQ(refusal("repeat depth ", ""),
            R"(tiny.boa:6:9: error: expected 'repeat N' after the result of a layer
  layer block(x: [context, width]) -> [context, width] {
        ^~~~~
)");
}

// A count is refused before anything is allocated for it.
TEST(ModelTest, HugeRepeat) {
  EXPECT_EQ(
      refusal("repeat depth", "repeat 1000000000"),
      R"(tiny.boa:6:63: error: expected the number of layers between 1 and 65536 but found 1000000000
  layer block(x: [context, width]) -> [context, width] repeat 1000000000 {
                                                              ^~~~~~~~~~
)");
}

TEST(ModelTest, RepeatedStage) {
  EXPECT_EQ(refusal("stage head", "stage embed"),
            R"(tiny.boa:13:9: error: stage 'embed' is defined twice
  stage embed(x: [context, width], targets: [context] token) -> loss {
        ^~~~~
tiny.boa:2:9: note: first defined here
  stage embed(tokens: [context] token) -> [context, width] {
        ^~~~~
)");
}

// The compiled program has names of its own, which no stage's name meets.
TEST(ModelTest, AnyStageName) {
  for (const char *name : {"checkpoints", "step", "x_forward"})
    EXPECT_EQ(refusal("layer block", std::string("layer ") + name), "") << name;
}

TEST(ModelTest, DimensionOutOfRange) {
  EXPECT_EQ(refusal("[vocab, width] = normal", "[vocab - 64, width] = normal"),
            R"(tiny.boa:3:17: error: expected a dimension between 1 and 2147483647 but found 0
    param wte: [vocab - 64, width] = normal(0.02)
                ^~~~~~~~~~
)");
}

TEST(ModelTest, HugeTensor) {
  EXPECT_EQ(
      refusal("[vocab, width] = normal", "[2000000000, 2000000000] = normal"),
      R"(tiny.boa:3:16: error: a tensor has at most 2^40 elements, [2000000000, 2000000000] has more
    param wte: [2000000000, 2000000000] = normal(0.02)
               ^~~~~~~~~~~~~~~~~~~~~~~~
)");
}

// The batch is a dimension, too: of each tensor, and of what a step keeps of all stages.
TEST(ModelTest, HugeMicroBatch) {
  EXPECT_EQ(
      compileText(kSpec, {"model.context=16777216", "model.width=65536", "train.batch=4",
                          "plan.micro_batch=4"})
          .diagnostics,
      R"(tiny.boa:4:12: error: a tensor has at most 2^40 elements, a micro-batch of 4 x [context, width] = [16777216, 65536] has more
    return embedding(wte, tokens)
           ^~~~~~~~~
)");
  EXPECT_EQ(
      compileText(kSpec, {"model.context=4194304", "model.width=65536", "train.batch=1048576",
                          "plan.micro_batch=1"})
          .diagnostics,
      R"(tiny.boa:1:7: error: the results of all stages take at most 2^56 bytes in a step, those of 1048576 sequences take more
model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = 2) {
      ^~~~
)");
}

TEST(ModelTest, UnknownInit) {
  EXPECT_EQ(
      refusal("= zeros", "= zeroes"),
      R"(tiny.boa:8:28: error: expected ones, zeros, normal(deviation) or uniform(half_width) but found zeroes, did you mean 'zeros'?
    param b: [3 * width] = zeroes
                           ^~~~~~
)");
}

TEST(ModelTest, NegativeScale) {
  EXPECT_EQ(refusal("[vocab, width] = normal(0.02)", "[vocab, width] = normal(-0.02)"),
            R"(tiny.boa:3:40: error: expected a scale between 0 and 1e6 but found -0.02
    param wte: [vocab, width] = normal(-0.02)
                                       ^~~~~
)");
}

TEST(ModelTest, BrokenChain) {
  EXPECT_EQ(
      refusal("x: [context, width]) -> [context, width] repeat",
              "x: [context, 2 * width]) -> [context, width] repeat"),
      R"(tiny.boa:6:18: error: expected what stage 'embed' returns, [context, width] = [16, 32], but found [context, 2 * width] = [16, 64]
  layer block(x: [context, 2 * width]) -> [context, width] repeat depth {
                 ^~~~~~~~~~~~~~~~~~~~
tiny.boa:2:43: note: returned here
  stage embed(tokens: [context] token) -> [context, width] {
                                          ^~~~~~~~~~~~~~~~
)");
}

TEST(ModelTest, WrongTokens) {
  EXPECT_EQ(
      refusal("tokens: [context] token", "tokens: [2 * context] token"),
      R"(tiny.boa:2:23: error: expected the tokens of type [context] token with context = 16 but found [2 * context] token = [32]
  stage embed(tokens: [2 * context] token) -> [context, width] {
                      ^~~~~~~~~~~~~~~~~~~
)");
}

TEST(ModelTest, WrongLastResult) {
  EXPECT_EQ(
      refusal("token) -> loss", "token) -> [context]"),
      R"(tiny.boa:13:64: error: expected the last stage to return loss but found [context] = [16]
  stage head(x: [context, width], targets: [context] token) -> [context] {
                                                               ^~~~~~~~~
)");
}

TEST(ModelTest, RepeatedParameter) {
  EXPECT_EQ(refusal("    param g: [width] = ones",
                    "    param g: [width] = ones\n    param w: [width] = ones"),
            R"(tiny.boa:10:11: error: 'w' is defined twice
    param w: [width] = ones
          ^
tiny.boa:7:11: note: first defined here
    param w: [width, 3 * width] = normal(0.02)
          ^
)");
}

TEST(ModelTest, ParameterNamedAsConstant) {
  EXPECT_EQ(refusal("    param g: [width] = ones",
                    "    param g: [width] = ones\n    param heads: [width] = ones"),
            R"(tiny.boa:10:11: error: 'heads' is already a constant of the model
    param heads: [width] = ones
          ^~~~~
tiny.boa:1:50: note: defined here
model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = 2) {
                                                 ^~~~~
)");
}

TEST(ModelTest, UnusedParameter) {
  EXPECT_EQ(refusal("    param g: [width] = ones",
                    "    param g: [width] = ones\n    param unused: [width] = ones"),
            R"(tiny.boa:10:11: error: parameter 'unused' is never used, it would never be trained
    param unused: [width] = ones
          ^~~~~~
)");
}

TEST(ModelTest, UnusedValue) {
  EXPECT_EQ(refusal("    return x +", "    let y = gelu(x)\n    return x +"),
            R"(tiny.boa:11:9: error: value 'y' is never used
    let y = gelu(x)
        ^
)");
}

TEST(ModelTest, NoReturn) {
  EXPECT_EQ(refusal("    return embedding(wte, tokens)\n", ""),
            R"(tiny.boa:4:3: error: expected 'return' at the end of stage 'embed'
  }
  ^
)");
}

TEST(ModelTest, AfterReturn) {
  EXPECT_EQ(refusal("    return embedding(wte, tokens)\n",
                    "    return embedding(wte, tokens)\n    let y = wte\n"),
            R"(tiny.boa:5:5: error: nothing can follow 'return'
    let y = wte
    ^~~
)");
}

TEST(ModelTest, WrongReturn) {
  EXPECT_EQ(
      refusal("    return embedding(wte, tokens)\n  }\n  layer",
              "    return embedding(wte, tokens)\n  }\n  stage wide(x: [context, width]) -> "
              "[context, width] {\n    param up: [width, 2 * width] = ones\n    return linear(x, "
              "up)\n  }\n  layer"),
      R"(tiny.boa:8:12: error: expected stage 'wide' to return [context, width] = [16, 32] but found [context, 2 * width] = [16, 64]
    return linear(x, up)
           ^~~~~~~~~~~~~
tiny.boa:6:38: note: declared here
  stage wide(x: [context, width]) -> [context, width] {
                                     ^~~~~~~~~~~~~~~~
)");
}

TEST(ModelTest, UnknownStageOfParameter) {
  EXPECT_EQ(refusal("embed.wte", "embd.wte"),
            R"(tiny.boa:14:46: error: no stage is named 'embd', did you mean 'embed'?
    return cross_entropy(linear(x, transpose(embd.wte)), targets)
                                             ^~~~~~~~
)");
}

TEST(ModelTest, UnknownParameterOfStage) {
  EXPECT_EQ(refusal("embed.wte", "embed.wt"),
            R"(tiny.boa:14:46: error: stage 'embed' has no parameter 'wt', did you mean 'wte'?
    return cross_entropy(linear(x, transpose(embed.wt)), targets)
                                             ^~~~~~~~
)");
}

TEST(ModelTest, OpenAttention) {
  EXPECT_EQ(
      refusal("heads, causal)", "heads)"),
      R"(tiny.boa:11:16: error: with the objective next_token every attention must be causal, or it sees the token that it is to predict
    return x + attention(q, k, v, heads)
               ^~~~~~~~~~~~~~~~~~~~~~~~~
tiny.boa:1:7: note: add 'causal', or train with objective = masked(...)
model tiny(vocab = 64, context = 16, width = 32, heads = 4, depth = 2) {
      ^~~~
)");
}
