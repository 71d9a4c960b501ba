//===- AdapterNamesTest.cpp - Parameters by the names of PEFT -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/frontend/Fixture.h"

using namespace boa;
using namespace boa::frontend;

/// A model whose parameters have the names of a published one.
static std::string named(const std::string &head = "", const std::string &use = "embed.wte") {
  std::string text = kSpec;
  auto replace = [&](const std::string &from, const std::string &to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("param wte: [vocab, width] = normal(0.02)",
          "param wte: [vocab, width] = normal(0.02) as \"model.embed.weight\"");
  replace("param w: [width, 3 * width] = normal(0.02)",
          "param w: [width, 3 * width] = normal(0.02) as \"model.layers.*.attn.qkv.weight\"");
  replace("param b: [3 * width] = zeros",
          "param b: [3 * width] = zeros as \"model.layers.*.attn.qkv.bias\"");
  replace("param g: [width] = ones",
          "param g: [width] = ones as \"model.layers.*.in_norm.weight\"\n"
          "    param o: [width, width] = normal(0.02) as \"model.layers.*.attn.out.weight\"\n"
          "    param u: [width, width] = normal(0.02) as \"model.layers.*.mlp.out.weight\"");
  replace("return x + attention(q, k, v, heads, causal)",
          "return x + linear(linear(attention(q, k, v, heads, causal), transpose(o)), u)");
  replace("    return cross_entropy", head + "    return cross_entropy");
  replace("embed.wte", use);
  return text;
}

/// What the adapters with these targets are, or the errors.
static std::string meant(const std::string &targets, const std::string &text = named()) {
  const FrontendResult result = compileText(text, {"train.adapters=lora(4, 8, " + targets + ")"});
  return result.spec ? result.spec->train.adapters : result.diagnostics;
}

static std::string lora(const std::string &targets) {
  return "lora(rank = 4, alpha = 8, targets = " + targets + ")";
}

// A name is the end of a module's in whole words, a module's, or a pattern of them.
TEST(AdapterNamesTest, Modules) {
  EXPECT_EQ(meant("\"qkv\""), lora("\"block.w\""));
  EXPECT_EQ(meant("\"attn.qkv\""), lora("\"block.w\""));
  EXPECT_EQ(meant("\"model.layers.*.attn.qkv\""), lora("\"block.w\""));
  EXPECT_EQ(meant("\"out\""), lora("(\"block.o\", \"block.u\")"));
  EXPECT_EQ(meant("\"mlp.out\""), lora("\"block.u\""));
  EXPECT_EQ(meant("(\"attn.out\", \"qkv\")"), lora("(\"block.w\", \"block.o\")"));
  EXPECT_EQ(meant("\"attn.*\""), lora("(\"block.w\", \"block.o\")"));
  // Names of the spec itself are stronger.
  EXPECT_EQ(meant("(\"block.u\", \"qkv\")"), lora("(\"block.w\", \"block.u\")"));
}

// All products but that of the logits, tied or not.
TEST(AdapterNamesTest, AllLinear) {
  const std::string all = lora("(\"block.w\", \"block.o\", \"block.u\")");
  EXPECT_EQ(meant("\"all-linear\""), all);
  EXPECT_EQ(meant("\"all-linear\"", named("    param h: [vocab, width] = normal(0.02)\n", "h")),
            all);
}

// What could be meant is listed.
TEST(AdapterNamesTest, UnknownNames) {
  EXPECT_NE(meant("\"\"", kSpec).find("no weight of linear is named \"\""), std::string::npos);
  EXPECT_EQ(
      meant("\"qvk\""),
      R"(--set:1:27: error: no weight of linear is named "qvk", did you mean 'qkv'? There are "all-linear", "qkv", "attn.out", "mlp.out"
train.adapters=lora(4, 8, "qvk")
                          ^~~~~
)");
  EXPECT_EQ(
      meant("\"q_proj\"", kSpec),
      R"(--set:1:27: error: no weight of linear is named "q_proj": there are "all-linear", "block.w"
train.adapters=lora(4, 8, "q_proj")
                          ^~~~~~~~
)");
  EXPECT_EQ(
      meant("\"layers.0.attn.qkv\""),
      R"(--set:1:27: error: "layers.0.attn.qkv" is of one layer, but all layers of a kind are alike: expected "layers.*.attn.qkv"
train.adapters=lora(4, 8, "layers.0.attn.qkv")
                          ^~~~~~~~~~~~~~~~~~~
)");
}

// As in PEFT, the name of a module to save may begin within a word. All of the module is saved.
TEST(AdapterNamesTest, ModulesToSave) {
  auto saved = [](const std::string &modules) {
    return meant("\"attn.out\", modules_to_save = " + modules);
  };
  auto with = [](const std::string &modules) {
    std::string text = lora("\"block.o\"");
    return text.insert(text.size() - 1, ", modules_to_save = " + modules);
  };
  EXPECT_EQ(saved("\"norm\""), with("\"block.g\""));
  EXPECT_EQ(saved("\"qkv\""), with("(\"block.w\", \"block.b\")"));
  EXPECT_EQ(saved("(\"block.g\", \"embed\")"), with("(\"embed.wte\", \"block.g\")"));
  EXPECT_EQ(saved("none"), lora("\"block.o\""));
  EXPECT_EQ(
      saved("\"lm_head\""),
      R"(--set:1:57: error: the model has no module "lm_head" of its own, since 'embed.wte' makes the logits, too: name that
train.adapters=lora(4, 8, "attn.out", modules_to_save = "lm_head")
                                                        ^~~~~~~~~
)");
  EXPECT_EQ(saved("\"out\""),
            R"(--set:1:57: error: 'block.o' is trained as a whole or by an adapter, not in both ways
train.adapters=lora(4, 8, "attn.out", modules_to_save = "out")
                                                        ^~~~~
--set:1:27: note: its adapter is named here
train.adapters=lora(4, 8, "attn.out", modules_to_save = "out")
                          ^~~~~~~~~~
)");
}

TEST(AdapterNamesTest, SavedModulesAreTrained) {
  const FrontendResult result =
      compileText(named(), {"train.adapters=lora(4, 8, \"qkv\", modules_to_save = \"in_norm\")"});
  ASSERT_TRUE(result.spec) << result.diagnostics;
  for (const StageSpec &stage : result.spec->model.stages)
    for (const ParamSpec &param : stage.params)
      EXPECT_EQ(param.frozen, param.name != "g" && param.name.find("_lora_") == std::string::npos)
          << param.name;
}

// The factor of rsLoRA, and dropout before the first matrix alone.
TEST(AdapterNamesTest, RsLoraAndDropout) {
  const FrontendResult result = compileText(
      named(), {"train.adapters=lora(4, 8, \"attn.*\", rslora = true, dropout = 0.25)"});
  ASSERT_TRUE(result.spec) << result.diagnostics;
  EXPECT_EQ(result.spec->train.adapters,
            "lora(rank = 4, alpha = 8, targets = (\"block.w\", \"block.o\"), rslora = true)");
  EXPECT_EQ(result.spec->train.adapter_dropout, 0.25);
  std::vector<int64_t> sites;
  for (const Operation &operation : result.spec->model.stages[1].operations) {
    if (operation.kind == OperationKind::Scale)
      EXPECT_EQ(operation.number, 4);
    if (operation.kind == OperationKind::Dropout) {
      EXPECT_EQ(operation.number, 0.25);
      sites.push_back(operation.site);
    }
  }
  EXPECT_EQ(sites, (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(result.spec->model.stages[1].params[0].adapter->rslora);
  EXPECT_EQ(overrideRefusal("train.adapters=lora(4, 8, \"block.w\", rslora = yes)"),
            R"(--set:1:47: error: expected rslora to be true or false but found yes
train.adapters=lora(4, 8, "block.w", rslora = yes)
                                              ^~~
)");
  EXPECT_EQ(overrideRefusal("train.adapters=lora(4, 8, \"block.w\", dropout = 1)"),
            R"(--set:1:48: error: expected dropout between 0 and 0.99 but found 1
train.adapters=lora(4, 8, "block.w", dropout = 1)
                                               ^
)");
}

// A spec without adapters has those that a state holds. One that says others is refused, with both.
TEST(AdapterNamesTest, HeldAdapters) {
  const HeldAdapters held = {"`state/lora`", lora("\"qkv\"")};
  auto compile = [&](const std::string &text, const std::vector<std::string> &overrides,
                     const HeldAdapters &held) {
    const FrontendResult result = compileTexts({{"tiny.boa", text}}, overrides, held);
    return result.spec ? result.spec->train.adapters : result.diagnostics;
  };
  const std::string same = lora("\"block.w\"");
  EXPECT_EQ(compile(named(), {}, held), same);
  EXPECT_EQ(compile(named(), {"train.adapters.dropout=0.5"}, held), same);
  EXPECT_EQ(compile(named(), {"train.adapters=lora(4, 8, \"block.w\")"}, held), same);
  EXPECT_EQ(
      compile(named(), {"train.adapters.rank=2"}, held),
      R"(--set:1:21: error: expected the adapters that `state/lora` holds, lora(rank = 4, alpha = 8, targets = "block.w"), but found lora(rank = 2, alpha = 8, targets = "block.w"): leave adapters out to take those
train.adapters.rank=2
                    ^
)");
  EXPECT_EQ(
      compile(named(), {"train.adapters=none"}, held),
      R"(--set:1:16: error: expected the adapters that `state/lora` holds, lora(rank = 4, alpha = 8, targets = "block.w"), but found none: leave adapters out to take those
train.adapters=none
               ^~~~
)");
  // Dropout belongs to them, and not to those of the spec.
  HeldAdapters dropping = held;
  dropping.dropout = "0.25";
  for (auto [override, dropout] :
       {std::pair("train.steps=2", 0.25), std::pair("train.adapters=lora(4, 8, \"qkv\")", 0.0),
        std::pair("train.adapters.dropout=0", 0.0)}) {
    const FrontendResult result = compileTexts({{"tiny.boa", named()}}, {override}, dropping);
    ASSERT_TRUE(result.spec) << result.diagnostics;
    EXPECT_EQ(result.spec->train.adapter_dropout, dropout) << override;
  }
  HeldAdapters free = held;
  free.bind = false;
  EXPECT_EQ(compile(named(), {"train.adapters=none"}, free), "");
  HeldAdapters begun = held;
  begun.othersBy = ", or begin others";
  EXPECT_NE(compile(named(), {"train.adapters.alpha=2"}, begun)
                .find("leave adapters out to take those, or begin others\n"),
            std::string::npos);
}

// What a command knows of a spec that is right only with the adapters of its state.
TEST(AdapterNamesTest, Outline) {
  auto outline = [](const std::string &text, const std::vector<std::string> &overrides) {
    const std::optional<Outline> found = outlineTexts({{"tiny.boa", text}}, overrides);
    return found ? found->state + (found->hasAdapters ? " and adapters" : "") : "none";
  };
  const std::string pattern =
      edited("steps = 10", "steps = 10\n  parameters \"*_lora_b\" { lr_scale = 16 }");
  EXPECT_EQ(outline(pattern, {"train.adapters.dropout=0.1"}), "state");
  EXPECT_EQ(outline(pattern, {" machine.ssd . path = other"}), "other");
  EXPECT_EQ(outline(pattern, {"train.adapters=lora(4, 8, \"block.w\")"}), "state and adapters");
  EXPECT_EQ(outline(edited("steps = 10", "adapters = none"), {"train.adapters.rank=2"}),
            "state and adapters");
  EXPECT_EQ(outline("model {", {}), "none");
  // A file of a machine alone stands for it.
  const std::optional<Outline> machine = outlineTexts(
      {{"tiny.boa", kSpec}, {"box.boa", "machine box { ssd \"a\" { } ssd \"b\" { } }"}}, {});
  EXPECT_EQ(machine ? machine->state : "none", "a");
}
