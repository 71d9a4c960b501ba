//===- ForeignSpellingTest.cpp - Spellings of other frameworks ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/ForeignSpellings.h"
#include "test/frontend/Fixture.h"

#include <set>

using namespace boa;
using namespace boa::frontend;

/// The line of the only error.
static std::string errorLine(const std::string &diagnostics) {
  EXPECT_EQ(diagnostics.find("error: "), diagnostics.rfind("error: ")) << diagnostics;
  return diagnostics.substr(0, diagnostics.find('\n'));
}

// Each foreign spelling is one error, at the word that the user wrote, with Boa's spelling.
TEST(ForeignSpellingTest, IsOneErrorWithTheSpelling) {
  const char *kReturn = "return x + attention(q, k, v, heads, causal)";
  const struct {
    const char *from, *to, *error;
  } cases[] = {
      {kReturn, "return nn.Linear(32, 32)(x)",
       "11:12: error: there is no 'nn.Linear': declare param w: [in, out] = normal(0.02), "
       "then linear(x, w)"},
      {kReturn, "return torch.nn.functional.gelu(x)",
       "11:12: error: there is no 'torch.nn.functional.gelu': functions stand by themselves: "
       "linear(x, w), gelu(x)"},
      {kReturn, "return x.view(16, 4, 8)",
       "11:12: error: there is no 'x.view': shapes are declared; only split(x, parts) cuts the "
       "last dimension"},
      {kReturn, "return x.foo(16)",
       "11:12: error: there is no 'x.foo': a function stands by itself, and STAGE.NAME is another "
       "stage's parameter"},
      {kReturn, "return x @ w",
       "11:14: error: unexpected '@': linear(x, w) multiplies by a "
       "parameter"},
      {kReturn, "return linear(x, w.T)",
       "11:22: error: there is no 'w.T': linear(x, transpose(w)) multiplies by a transposed "
       "parameter"},
      {kReturn, "return x + self.w",
       "11:16: error: there is no 'self.w': write param w: [width] = ones for a parameter, let h = "
       "... for a value"},
      {kReturn, "self.fc = nn.Linear(32, 32)",
       "11:5: error: expected 'param', 'let' or 'return' but found 'self'; write param w: [width] "
       "= ones for a parameter, let h = ... for a value"},
      {kReturn, "h = gelu(x)",
       "11:5: error: expected 'param', 'let' or 'return' but found 'h'; "
       "write let h = ..."},
      {kReturn, "return Dropout(x)",
       "11:12: error: there is no 'Dropout': what is trained here is trained without"},
      {"model tiny", "import torch\nmodel tiny",
       "1:1: error: expected 'model', 'train', 'plan' or 'machine' but found 'import'; functions "
       "are built "
       "in; files are given together on the command line"},
      {"  stage head(x", "  def forward(x): pass\n  stage head(x",
       "13:3: error: expected 'stage' or 'layer' but found 'def'; write stage NAME(x: [context, "
       "width]) -> [context, width] { ... }"},
      {"steps = 10", "steps = 10\n  epochs = 3",
       "22:3: error: a train block has no setting 'epochs'; write steps = 3 epochs"},
      {"steps = 10", "num_train_epochs = 3",
       "21:3: error: a train block has no setting 'num_train_epochs'; write steps = 3 epochs"},
      {"steps = 10", "steps = 10\n  sample_packing = false",
       "22:3: error: a train block has no setting 'sample_packing'; write packed = false in "
       "text(...) or chat(...)"},
      {"steps = 10", "steps = 10\n  train_on_inputs = false",
       "22:3: error: a train block has no setting 'train_on_inputs'; of chat(...), answers of the "
       "assistant alone are learnt"},
      {"steps = 10", "steps = 10\n  lora_r = 8",
       "22:3: error: a train block has no setting 'lora_r'; write rank = 8 in lora(...)"},
      {"micro_batch = 2", "gradient_accumulation_steps = 4",
       "20:3: error: a train block has no setting 'gradient_accumulation_steps'; write plan { "
       "micro_batch = N }; each step accumulates batch / micro_batch of them"},
      {"adamw(lr = 1e-3)", "AdamW(lr = 1e-3)",
       "22:15: error: expected optimizer to be adamw(...), sgd(...) or lion(...) but found "
       "AdamW(lr = 0.001); "
       "write adamw(lr = 1e-3)"},
      {"lr = 1e-3", "learning_rate = 1e-3",
       "22:21: error: expected lr, betas, eps, weight_decay or state in adamw(...) but found "
       "'learning_rate'; write optimizer = adamw(lr = 1e-3)"},
      {"steps = 10", "steps = 10\n  compute = float16",
       "22:13: error: expected compute to be f32 or bf16 but found float16; the 16-bit type is "
       "bf16"},
      {"steps = 10", "steps = 10\n  compute = \"fp16\"",
       "22:13: error: expected compute to be f32 or bf16 but found \"fp16\"; the 16-bit type is "
       "bf16"},
      {"steps = 10", "steps = 10\n  compute = \"bf16\"",
       "22:13: error: expected compute to be f32 or bf16 but found \"bf16\"; a word stands without "
       "quotes"},
  };
  for (const auto &entry : cases) {
    SCOPED_TRACE(entry.to);
    EXPECT_EQ(errorLine(refusal(entry.from, entry.to)), "tiny.boa:" + std::string(entry.error));
  }
}

// A negative number has the right unit and the wrong sign.
TEST(ForeignSpellingTest, ANegativeNumberBlamesTheSign) {
  EXPECT_EQ(refusal("batch = 8 sequences", "batch = -16 sequences"),
            R"(tiny.boa:19:11: error: expected batch between 1 and 1048576 but found -16
  batch = -16 sequences
          ^~~~~~~~~~~~~
)");
  EXPECT_EQ(
      refusal("memory = 256 MiB", "memory = -256 MiB"),
      R"(tiny.boa:25:25: error: expected memory of at least 1 B but found -256 MiB; leave memory out, or write none, for no limit
  device cpu { memory = -256 MiB }
                        ^~~~~~~~
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 10\n  commit = every(-5 min)"),
      R"(tiny.boa:22:18: error: expected the interval of commit above 0 s and at most 1000000000 s but found -5 min
  commit = every(-5 min)
                 ^~~~~~
)");
}

// No row is dead: of each kind a spelling stands once.
TEST(ForeignSpellingTest, NoSpellingIsListedTwice) {
  std::set<std::pair<SpellingKind, std::string>> seen;
  for (const ForeignSpelling &foreign : foreignSpellings())
    EXPECT_TRUE(seen.insert({foreign.kind, foreign.written}).second) << foreign.written;
}
