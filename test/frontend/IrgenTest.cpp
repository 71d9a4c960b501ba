//===- IrgenTest.cpp - The IR that is made of a specification -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/frontend/Fixture.h"

#include "frontend/IRGen.h"
#include "frontend/Printer.h"
#include "frontend/SettingTable.h"

#include "dialect/Config.h"

#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

using namespace boa;
using namespace boa::frontend;

namespace {

class IrgenTest : public testing::Test {
protected:
  /// The module of a specification, verified.
  mlir::OwningOpRef<mlir::ModuleOp> generate(const FrontendResult &result,
                                             const IRGenOptions &options = {}) {
    EXPECT_EQ(result.diagnostics, "");
    if (!result.spec)
      return nullptr;
    auto module = generateModel(*result.spec, context, options);
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
    return module;
  }

  static std::string print(mlir::Operation *op) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    op->print(stream, mlir::OpPrintingFlags().useLocalScope());
    return text;
  }

  mlir::MLIRContext context;
};

} // namespace

// Frontend and dialect each have an enum of these words: their orders may differ.
TEST_F(IrgenTest, WordsKeepTheirNames) {
  for (std::string init : {"zeros", "ones", "normal", "uniform"}) {
    std::string value = init == "normal" || init == "uniform" ? init + "(0.1)" : init;
    auto module = generate(compileText(edited("[3 * width] = zeros", "[3 * width] = " + value)));
    ASSERT_TRUE(module);
    EXPECT_NE(print(*module).find("@b : tensor<96xf32> = \"" + init + "\""), std::string::npos)
        << init;
  }
}

// Groups for stages with parameters only; batch in front of activations.
TEST_F(IrgenTest, GroupsAndStages) {
  auto module = generate(compileText(kSpec));
  ASSERT_TRUE(module);
  std::string text;
  for (mlir::Operation &op : *module->getBody())
    if (!mlir::isa<mlir::func::FuncOp, boa::ConfigOp>(op))
      text += print(&op) + "\n";
  EXPECT_EQ(text, R"(boa.group @params.embed repeat 1 {
  boa.param @wte : tensor<64x32xf32> = "normal" 2.000000e-02
}
boa.group @params.block repeat 2 {
  boa.param @w : tensor<32x96xf32> = "normal" 2.000000e-02
  boa.param @b : tensor<96xf32> = "zeros"
  boa.param @g : tensor<32xf32> = "ones"
}
boa.input @tokens from data : tensor<2x16xi32>
boa.input @targets from data : tensor<2x16xi32>
boa.stage @embed_forward(@tokens)
boa.stage @block_forward(@embed_forward) repeat 2
boa.stage @head_forward(@block_forward, @targets)
)");
}

// A side input is an argument before the parameters, and the stage lists whose result it is. A
// layer shares the parameters of another one by one.
TEST_F(IrgenTest, SideInputs) {
  std::string text = edited("  stage head(x: [context, width], targets: [context] token)",
                            "  layer more(x: [context, width], start: [context, width] = embed) -> "
                            "[context, width] repeat depth {\n    return x * block.g + start\n  }\n"
                            "  stage head(x: [context, width], targets: [context] token, start: "
                            "[context, width] = embed)");
  text.replace(text.find("linear(x, transpose"), 19, "linear(x + start, transpose");
  auto module = generate(compileText(text));
  ASSERT_TRUE(module);
  std::string stages;
  for (boa::StageOp stage : module->getOps<boa::StageOp>())
    stages += print(stage) + "\n";
  EXPECT_EQ(stages, R"(boa.stage @embed_forward(@tokens)
boa.stage @block_forward(@embed_forward) repeat 2
boa.stage @more_forward(@block_forward, @embed_forward) repeat 2
boa.stage @head_forward(@more_forward, @targets, @embed_forward)
)");
  auto argumentsOf = [&](mlir::StringRef name) {
    std::string function = print(module->lookupSymbol(name));
    return function.substr(0, function.find(" {\n"));
  };
  EXPECT_EQ(argumentsOf("more_forward"),
            "func.func @more_forward(%arg0: tensor<2x16x32xf32>, %arg1: tensor<2x16x32xf32>, "
            "%arg2: tensor<32xf32> {boa.param = @params.block::@g}) -> tensor<2x16x32xf32>");
  EXPECT_EQ(argumentsOf("head_forward"),
            "func.func @head_forward(%arg0: tensor<2x16x32xf32>, %arg1: tensor<2x16xi32>, "
            "%arg2: tensor<2x16x32xf32>, %arg3: tensor<64x32xf32> {boa.param = "
            "@params.embed::@wte}) -> tensor<f32>");
}

// A layer that repeats once is still a layer.
TEST_F(IrgenTest, LayerOfDepthOne) {
  auto module = generate(compileText(kSpec, {"model.depth=1"}));
  ASSERT_TRUE(module);
  EXPECT_TRUE(module->lookupSymbol("params.block")->hasAttr("boa.layer"));
  EXPECT_FALSE(module->lookupSymbol("params.embed")->hasAttr("boa.layer"));
}

// A tied parameter is an argument of both stages, marked with its one name.
TEST_F(IrgenTest, TiedParameter) {
  auto module = generate(compileText(kSpec));
  ASSERT_TRUE(module);
  EXPECT_EQ(
      print(module->lookupSymbol("head_forward")),
      R"(func.func @head_forward(%arg0: tensor<2x16x32xf32>, %arg1: tensor<2x16xi32>, %arg2: tensor<64x32xf32> {boa.param = @params.embed::@wte}) -> tensor<f32> {
  %0 = boa.linear %arg0, %arg2 transpose : (tensor<2x16x32xf32>, tensor<64x32xf32>) -> tensor<2x16x64xf32>
  %1 = boa.cross_entropy %0, %arg1 : (tensor<2x16x64xf32>, tensor<2x16xi32>) -> tensor<f32>
  return %1 : tensor<f32>
})");
}

// Own parameters stand in the order of their declaration, used or not yet.
TEST_F(IrgenTest, Layer) {
  auto module = generate(compileText(kSpec));
  ASSERT_TRUE(module);
  EXPECT_EQ(
      print(module->lookupSymbol("block_forward")),
      R"(func.func @block_forward(%arg0: tensor<2x16x32xf32>, %arg1: tensor<32x96xf32> {boa.param = @params.block::@w}, %arg2: tensor<96xf32> {boa.param = @params.block::@b}, %arg3: tensor<32xf32> {boa.param = @params.block::@g}) -> tensor<2x16x32xf32> {
  %0 = boa.rms_norm %arg0, %arg3 : (tensor<2x16x32xf32>, tensor<32xf32>) -> tensor<2x16x32xf32>
  %1 = boa.linear %0, %arg1 bias %arg2 : (tensor<2x16x32xf32>, tensor<32x96xf32>, tensor<96xf32>) -> tensor<2x16x96xf32>
  %2:3 = boa.split %1 : (tensor<2x16x96xf32>) -> (tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>)
  %y, %lse = boa.attention %2#0, %2#1, %2#2 heads 4, 4 causal : (tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<2x16x32xf32>) -> (tensor<2x16x32xf32>, tensor<2x4x16xf32>)
  %3 = boa.add %arg0, %y : tensor<2x16x32xf32>, tensor<2x16x32xf32>
  return %3 : tensor<2x16x32xf32>
})");
}

// A parameter that only another stage uses is no argument of its owner.
TEST_F(IrgenTest, ForeignParameter) {
  std::string text = edited("    return embedding(wte, tokens)",
                            "    param bias: [vocab] = zeros\n    return embedding(wte, tokens)");
  size_t at = text.find("transpose(embed.wte)");
  ASSERT_NE(at, std::string::npos);
  text.insert(at + std::string("transpose(embed.wte)").size(), ", embed.bias");
  auto module = generate(compileText(text));
  ASSERT_TRUE(module);
  EXPECT_EQ(module->lookupSymbol<mlir::func::FuncOp>("embed_forward").getNumArguments(), 2u);
  EXPECT_EQ(module->lookupSymbol<mlir::func::FuncOp>("head_forward").getNumArguments(), 4u);
}

// Numbers beside tensors become scales, folded.
TEST_F(IrgenTest, Scale) {
  auto module =
      generate(compileText(edited("return x + att", "return x / 2 * 3 + (1 - 0.5) * att")));
  ASSERT_TRUE(module);
  std::string text = print(module->lookupSymbol("block_forward"));
  EXPECT_NE(text.find("boa.scale %arg0 by 5.000000e-01 "), std::string::npos) << text;
  EXPECT_NE(text.find("boa.scale %3 by 3.000000e+00 "), std::string::npos) << text;
  EXPECT_NE(text.find("boa.scale %y by 5.000000e-01 "), std::string::npos) << text;
}

// Sampling builds the same model for one sequence.
TEST_F(IrgenTest, OtherBatch) {
  IRGenOptions options;
  options.batch = options.microBatch = 1;
  auto module = generate(compileText(kSpec), options);
  ASSERT_TRUE(module);
  auto func = module->lookupSymbol<mlir::func::FuncOp>("embed_forward");
  EXPECT_EQ(print(func).find("func.func @embed_forward(%arg0: tensor<1x16xi32>"), 0u);
  const Config config(*module);
  EXPECT_EQ(config.train.batch, 1);
  EXPECT_EQ(config.plan.micro_batch, 1);
}

// Every op points at the place that it came from.
TEST_F(IrgenTest, Locations) {
  auto module = generate(compileText(kSpec));
  ASSERT_TRUE(module);
  module->walk([](mlir::Operation *op) {
    EXPECT_TRUE(mlir::isa<mlir::FileLineColLoc>(op->getLoc())) << print(op);
  });
  auto func = module->lookupSymbol<mlir::func::FuncOp>("block_forward");
  auto loc = mlir::cast<mlir::FileLineColLoc>(func.getBody().front().front().getLoc());
  EXPECT_EQ(loc.getFilename().str(), "tiny.boa");
  EXPECT_EQ(loc.getLine(), 10u);
  EXPECT_EQ(loc.getColumn(), 32u);
}

// What a function computes is of that type, parameters and the loss are f32, and what is
// known of a row stays so.
TEST_F(IrgenTest, Compute) {
  for (bool narrow : {false, true}) {
    auto module =
        generate(compileText(kSpec, {narrow ? "train.compute=bf16" : "train.compute=f32"}));
    ASSERT_TRUE(module);
    auto element = [](mlir::Type type) {
      return mlir::cast<mlir::ShapedType>(type).getElementType();
    };
    int64_t casts = 0;
    module->walk([&](mlir::func::FuncOp func) {
      for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
        if (func.getArgAttr(i, boa::kParamAttr))
          EXPECT_TRUE(element(type).isF32());
        else if (!element(type).isInteger())
          EXPECT_EQ(element(type).isBF16(), narrow);
      auto result = mlir::cast<mlir::RankedTensorType>(func.getResultTypes()[0]);
      EXPECT_EQ(element(result).isBF16(), narrow && result.getRank() > 0);
    });
    module->walk([&](boa::CastOp cast) { ++casts; });
    EXPECT_EQ(casts > 0, narrow);
    module->walk([&](boa::AttentionOp attention) {
      EXPECT_EQ(element(attention.getY().getType()).isBF16(), narrow);
      EXPECT_TRUE(element(attention.getLse().getType()).isF32());
    });
    EXPECT_EQ(Config(*module).train.compute, narrow ? ComputeType::bf16 : ComputeType::f32);
  }
}

TEST_F(IrgenTest, Configuration) {
  auto module = generate(compileText(
      kSpec,
      {"train.objective=masked(token = 63)", "train.evaluate=every(5, batches = 2)",
       "train.place.saved=ssd", "train.commit=every(90 s, keep = 3)", "train.nonfinite=skip",
       "train.update=device", "train.optimizer=sgd(lr = linear(1, 2, 0.5), momentum = 0.9)"}));
  ASSERT_TRUE(module);
  const Config config(*module);
  EXPECT_EQ(config.train.objective, Objective::masked);
  EXPECT_EQ(config.train.mask_token, 63);
  EXPECT_EQ(config.train.evaluate_batches, 2);
  EXPECT_EQ(config.train.commit_every, 0);
  EXPECT_EQ(config.train.commit_seconds, 90);
  EXPECT_EQ(config.train.commit_keep, 3);
  EXPECT_EQ(config.train.nonfinite, Nonfinite::skip);
  EXPECT_EQ(config.plan.update, UpdatePlace::device);
  EXPECT_EQ(config.plan.place.saved.parts[0].tier, HomeTier::ssd);
  EXPECT_EQ(config.plan.place.weights.parts[0].tier, HomeTier::device);
  EXPECT_EQ(config.train.optimizer.kind, OptimizerKind::sgd);
  EXPECT_EQ(config.train.optimizer.rate, RateKind::linear);
  EXPECT_EQ(config.train.optimizer.floor, 0.5);
  EXPECT_EQ(config.train.optimizer.warmup, 2);
  EXPECT_EQ(config.machine.device_memory, 256 << 20);
  EXPECT_EQ(config.model.vocab, 64);
}

// Frozen parameters have a group of their own. They keep their numbers, which decide initial
// values.
TEST_F(IrgenTest, FrozenGroups) {
  auto module = generate(compileText(
      edited("steps = 10", "steps = 10\n  parameters \"block.g\" { weight_decay = 0.1 }"),
      {"train.freeze=(\"embed.*\", \"block.b\")"}));
  ASSERT_TRUE(module);
  std::string text;
  llvm::raw_string_ostream out(text);
  for (auto group : module->getOps<GroupOp>())
    out << group << "\n";
  EXPECT_EQ(text, R"(boa.group @frozen.embed repeat 1 frozen {
  boa.param @wte : tensor<64x32xf32> = "normal" 2.000000e-02
}
boa.group @params.block repeat 2 {
  boa.param @w : tensor<32x96xf32> = "normal" 2.000000e-02
  boa.param @g : tensor<32xf32> = "ones" number 2 weight_decay 1.000000e-01
}
boa.group @frozen.block repeat 2 frozen {
  boa.param @b : tensor<96xf32> = "zeros" number 1
}
)");
  llvm::SmallVector<mlir::Attribute> params;
  auto block = module->lookupSymbol<mlir::func::FuncOp>("block_forward");
  for (unsigned i = 1; i < block.getNumArguments(); ++i)
    params.push_back(block.getArgAttr(i, kParamAttr));
  std::string of;
  llvm::raw_string_ostream list(of);
  llvm::interleaveComma(params, list);
  EXPECT_EQ(of, "@params.block::@w, @frozen.block::@b, @params.block::@g");
}

/// What must be set for a setting to be there: the call of which it is an argument.
static std::vector<std::string> around(const std::string &path, const std::string &calls) {
  static const std::map<std::string, std::string> settings = {
      {"adamw", "train.optimizer=adamw(lr = 1e-3)"},
      {"sgd", "train.optimizer=sgd(lr = 1e-3)"},
      {"adamw, lion", "train.optimizer=adamw(lr = 1e-3)"},
      {"adamw, sgd, lion", "train.optimizer=adamw(lr = 1e-3)"},
      {"constant, linear, cosine", "train.optimizer.lr=linear(1e-3)"},
      {"linear, cosine", "train.optimizer.lr=cosine(1e-3)"},
      {"masked", "train.objective=masked(token = 3)"},
      {"lora", "train.adapters=lora(rank = 1, alpha = 1, targets = \"block.w\")"},
      {"vertical, horizontal", "train.schedule=horizontal"},
      {"vertical", "train.schedule=vertical"},
      {"", "machine.device.memory=none"}}; // any machine
  if (calls == "every")
    return {path.substr(0, path.rfind('.')) + "=every(5)"};
  auto found = settings.find(calls);
  if (found == settings.end())
    ADD_FAILURE() << "no example of a call of " << calls;
  return {found == settings.end() ? "" : found->second};
}

/// Without what has a default.
static std::string shortSpec() {
  std::string spec = edited("  micro_batch = 2\n", "");
  return spec.substr(0, spec.find("machine laptop"));
}

// The defaults that the table of settings tells are those that hold.
TEST_F(IrgenTest, DefaultsOfTheTable) {
  std::string spec = shortSpec();
  auto configuration = [&](const std::vector<std::string> &overrides) {
    FrontendResult result = compileText(spec, overrides);
    EXPECT_TRUE(result.spec) << result.diagnostics;
    auto module = generate(result);
    std::string text;
    llvm::raw_string_ostream out(text);
    if (module)
      for (llvm::StringRef name : {boa::kTrainConfig, boa::kPlanConfig, boa::kMachineConfig})
        out << boa::getConfig(*module, name);
    return text;
  };
  int checked = 0;
  for (const SettingInfo &setting : listSettings()) {
    // The arguments of tokens(...), text(...) and chat(...) are part of a text.
    if (setting.isRequired || setting.isOfPattern || setting.path.rfind("train.data.", 0) == 0)
      continue;
    SCOPED_TRACE(setting.path);
    std::vector<std::string> overrides = around(setting.path, setting.calls);
    std::string expected = configuration(overrides);
    // A default that is another setting's value.
    std::string value = setting.fallback == "batch" ? "8" : setting.fallback;
    overrides.push_back(setting.path + "=" + value);
    EXPECT_EQ(configuration(overrides), expected) << overrides.back();
    ++checked;
  }
  EXPECT_GT(checked, 30);
}

TEST_F(IrgenTest, Examples) {
  for (const char *name : {"gpt", "llama", "bert"})
    EXPECT_TRUE(
        generate(compileFiles({std::string(BOA_SOURCE_DIR) + "/examples/" + name + ".boa"})));
}
