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

#include "dialect/Boa.h"

#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

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

// Frontend and dialect each have enums of these words: their orders may differ.
TEST_F(IrgenTest, WordsKeepTheirNames) {
  for (std::string rate : {"constant", "linear", "cosine"}) {
    auto module = generate(compileText(kSpec, {"train.optimizer.lr=" + rate + "(peak = 1e-3)"}));
    ASSERT_TRUE(module);
    auto train = boa::getConfig(*module, boa::kTrainConfig);
    auto optimizer = train.getAs<mlir::DictionaryAttr>("optimizer");
    EXPECT_EQ(optimizer.getAs<mlir::StringAttr>("rate").getValue(), rate);
  }
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
boa.stage @embed_forward
boa.stage @block_forward repeat 2
boa.stage @head_forward
)");
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
  %0 = boa.rms_norm %arg0, %arg3 : tensor<2x16x32xf32>, tensor<32xf32> -> tensor<2x16x32xf32>
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
  auto train = boa::getConfig(*module, boa::kTrainConfig);
  EXPECT_EQ(train.getAs<mlir::IntegerAttr>("batch").getInt(), 1);
  EXPECT_EQ(train.getAs<mlir::IntegerAttr>("micro_batch").getInt(), 1);
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
    auto train = boa::getConfig(*module, boa::kTrainConfig);
    EXPECT_EQ(train.getAs<mlir::StringAttr>("compute").getValue(), narrow ? "bf16" : "f32");
  }
}

TEST_F(IrgenTest, Configuration) {
  auto module = generate(compileText(
      kSpec,
      {"train.objective=masked(token = 63)", "train.evaluate=every(5, batches = 2)",
       "train.place.saved=ssd", "train.commit=every(90 s, keep = 3)", "train.nonfinite=skip",
       "train.update=device", "train.optimizer=sgd(lr = linear(1, 2, 0.5), momentum = 0.9)"}));
  ASSERT_TRUE(module);
  auto train = boa::getConfig(*module, boa::kTrainConfig);
  auto optimizer = train.getAs<mlir::DictionaryAttr>("optimizer");
  EXPECT_EQ(train.getAs<mlir::StringAttr>("objective").getValue(), "masked");
  EXPECT_EQ(train.getAs<mlir::IntegerAttr>("mask_token").getInt(), 63);
  EXPECT_EQ(train.getAs<mlir::IntegerAttr>("evaluate_batches").getInt(), 2);
  EXPECT_EQ(train.getAs<mlir::IntegerAttr>("commit_every").getInt(), 0);
  EXPECT_EQ(train.getAs<mlir::FloatAttr>("commit_seconds").getValueAsDouble(), 90);
  EXPECT_EQ(train.getAs<mlir::IntegerAttr>("commit_keep").getInt(), 3);
  EXPECT_EQ(train.getAs<mlir::StringAttr>("nonfinite").getValue(), "skip");
  EXPECT_EQ(train.getAs<mlir::StringAttr>("update").getValue(), "device");
  auto place = train.getAs<mlir::DictionaryAttr>("place");
  EXPECT_EQ(place.getAs<mlir::StringAttr>("saved").getValue(), "ssd");
  EXPECT_EQ(place.getAs<mlir::StringAttr>("weights").getValue(), "device");
  EXPECT_EQ(optimizer.getAs<mlir::StringAttr>("kind").getValue(), "sgd");
  EXPECT_EQ(optimizer.getAs<mlir::StringAttr>("rate").getValue(), "linear");
  EXPECT_EQ(optimizer.getAs<mlir::FloatAttr>("floor").getValueAsDouble(), 0.5);
  EXPECT_EQ(optimizer.getAs<mlir::IntegerAttr>("warmup").getInt(), 2);
  auto machine = boa::getConfig(*module, boa::kMachineConfig);
  EXPECT_EQ(machine.getAs<mlir::IntegerAttr>("device_memory").getInt(), 256 << 20);
}

/// What must be set for a setting to be there: the call of which it is an argument.
static std::vector<std::string> around(const std::string &path, const std::string &calls) {
  static const std::map<std::string, std::string> settings = {
      {"adamw", "train.optimizer=adamw(lr = 1e-3)"},
      {"sgd", "train.optimizer=sgd(lr = 1e-3)"},
      {"adamw, sgd", "train.optimizer=adamw(lr = 1e-3)"},
      {"constant, linear, cosine", "train.optimizer.lr=linear(1e-3)"},
      {"linear, cosine", "train.optimizer.lr=cosine(1e-3)"},
      {"masked", "train.objective=masked(token = 3)"},
      {"vertical, horizontal", "train.schedule=horizontal"},
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
      out << boa::getConfig(*module, boa::kTrainConfig)
          << boa::getConfig(*module, boa::kMachineConfig);
    return text;
  };
  int checked = 0;
  for (const SettingInfo &setting : listSettings()) {
    if (setting.isRequired)
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

// What the language allows the dialect allows, too, at the ends of each range.
TEST_F(IrgenTest, EndsOfTheTable) {
  std::string spec = shortSpec();
  int checked = 0;
  auto check = [&](const Setting &setting, const std::string &value) {
    std::string calls;
    for (const std::string &call : setting.calls)
      calls += (calls.empty() ? "" : ", ") + call;
    std::vector<std::string> overrides = around(setting.path(), calls);
    overrides.push_back(setting.path() + "=" + value);
    SCOPED_TRACE(overrides.back());
    FrontendResult result = compileText(spec, overrides);
    // A floor above the peak, say.
    if (!result.spec)
      return;
    EXPECT_TRUE(generate(result));
    ++checked;
  };
  for (const Setting &setting : settingTable()) {
    switch (setting.kind) {
    case SettingKind::Count:
      check(setting, std::to_string(setting.least));
      check(setting, std::to_string(setting.most));
      break;
    case SettingKind::Real:
    case SettingKind::Rate:
      check(setting, setting.above ? "1e-300" : printNumber(setting.realLeast));
      check(setting, printNumber(setting.realMost));
      break;
    case SettingKind::Bytes:
      check(setting, "1 B");
      check(setting, "4000000 TiB");
      break;
    case SettingKind::Speed:
      check(setting, "1 B/s");
      check(setting, "4000000 TiB/s");
      break;
    default:
      for (const std::string &word : setting.words)
        check(setting, word);
    }
  }
  EXPECT_GT(checked, 70);
}

TEST_F(IrgenTest, Examples) {
  for (const char *name : {"gpt", "llama", "bert"})
    EXPECT_TRUE(
        generate(compileFiles({std::string(BOA_SOURCE_DIR) + "/examples/" + name + ".boa"})));
}
